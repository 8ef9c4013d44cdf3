package planner

import (
	"fmt"
	"math"

	"numaopt/internal/latency"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// A remote access costs more the farther its node is: an access from n to h takes as
// much longer than a local one as the latencies measured in the profile say, else the
// SLIT's distances. Homes and schedules are chosen by that; what a plan reports are plain
// counts. It is counted in accesses to the farthest node, so that where all are equally
// far it is the count of remote accesses, and the cost of a page never exceeds its
// accesses.

// distances is what an access costs, in shares of what one to the farthest node does.
type distances struct {
	// far[n*nodes+h] of most is the cost of an access from n to h.
	far     []uint64
	most    uint64
	scratch []uint64 // by node
}

// newDistances is the costs on p's machine; nil where all remote nodes are equally far.
func newDistances(p *profile.Profile) *distances {
	t := &p.Run.Topology
	n := len(t.Nodes)
	w := &distances{far: beyondLocal(p), scratch: make([]uint64, n)}
	least := ^uint64(0)
	for from := range n {
		for to := range n {
			if from == to || len(t.Nodes[from].CPUs) == 0 || t.Nodes[to].NoMemory {
				w.far[from*n+to] = 0
				continue
			}
			far := w.far[from*n+to]
			w.most, least = max(w.most, far), min(least, far)
		}
	}
	if w.most == 0 || least == w.most {
		return nil
	}
	return w
}

// local is how far a node's own memory is, in the unit of the SLIT: finer differences
// than a tenth of it the samples of a pair of nodes do not tell.
const local = 10

// beyondLocal is what an access costs beyond a local one, in tenths of that, by
// [from*n+to]: at least one to another node, or accesses to a node that is nearly as
// near as the own would be free.
func beyondLocal(p *profile.Profile) []uint64 {
	n := len(p.Run.Topology.Nodes)
	out := make([]uint64, n*n)
	ratios := latency.Ratios(p)
	for i := range out {
		from, to := topo.NodeID(i/n), topo.NodeID(i%n)
		far := p.Run.Topology.Distance(from, to) - p.Run.Topology.Distance(from, from)
		if ratios != nil {
			far = int(math.Round(local*ratios[i])) - local
		}
		if from != to {
			out[i] = uint64(max(1, far))
		}
	}
	return out
}

// weighing says by what nodes are told apart, where the profile has latencies.
func weighing(p *profile.Profile) []string {
	if len(p.Latencies) == 0 {
		return nil
	}
	ratios := latency.Ratios(p)
	if ratios == nil {
		return []string{fmt.Sprintf("nodes are weighed by the distances that the firmware gives (SLIT): not every pair of nodes has %d samples of loads from memory, to weigh them by latency", latency.Enough)}
	}
	n := len(p.Run.Topology.Nodes)
	least, most := math.Inf(1), 0.0
	for i, r := range ratios {
		if i/n != i%n && r > 0 {
			least, most = min(least, r), max(most, r)
		}
	}
	times := fmt.Sprintf("%.1f", least)
	if far := fmt.Sprintf("%.1f", most); far != times {
		times += " to " + far
	}
	return []string{fmt.Sprintf("nodes are weighed by the latencies that the profile has measured: loads from other nodes' memory take %s times as long as from the own", times)}
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
