package planner

import (
	"fmt"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// A permutation gives no thread more chunks than another had, so by itself it leaves the
// most loaded thread as loaded as it was. But between two barriers threads do other
// things besides: what their region does outside its loops stays with them, and a chunk
// that is much may come to a thread that has much to do already. What a chunk does to its
// thread's own stack and buffers, another thread then does to its own.

// maxGrowth is by how much, as a share, the most loaded thread of a region may come to
// make more accesses with a schedule. Time is not known; accesses of all levels stand for
// it, and differ from it by as much.
const maxGrowth = 0.1

// work is the accesses of all levels by rank in the region of a group of loops: those
// that move with chunks, and those that stay.
type work struct{ moving, staying []uint64 }

// works is the work of each group.
func (d *demand) works() []work {
	list, at := make([]work, len(d.loops.groups)), make(map[codeKey][]int) // groups of an outlined function
	for g := range list {
		n := cpus(d.p)
		list[g] = work{make([]uint64, n), make([]uint64, n)}
		seen := make(map[codeKey]bool)
		for _, i := range d.loops.groups[g].regions {
			if k := codeOf(d.p.Regions[i].Code); !seen[k] {
				seen[k] = true
				at[k] = append(at[k], g)
			}
		}
	}
	for i := range d.p.Rows {
		r := &d.p.Rows[i]
		x, rank := &d.p.Regions[r.Region], d.p.Threads[r.Thread].Rank
		if x.Kind != profile.Loop || rank >= cpus(d.p) {
			continue
		}
		switch g := d.loops.of[r.Region]; {
		case g >= 0:
			list[g].moving[rank] += r.Count
		case !x.Worksharing():
			for _, g := range at[codeOf(x.Code)] {
				list[g].staying[rank] += r.Count
			}
		}
	}
	return list
}

// chunkOf is whose chunk the thread of a rank takes under s, of n ranks on so many nodes.
// Each phase of a sweep ends with a barrier and is a permutation like schedule "nodes".
func (s schedule) chunkOf(rank, n, nodes int) int {
	switch s.kind {
	case plan.StaticInverse:
		return n - 1 - rank
	case plan.ByNodes, plan.BlockExclusive:
		each := n / nodes
		return s.nodes[rank/each]*each + rank%each
	}
	return rank
}

// growth is by how much, as a share, the most loaded thread makes more accesses under s
// than it does now; 0 if not.
func (w *work) growth(s schedule, nodes int) float64 {
	var now, then uint64
	for rank := range w.moving {
		now = max(now, w.moving[rank]+w.staying[rank])
		then = max(then, w.moving[s.chunkOf(rank, len(w.moving), nodes)]+w.staying[rank])
	}
	if then <= now {
		return 0
	}
	return float64(then-now) / float64(now)
}

// evenly leaves groups of x static whose schedule would load a thread much more; the
// texts say that, or of those that stay what it costs, by group.
func (s *search) evenly(x *state) (*state, map[int]string) {
	says := make(map[int]string)
	if x.moved == 0 {
		return x, says
	}
	for g, w := range s.d.works() {
		switch grows := w.growth(x.choice[g], s.d.n); {
		case grows > maxGrowth:
			says[g] = fmt.Sprintf("%v would give the most loaded thread %.0f %% more accesses", x.choice[g], 100*grows)
			x = s.with(x, g, schedule{})
		case grows >= 0.01:
			says[g] = fmt.Sprintf("the most loaded thread makes %.0f %% more accesses", 100*grows)
		}
	}
	return x, says
}
