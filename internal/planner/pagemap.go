package planner

import (
	"math"
	"slices"

	"numaopt/internal/plan"
)

// pageMap is the page map of u with the fewest remote accesses, where each change
// of node costs RunCost and each move away from home PageGain. Pages that nobody
// used go with the pages before them. It is empty where no page moves.
//
// Leaving pages alone for PageGain can cut the map to pieces. Where it takes
// fewer runs to place those, too, and no node gets much more to serve, the map
// does.
func (d *demand) pageMap(u *unit) plan.Distribution {
	at := d.positions(u)
	m := plan.Distribution{Policy: plan.Pages}
	path := d.smooth(at, u.all, d.opt.PageGain)
	if !moves(at, path) {
		return m
	}
	m.Map = d.runs(at, path, u.pages)
	if d.opt.PageGain > 0 {
		eager := d.smooth(at, u.all, 0)
		fewer := d.runs(at, eager, u.pages)
		if len(fewer) < len(m.Map) && 10*d.busiest(at, eager) <= 11*d.busiest(at, path) {
			m.Map = fewer
		}
	}
	return m
}

// smooth is the path with the fewest changes that is as good as the best one
// within half the tolerance; the other half is for simpler descriptions.
func (d *demand) smooth(at []spot, all uint64, pageGain float64) []int {
	limit := d.opt.Tolerance / 100 * float64(all) / 2
	best := d.path(at, 0, pageGain)
	least := float64(remoteAlong(at, best))
	for cost := float64(d.opt.RunCost); cost >= 1; cost /= 2 {
		if path := d.path(at, cost, pageGain); float64(remoteAlong(at, path))-least <= limit {
			return path
		}
	}
	return best
}

// remoteAlong is the remote accesses with every spot where path says.
func remoteAlong(at []spot, path []int) (r uint64) {
	for i, s := range path {
		for _, c := range at[i].cells {
			if s == len(c.use) {
				r += c.remote(-1)
			} else {
				r += c.remote(s)
			}
		}
	}
	return r
}

// busiest is the accesses that the node with most of them serves along path.
func (d *demand) busiest(at []spot, path []int) uint64 {
	load := make([]uint64, d.n)
	for i, s := range path {
		for _, c := range at[i].cells {
			load[c.node(s)] += c.all
		}
	}
	return slices.Max(load)
}

// node is where state s of a path puts c: the state after all nodes leaves it at
// home.
func (c *cell) node(s int) int {
	if s == len(c.use) {
		return c.home
	}
	return s
}

// moves reports whether path takes any page away from where first touch puts it.
func moves(at []spot, path []int) bool {
	for i, s := range path {
		for _, c := range at[i].cells {
			if c.node(s) != c.home || c.tossed && s < len(c.use) {
				return true
			}
		}
	}
	return false
}

// spot is the cells of a unit that one entry of its page map decides.
type spot struct {
	index int
	cells []*cell
}

// positions lists the used entries of u's page map, ascending.
func (d *demand) positions(u *unit) []spot {
	order := make([]*cell, 0, len(u.cells))
	for i := range u.cells {
		if u.cells[i].home >= 0 {
			order = append(order, &u.cells[i])
		}
	}
	index := func(c *cell) int { return position(c.page-int(c.back), c.pages, u.pages) }
	slices.SortStableFunc(order, func(a, b *cell) int { return index(a) - index(b) })
	var list []spot
	for _, c := range order {
		if last := len(list) - 1; last >= 0 && list[last].index == index(c) {
			list[last].cells = append(list[last].cells, c)
		} else {
			list = append(list, spot{index(c), []*cell{c}})
		}
	}
	return list
}

// nuance decides between two ways to say the same: too little to weigh against
// a single access of a page used a million times.
const nuance = 1e-7

// weigh fills cost with what each node, and last leaving it alone, costs a spot:
// its remote accesses, and the share that a move must save. Where first touch
// puts a page on the one node that clearly uses it most, the map says so rather
// than leaving it alone; where no node does, it leaves it alone.
func (d *demand) weigh(s *spot, pageGain float64, cost []float64) {
	clear(cost)
	for _, c := range s.cells {
		for n := range d.n {
			if !d.canHold[n] {
				cost[n] = math.Inf(1)
				continue
			}
			cost[n] += float64(c.remote(n))
			if n != c.home || c.tossed {
				cost[n] += pageGain * float64(c.all)
			}
		}
		cost[d.n] += float64(c.remote(-1))
		if d.clear(c) {
			cost[d.n] += nuance * float64(c.all)
		} else if !c.tossed {
			cost[c.home] += nuance * float64(c.all)
		}
	}
}

// clear reports whether one node uses c more than any other by PageGain.
func (d *demand) clear(c *cell) bool {
	var most, second uint64
	for _, count := range c.use {
		if count > most {
			most, second = count, most
		} else {
			second = max(second, count)
		}
	}
	return float64(most-second) > d.opt.PageGain*float64(c.all)
}

// path is the cheapest sequence of nodes along the spots, d.n for leaving one
// alone, where each change costs change more (Viterbi's algorithm).
func (d *demand) path(at []spot, change, pageGain float64) []int {
	states := d.n + 1
	from := make([]uint8, len(at)*states) // nodes are at most 64, see topo
	total := make([]float64, states)
	cost := make([]float64, states)
	for i := range at {
		d.weigh(&at[i], pageGain, cost)
		low := cheapest(total)
		floor := total[low] + change
		for s := range states {
			prev := s
			if total[s] > floor {
				prev = low
				total[s] = floor
			}
			from[i*states+s] = uint8(prev)
			total[s] += cost[s]
		}
	}
	path := make([]int, len(at))
	s := cheapest(total)
	for i := len(at) - 1; i >= 0; i-- {
		path[i] = s
		s = int(from[i*states+s])
	}
	return path
}

// cheapest is the index of the least total; among equals the last, so that
// pages are left alone where nothing is gained.
func cheapest(total []float64) int {
	low := len(total) - 1
	for s, t := range total {
		if t < total[low] {
			low = s
		}
	}
	return low
}

// runs is the page map of pages pages along path.
func (d *demand) runs(at []spot, path []int, pages int) plan.Runs {
	var r plan.Runs
	for i, s := range path {
		node, end := s, pages
		if s == d.n {
			node = -1
		}
		if i+1 < len(at) {
			end = at[i+1].index
		}
		start := 0
		if i > 0 {
			start = at[i].index
		}
		if last := len(r) - 1; last >= 0 && r[last].Node == node {
			r[last].Count += end - start
		} else {
			r = append(r, plan.Run{Node: node, Count: end - start})
		}
	}
	return r
}
