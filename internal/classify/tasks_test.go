package classify

import (
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// TestTasks: what a team's threads do outside their regions is tasks, and no more of
// what the main thread does there than its part of them.
func TestTasks(t *testing.T) {
	for _, c := range []struct {
		name       string
		page       string // by thread, in the function and then in a loop
		thread     string
		module     string
		want, main float64
		known      bool
	}{
		{"tasks", "0 90 100 100 80 / 1 1 1 1", "", "/tmp/app", 0, 0, true},
		{"the main thread's own code as well", "0 900 100 100 80 / 1 1 1 1", "", "/tmp/app", 0, 1, true},
		{"no team", "0 90 100 100 80", "", "/tmp/app", 1, 1, false},
		{"threads of the program's own", "0 90 100 100 80 / 1 1 1 1", "run", "/tmp/app", 1, 1, false},
		{"the runtime", "0 90 100 100 80 / 1 1 1 1", "", "/usr/lib/libgomp.so.1", 1, 1, false},
	} {
		p := profiletest.Draw(4, 1, "u heap: "+c.page)
		w := &p.Regions[profiletest.Work]
		w.Kind, w.Thread = profile.Function, c.thread
		p.Modules[0].Path = c.module
		chance := FindChance(p, nil, func(*profile.Row) bool { return true })
		for i := range p.Rows {
			r := &p.Rows[i]
			want := c.want
			if r.Thread == 0 {
				want = c.main
			}
			if got := chance.Repeats(r); r.Region == profiletest.Work && got != want {
				t.Errorf("%s: thread %d repeats %v, want %v", c.name, r.Thread, got, want)
			}
		}
		if got := chance.Evidence(profiletest.Work) == Known; got != c.known || chance.Tasks(profiletest.Work) != c.known {
			t.Errorf("%s: known %v, want %v", c.name, got, c.known)
		}
	}
}
