package planner

import "numaopt/internal/topo"

// A remote access costs more the farther its node is: by the SLIT, an access from n to
// h takes as much longer than a local one as their distance is above that of n to
// itself. Homes and schedules are chosen by that; what a plan reports are plain counts.
// It is counted in accesses to the farthest node, so that where all are equally far it
// is the count of remote accesses, and the cost of a page never exceeds its accesses.

// distances is what an access costs, in shares of what one to the farthest node does.
type distances struct {
	// far[n*nodes+h] of most is the cost of an access from n to h.
	far     []uint64
	most    uint64
	scratch []uint64 // by node
}

// newDistances is the costs of t; nil where all remote nodes are equally far.
func newDistances(t topo.Topology) *distances {
	n := len(t.Nodes)
	w := &distances{far: make([]uint64, n*n), scratch: make([]uint64, n)}
	least := ^uint64(0)
	for from := range n {
		for to := range n {
			if from == to || len(t.Nodes[from].CPUs) == 0 || t.Nodes[to].NoMemory {
				continue
			}
			a, b := topo.NodeID(from), topo.NodeID(to)
			far := uint64(max(0, t.Distance(a, b)-t.Distance(a, a)))
			w.far[from*n+to] = far
			w.most, least = max(w.most, far), min(least, far)
		}
	}
	if w.most == 0 || least == w.most {
		return nil
	}
	return w
}

// near is count accesses from a node less what they cost from a home.
func (w *distances) near(count uint64, from, home int) uint64 {
	return count - share(count, w.far[from*len(w.scratch)+home], w.most)
}

// weigh turns accesses by node into the accesses less the cost of them with a page on
// each node: the most where it should be. With equal distances it would leave use alone.
func (w *distances) weigh(use []uint64) {
	if w == nil {
		return
	}
	copy(w.scratch, use)
	clear(use)
	for from, count := range w.scratch {
		for home := range use {
			if count > 0 {
				use[home] += w.near(count, from, home)
			}
		}
	}
}
