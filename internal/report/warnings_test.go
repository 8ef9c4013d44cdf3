package report

import (
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name, draw string
		change     func(*profile.Profile)
		want       string
	}{
		{"nothing to say", "u heap: 0 5000 | 1 0 5000", func(*profile.Profile) {}, ""},
		{"recorder's own", "u heap: 0 5000 | 1 0 5000", func(p *profile.Profile) { p.Warnings = []string{"x"} }, "x"},
		{"killed", "u heap: 0 5000 | 1 0 5000", func(p *profile.Profile) { p.Run.Complete, p.Run.ExitStatus = false, 137 }, "ended by signal 9"},
		{"failed", "u heap: 0 5000 | 1 0 5000", func(p *profile.Profile) { p.Run.ExitStatus = 3 }, "status 3"},
		{"serial program", "u heap: 0 5000", func(*profile.Profile) {}, "threads ran on 1 of 2 nodes"},
		{"homes unknown", "u heap: 0 5000 | 1 0 5000 | ? 500", func(*profile.Profile) {}, "4.8 % of the DRAM accesses"},
		{"unmatched", "u heap: 0 5000 | 1 0 5000", func(p *profile.Profile) { p.Objects[0].Site = -1 }, "only 0.0 %"},
		{"few samples a page", "u heap: 0 50000 | 1 0 50000", func(p *profile.Profile) { p.Run.Period = 10000 }, "5 DRAM samples a page on average: sharing is undercounted and the best placement looks better than it is; a period of 5000 would give 10"},
	} {
		p := profiletest.Draw(2, 1, c.draw)
		c.change(p)
		got := strings.Join(build(t, p).Warnings, "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
