package planner

import (
	"slices"

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
	return o.known(r) && o.d.counts(r)
}

// known reports whether the page of r has a home, and its region was planned for.
func (o *Outcome) known(r *profile.Row) bool {
	return (o.in == nil || o.in[r.Region]) && o.d.p.Pages[r.Page].Home != topo.Unknown
}

// moves reports whether the accesses of r go with the chunks of its loop, and of which
// group of loops that is.
func (o *Outcome) moves(r *profile.Row) (g int, ok bool) {
	g = o.d.loops.of[r.Region]
	return g, g >= 0 && !o.d.ofThread[o.d.p.Pages[r.Page].Object]
}

// Node is the node whose threads make most of the accesses of r with the plan's
// schedules; the lowest of equals.
func (o *Outcome) Node(r *profile.Row) int {
	g, ok := o.moves(r)
	if !ok {
		return int(o.d.p.Threads[r.Thread].Node)
	}
	by := make([]uint64, o.d.n)
	for part := range o.d.loops.pieces(g, r) {
		by[o.to[g][part.slot]] += part.to - part.from
	}
	return slices.Index(by, slices.Max(by))
}

// Remote is how many of r's accesses are remote with the plan: those that count, and
// those that come to be because caches lose what another node uses next, which are of
// rows that do not.
func (o *Outcome) Remote(r *profile.Row) (remote uint64) {
	g, moves := o.moves(r)
	if !moves {
		if o.Counts(r) {
			remote = o.d.farStill(r, r.Count, o.where, o.shared)
		}
		return remote
	}
	if !o.known(r) {
		return 0
	}
	again, sure := o.d.loops.again(o.d.p, g, r), uint64(0)
	if o.d.counts(r) {
		sure = o.d.sure(r, r.Count)
		remote = o.d.farDealt(r, r.Count-sure, o.where, o.shared)
	}
	for part := range o.d.loops.pieces(g, r) {
		count := part.of(sure)
		if again > 0 && part.from > 0 && o.d.loops.turned(part.slot, o.to[g]) {
			count += again
		}
		remote += o.d.farFrom(o.to[g][part.slot], int(r.Page), count, o.where, o.shared)
	}
	return remote
}

// Placeable reports whether a plan can place the pages of an object.
func (o *Outcome) Placeable(object int) bool { return o.d.placeable(&o.d.p.Objects[object]) }

// CanHold reports whether a node has memory.
func (o *Outcome) CanHold(node int) bool { return o.d.canHold[node] }
