package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// tasked is an array that handed-out work and a static loop use, of 1000 and some
// accesses a page. The profiled run's chance put the work of each part of it on the
// node after that of the loop; first says who touched it first.
func tasked(work func(*profile.Region), static uint64, first string) (*sweeps, int) {
	s := newSweeps(4, 2)
	up, tasks := s.loop("up"), s.loop("tasks", work)
	o := s.array("a", 256)
	base := slices.IndexFunc(s.Pages, func(g profile.Page) bool { return g.Object == o })
	for i := range 256 {
		t := i / 32
		uses := []func(){
			func() { s.touch(up, t, base+i, static) },
			func() { s.touch(tasks, (t+2)%s.team, base+i, 1000) },
		}
		if first == "tasks" {
			slices.Reverse(uses)
		}
		for _, use := range uses {
			use()
		}
	}
	return s, o
}

// TestTasks: where handed-out work was in the profiled run bends no static loop, and
// pages that it touches first are placed where enough other work uses them.
func TestTasks(t *testing.T) {
	loop := func(r *profile.Region) { r.Dynamic = true }
	function := func(r *profile.Region) {
		*r = profile.Region{Kind: profile.Function, Name: "tasks", Function: "tasks", Code: r.Code, Site: ident.Code{Module: -1}}
	}
	for _, c := range []struct {
		name          string
		work          func(*profile.Region)
		static        uint64
		first         string
		want          plan.Policy
		before, after float64 // remote %
		warning       string
	}{
		{"a loop's pages", loop, 1000, "up", "", 37.5, 37.5, "OpenMP hands out the work of loop k.c:4 (tasks), in a team inside a team or beside tasks, at run time"},
		{"tasks outside a region", function, 1000, "up", "", 37.5, 37.5, "work of tasks in tasks at"},
		{"touched by tasks first", loop, 1500, "tasks", plan.XWise, 45, 30, "touches pages first that other work uses (60.0 %"},
		{"tasks outside a region touch first", function, 1500, "tasks", plan.XWise, 45, 30, "of tasks in tasks touches pages first"},
		{"too little to give up what follows the work", loop, 500, "tasks", "", 25, 25, "(33.3 %"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := tasked(c.work, c.static, c.first)
			r := build(t, s.Profile, DefaultOptions())
			if got := schedules(r.Plan); got != "" {
				t.Errorf("schedules %s", got)
			}
			var got plan.Policy
			if len(r.Plan.Objects) > 0 {
				got = r.Plan.Objects[0].Place.Policy
			}
			if got != c.want {
				t.Errorf("placed %q, want %q", got, c.want)
			}
			if p := fmt.Sprintf("%.1f %.1f", r.Before.RemotePct(), r.After.RemotePct()); p != fmt.Sprintf("%.1f %.1f", c.before, c.after) {
				t.Errorf("predicted %s, want %v %v", p, c.before, c.after)
			}
			if all := strings.Join(r.Warnings, "\n"); !strings.Contains(all, c.warning) {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
		})
	}
}
