package planner

import (
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// TestOutcome: the rows' remote accesses add up to what the plan leaves.
func TestOutcome(t *testing.T) {
	const n = 16
	static := DefaultOptions()
	static.NoSchedules = true
	for _, c := range []struct {
		name   string
		draw   *sweeps
		opt    Options
		phases bool
	}{
		{"static", crossing(4, 2, n, nil), static, false},
		{"phases", crossing(4, 2, n, nil), DefaultOptions(), true},
		{"lines that caches lose", reused(n, profile.L2, 10), DefaultOptions(), true},
		{"code that is not permuted", crossing(2, 4, n, func(s *sweeps, o int) {
			s.sweep(s.loop("other", func(r *profile.Region) { r.Schedule = "chunked" }), o, s.up)
		}), DefaultOptions(), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := build(t, c.draw.Profile, c.opt)
			phases := false
			for _, l := range r.Plan.Loops {
				phases = phases || l.Schedule == plan.BlockExclusive
			}
			if phases != c.phases {
				t.Fatalf("block-exclusive: %v, want %v", phases, c.phases)
			}
			var sum uint64
			for i := range r.Outcome.Profile.Rows {
				sum += r.Outcome.Remote(&r.Outcome.Profile.Rows[i])
			}
			var seen, all uint64
			for _, x := range r.Decisions {
				seen, all = seen+x.Seen, all+x.Accesses
			}
			if seen != r.Before.Known || all != r.After.Known {
				t.Errorf("the objects have %d accesses, with the plan %d; want %d and %d", seen, all, r.Before.Known, r.After.Known)
			}
			if sum != r.After.Remote {
				t.Errorf("the rows have %d remote, the plan %d", sum, r.After.Remote)
			}
		})
	}
}

// TestOutcomeNode: a row belongs to the node that has it in most phases.
func TestOutcomeNode(t *testing.T) {
	r := build(t, crossing(4, 2, 16, nil).Profile, DefaultOptions())
	o, seen := r.Outcome, make(map[[2]int]bool)
	for i := range o.Profile.Rows {
		row := &o.Profile.Rows[i]
		if g := o.d.loops.of[row.Region]; g >= 0 && o.d.loops.groups[g].sweep > 0 {
			if far := o.d.farFrom(o.Node(row), int(row.Page), row.Count, o.where, o.shared); far != o.Remote(row) {
				t.Fatalf("row %d: %d remote from node %d, %d in all", i, far, o.Node(row), o.Remote(row))
			}
			seen[[2]int{int(o.d.p.Threads[row.Thread].Node), o.Node(row)}] = true
		}
	}
	if len(seen) != 16 {
		t.Errorf("%d pairs of nodes as profiled and with the plan, want 16", len(seen))
	}
}
