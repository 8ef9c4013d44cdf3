package planner

import (
	"slices"

	"numaopt/internal/plan"
	"numaopt/internal/units"
)

// choose decides what the plan does with g: each allocation alike, or arrays of
// allocations, or each for itself, the first of these that is as good as the
// last within the tolerance.
func (d *demand) choose(g *group) {
	before, best, all := d.totals(g.cells)
	switch {
	case all == 0:
		g.reason = "no accesses to pages with a home"
		return
	case float64(before-best) < d.worth():
		switch {
		case float64(best) > 0.1*float64(all):
			g.reason = "no place of its pages saves much"
		case asGood(before, best, all):
			g.reason = "first touch places it right"
			if far, _ := d.profiled(g.cells); d.schedules != nil && far > before {
				g.reason = "with the loops' schedules " + g.reason
			}
		default:
			g.reason = "too few accesses to matter"
		}
		return
	}
	var kept [][]unit
	every := d.every(g)
	kept = append(kept, []unit{every})
	if len(g.objects) > 1 && !g.mixed {
		kept = append(kept, d.arrays(g), d.singles(g))
	}
	least := remoteOf(kept[0], g, before)
	for _, units := range kept[1:] {
		least = min(least, remoteOf(units, g, before))
	}
	for _, list := range kept {
		if after := remoteOf(list, g, before); d.close(after, least, all) && after < before {
			g.chosen = slices.DeleteFunc(list, func(u unit) bool { return !d.pays(&u) })
			break
		}
	}
	if len(g.chosen) == 0 {
		g.reason = "placing it costs more than it saves"
	}
}

// asGood reports whether first touch is as good as the best places of pages:
// less than 2 % of the accesses can be saved.
func asGood(before, best, all uint64) bool { return 50*(before-best) <= all }

// worth is the accesses that an entry must save.
func (d *demand) worth() float64 { return max(1, d.opt.MinGain/100*float64(d.known)) }

// pays reports whether an entry for u saves what is worth an entry, and more
// than placing its allocations costs.
func (d *demand) pays(u *unit) bool {
	return float64(u.saves()) >= d.worth() && u.saves() >= d.opt.PlaceCost*uint64(len(u.objects))
}

// close reports whether a is as good as least for an object with all accesses:
// it loses less than the tolerance, or less than an entry must save.
func (d *demand) close(a, least, all uint64) bool {
	return a <= least || float64(a-least) <= max(d.opt.Tolerance/100*float64(all), d.opt.MinGain/100*float64(d.known))
}

// totals is the remote accesses to cells as profiled and with every page on its
// best node, and the accesses to those with a known home.
func (d *demand) totals(cells []cell) (before, best, all uint64) {
	for i := range cells {
		c := &cells[i]
		if c.home < 0 {
			continue
		}
		before += c.remote(-1)
		best += d.least(c)
		all += c.all
	}
	return before, best, all
}

// remoteOf is the remote accesses of g, which were before, with list in force.
func remoteOf(list []unit, g *group, before uint64) uint64 {
	for _, u := range list {
		before = before - u.before + u.after
	}
	return before
}

// every places each object of g by itself, all by one distribution.
func (d *demand) every(g *group) unit {
	u := d.alike(g)
	d.fit(&u)
	return u
}

// alike is the objects of g as one entry without instance means them: the one
// with most accesses, and all of a similar size.
func (d *demand) alike(g *group) unit {
	weight := make(map[int]uint64)
	for i := range g.cells {
		weight[d.p.Pages[g.cells[i].profile].Object] += g.cells[i].all
	}
	heaviest := g.objects[0]
	for _, o := range g.objects {
		if weight[o] > weight[heaviest] {
			heaviest = o
		}
	}
	size := d.p.Objects[heaviest].Bytes
	u := unit{objects: []int{heaviest}, pages: spanOf(&d.p.Objects[heaviest]).pages}
	in := map[int]bool{heaviest: true}
	for _, o := range g.objects {
		if b := d.p.Objects[o].Bytes; o != heaviest && b <= size*sizeFactor && b >= size/sizeFactor {
			u.objects = append(u.objects, o)
			in[o] = true
		}
	}
	u.cells = make([]cell, 0, len(g.cells))
	for _, c := range g.cells {
		if in[d.p.Pages[c.profile].Object] {
			u.cells = append(u.cells, c)
		}
	}
	return u
}

// arrays places allocations that lived side by side, such as the rows of a
// matrix, one after the other as one array.
func (d *demand) arrays(g *group) []unit {
	var list []unit
	for from := 0; from < len(g.objects); {
		to := from + 1
		for to < len(g.objects) && d.follows(g.objects[to-1], g.objects[to]) {
			to++
		}
		if u := d.array(g.objects[from:to]); d.pays(&u) {
			list = append(list, u)
		}
		from = to
	}
	return d.most(list)
}

// follows reports whether b was allocated next after a, of the same size, while
// a or another before it was live. Allocations between them that nobody touched
// are rows, too.
func (d *demand) follows(a, b int) bool {
	x, y := &d.p.Objects[a], &d.p.Objects[b]
	return x.Rank == y.Rank && y.Ordinal > x.Ordinal && y.Overlaps && x.Bytes == y.Bytes
}

func (d *demand) array(objects []int) unit {
	first, last := &d.p.Objects[objects[0]], &d.p.Objects[objects[len(objects)-1]]
	count := last.Ordinal - first.Ordinal + 1
	u := unit{
		objects:  objects,
		instance: &plan.Instance{Rank: first.Rank, First: first.Ordinal, Count: count},
	}
	if count == 1 {
		u.pages, u.cells = spanOf(first).pages, d.cells(objects[0])
	} else {
		u.pages = spanOf(first).each * count
		for _, o := range objects {
			u.cells = append(u.cells, d.cellsOf(o, d.p.Objects[o].Ordinal-first.Ordinal, count)...)
		}
	}
	d.fit(&u)
	return u
}

// singles places each object of g for itself.
func (d *demand) singles(g *group) []unit {
	var list []unit
	for _, o := range g.objects {
		if u := d.array([]int{o}); d.pays(&u) {
			list = append(list, u)
		}
	}
	return d.most(list)
}

// most keeps the units that save most, in their order.
func (d *demand) most(list []unit) []unit {
	if len(list) <= d.opt.MaxInstances {
		return list
	}
	saves := make([]uint64, len(list))
	for i := range list {
		saves[i] = list[i].saves()
	}
	slices.Sort(saves)
	limit := saves[len(saves)-d.opt.MaxInstances]
	above := 0
	for i := range list {
		if list[i].saves() > limit {
			above++
		}
	}
	equal := d.opt.MaxInstances - above
	return slices.DeleteFunc(list, func(u unit) bool {
		if u.saves() == limit {
			equal--
			return equal < 0
		}
		return u.saves() < limit
	})
}

// bytes is Entry.Bytes of a unit: the size of its object, or of one of them.
func (d *demand) bytes(u *unit) units.Bytes {
	return units.Bytes(max(1, d.p.Objects[u.objects[0]].Bytes))
}
