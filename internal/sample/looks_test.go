package sample

import "testing"

// TestLooks: faults of looks that are alike tell as much as if they were independent;
// where each look finds one thing, it tells as much as one fault would.
func TestLooks(t *testing.T) {
	for _, c := range []struct {
		name   string
		looks  int
		remote func(look, fault int) bool
		lo, hi float64
	}{
		{"alike", 20, func(_, i int) bool { return i%2 == 0 }, 1, 1},
		{"each another", 20, func(l, _ int) bool { return l%2 == 0 }, 100, 130},
		{"few", 4, func(l, _ int) bool { return l%2 == 0 }, 300, 400},
		{"all local", 20, func(int, int) bool { return false }, 100, 100},
		{"one", 1, func(int, int) bool { return false }, 0, 0},
	} {
		l := looks{}
		for at := range c.looks {
			for i := range 100 {
				remote := 0
				if c.remote(at, i) {
					remote = 1
				}
				l.add(uint64(at*(5<<binShift)+i*1000), 1, remote)
			}
		}
		if got := l.period(c.looks); got < c.lo || got > c.hi {
			t.Errorf("%s: one of %.1f faults is independent, want %.0f to %.0f", c.name, got, c.lo, c.hi)
		}
	}
}
