package planner

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/units"
)

// why says in a sentence or two what speaks for the placement of u: who touched
// it first, who uses it, what of the program's accesses that is.
func (d *demand) why(g *group, u *unit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of the %s.", units.FormatPercent(units.Percent(float64(u.all), float64(d.known))), d.counted())
	if first := d.first(u); first != "" {
		b.WriteString(" " + first)
	}
	fmt.Fprintf(&b, " Used by %s.", d.usedBy(u))
	if u.place.Policy == plan.Interleave {
		b.WriteString(" No node uses its pages clearly most: interleaving makes nothing more local, it shares the load among the memory controllers.")
	}
	if u.instance == nil && len(g.objects) > 1 {
		fmt.Fprintf(&b, " Each of %d allocations alike.", len(u.objects))
	}
	return b.String()
}

// counted names the accesses that the plan was made from.
func (d *demand) counted() string {
	if d.allLevels {
		return "accesses"
	}
	return "DRAM accesses"
}

// first says where most of the remote accesses' pages were first touched; "" if
// that is not known.
func (d *demand) first(u *unit) string {
	type where struct{ place, thread int }
	weight := make(map[where]uint64)
	var order []where
	var all uint64
	serial := d.serialFirst()
	var serially uint64
	for i := range u.cells {
		c := &u.cells[i]
		pg := &d.p.Pages[c.profile]
		if c.home < 0 || pg.Thread < 0 {
			continue
		}
		w := where{pg.Place, pg.Thread}
		if _, ok := weight[w]; !ok {
			order = append(order, w)
		}
		far := c.remote(-1)
		weight[w] += far
		all += far
		if serial(pg) {
			serially += far
		}
	}
	if all == 0 {
		return ""
	}
	top := slices.MaxFunc(order, func(a, b where) int {
		if weight[a] != weight[b] {
			return int(min(1, int64(weight[a])-int64(weight[b])))
		}
		return b.place - a.place
	})
	t := d.p.Threads[top.thread]
	text := fmt.Sprintf("First touched by thread %d on node %d", t.Rank, t.Node)
	if 2*weight[top] < all {
		text = "First touched by several threads"
	}
	if at := d.placeName(top.place); at != "" {
		text += " in " + at
	}
	if 2*serially > all {
		text = "Serial initialisation: f" + text[1:]
	}
	return text + "."
}

// placeName is the source place of a first touch.
func (d *demand) placeName(place int) string {
	if place < 0 {
		return ""
	}
	c := d.p.Places[place]
	if len(c.Inlined) == 0 {
		return clean(c.Symbol)
	}
	l := c.Inlined[0]
	switch {
	case l.File != "" && l.Function != "":
		return clean(fmt.Sprintf("%s (%s:%d)", l.Function, l.File[strings.LastIndexByte(l.File, '/')+1:], l.Line))
	case l.Function != "":
		return clean(l.Function)
	}
	return clean(c.Symbol)
}

// usedBy names the nodes that use u, those of at least 1 %, with their share.
func (d *demand) usedBy(u *unit) string {
	used := make([]uint64, d.n)
	for i := range u.cells {
		if u.cells[i].home >= 0 {
			for n, count := range u.cells[i].use {
				used[n] += count
			}
		}
	}
	var parts []string
	for n, count := range used {
		if share := units.Percent(float64(count), float64(u.all)); share >= 1 {
			parts = append(parts, fmt.Sprintf("node %d (%.0f %%)", n, share))
		}
	}
	return strings.Join(parts, ", ")
}
