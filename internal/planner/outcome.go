package planner

import (
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Outcome is the profile's table as the plan leaves it: who would make the accesses
// of each row, and from where they would be served. What a change of the source
// saves beyond the plan is predicted from it.
type Outcome struct {
	// Profile is the one that Build was given, less what is luck in the LLC; its
	// pages, objects, regions and threads are the same.
	Profile *profile.Profile

	d      *demand
	in     []bool        // regions of Options.Only; nil is all
	where  []int         // by page: its node, -1 is left to first touch
	shared map[int][]int // by page: the nodes that it is interleaved over
	to     [][]int       // by group of loops and class of threads: the node
}

func (d *demand) outcome(groups []group) *Outcome {
	o := &Outcome{Profile: d.p, d: d, in: d.in, to: make([][]int, len(d.loops.groups))}
	o.where, o.shared = d.places(groups)
	for g := range o.to {
		o.to[g] = d.loops.targets(d.scheduleOf(g))
	}
	return o
}

// Counts reports whether the plan's figures are of r: its page has a home, and its
// level and region are among those that were planned for.
func (o *Outcome) Counts(r *profile.Row) bool {
	return (o.in == nil || o.in[r.Region]) && o.d.counts(r) && o.d.p.Pages[r.Page].Home != topo.Unknown
}

// Node is the node whose threads make the accesses of r with the plan's schedules.
func (o *Outcome) Node(r *profile.Row) int {
	if g := o.d.loops.of[r.Region]; g >= 0 && !o.d.ofThread[o.d.p.Pages[r.Page].Object] {
		return o.to[g][o.d.loops.class[r.Thread]]
	}
	return int(o.d.p.Threads[r.Thread].Node)
}

// Remote is how many of r's accesses are remote with the plan, for an r that counts.
func (o *Outcome) Remote(r *profile.Row) uint64 {
	return o.d.farFrom(o.Node(r), r.Page, r.Count, o.where, o.shared)
}

// Placeable reports whether a plan can place the pages of an object.
func (o *Outcome) Placeable(object int) bool { return o.d.placeable(&o.d.p.Objects[object]) }

// CanHold reports whether a node has memory.
func (o *Outcome) CanHold(node int) bool { return o.d.canHold[node] }
