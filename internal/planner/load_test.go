package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
)

// TestLoad: a schedule that brings much work to a thread which has much to do in the same
// region is rejected, or its cost is said.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name      string
		own       uint64 // accesses of thread 0 in the region, outside its loop
		schedules string
		says      string
	}{
		{"nothing else to do", 0, "b static-inverse", ""},
		{"a little", 8_000, "b static-inverse", "the most loaded thread makes 8 % more accesses"},
		{"much", 60_000, "", "static-inverse would give the most loaded thread 45 % more accesses: static leaves"},
	} {
		s := newSweeps(4, 2)
		a, b := s.loop("a"), s.loop("b")
		region := s.loop("region", func(r *profile.Region) {
			*r = profile.Region{Kind: profile.Loop, Name: "region", Function: "region", Code: s.Regions[b].Code, Site: ident.Code{Module: -1}}
		})
		o, own := s.array("u", 400), s.array("own", 1)
		for range 4 {
			s.sweep(a, o, s.up)
		}
		// b goes down, and its last chunks, by thread 7, are the most work.
		base := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == o })
		for page := range 400 {
			count := uint64(1000)
			if page < 50 {
				count = 2000
			}
			s.touch(b, 7-page/50, base+page, count)
		}
		first := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == own })
		s.touch(region, 0, first, max(1, c.own))
		r := build(t, s.Profile, DefaultOptions())
		if got := schedules(r.Plan); got != c.schedules {
			t.Errorf("%s: %q, want %q; %+v", c.name, got, c.schedules, r.Loops)
		}
		if got := fmt.Sprint(r.Loops); !strings.Contains(got, c.says) || c.says == "" && strings.Contains(got, "most loaded") {
			t.Errorf("%s: %s, want %q", c.name, got, c.says)
		}
	}
}
