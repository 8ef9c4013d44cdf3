package planner

import (
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// The kernel makes a huge page only of an aligned range that lies in one memory area
// (thp_vma_suitable_order), and takes it from the node that the area's policy, or the
// thread that touches it first, says. mbind cuts areas where its range ends (mbind_range),
// and with them the huge pages there (vma_adjust_trans_huge). So a border of a plan
// within such a range costs no remote access, but a huge page; and a plan in units of
// huge pages keeps these, but not its borders. Both are known before: huge.

// hugePage is x86's, in pages.
const hugePage = int(2 * units.MiB / units.PageSize)

// unitOf is the first page of the aligned unit that page index of o is in, and the
// middle one, whose node all of it gets; both are index where the unit is not o's own
// from end to end. A global is aligned as its address in the file, which holds where
// that is not relocated; of other objects the first page is taken to begin a unit.
//
// This mirrors middle in runtime-c/src/place.c.
func unitOf(o *profile.Object, s span, index, unit int) (first, middle int) {
	if unit <= 1 {
		return index, index
	}
	base := 0
	if o.Kind == profile.Global {
		base = int(o.Offset / uint64(units.PageSize) % uint64(unit))
	}
	first = (base+index)/unit*unit - base
	if first < s.first || first+unit > s.end {
		return index, index
	}
	return first, first + unit/2
}

// hugeRange is an aligned range of 2 MiB of an object.
type hugeRange struct{ object, first int }

// huge is what would be remote of the accesses to g, placed as chosen, if each aligned
// range of 2 MiB were one page, and the accesses to ranges that the plan cuts. A range
// that is left to first touch is taken to be where its lowest page is.
func (d *demand) huge(g *group) (remote, split uint64) {
	if d.unit > 1 {
		return 0, 0
	}
	where := make(map[hugeRange]int)
	all, cut := make(map[hugeRange]uint64), make(map[hugeRange]bool)
	placed := make(map[int]bool)
	count := func(c *cell, home func(page, pages int) int) {
		pg := &d.p.Pages[c.profile]
		o := &d.p.Objects[pg.Object]
		first, middle := unitOf(o, spanOf(o), pg.Index, hugePage)
		if first == middle {
			remote += c.remote(at(home, c, 0))
			return
		}
		r := hugeRange{pg.Object, first}
		node := at(home, c, middle-pg.Index)
		if node < 0 {
			if _, ok := where[r]; !ok {
				where[r] = c.home
			}
			node = where[r]
		}
		all[r] += c.all
		cut[r] = cut[r] || at(home, c, 0) != at(home, c, middle-pg.Index)
		remote += c.remote(node)
	}
	for k := range g.chosen {
		u := &g.chosen[k]
		if u.place.Policy == plan.Interleave {
			remote += u.after
		}
		home := homes(u.place, d.n)
		for i := range u.cells {
			placed[u.cells[i].profile] = true
			if u.place.Policy != plan.Interleave {
				count(&u.cells[i], home)
			}
		}
	}
	for i := range g.cells {
		if !placed[g.cells[i].profile] {
			count(&g.cells[i], nil)
		}
	}
	for r := range cut {
		if cut[r] {
			split += all[r]
		}
	}
	return remote, split
}

// at is the node of the page that is by pages behind c; -1 is left to first touch.
func at(home func(page, pages int) int, c *cell, by int) int {
	if home == nil {
		return -1
	}
	return home(max(0, min(c.page+by, c.pages-1)), c.pages)
}

// splitHuge warns of a plan that cuts the huge pages that the machine makes unasked,
// where a considerable part of the accesses is to these.
func (d *demand) splitHuge(r *Result) []string {
	var split, cost uint64
	for i := range r.Decisions {
		x := &r.Decisions[i]
		if x.Split > 0 {
			split += x.Split
			cost += x.Huge - min(x.Huge, x.After)
		}
	}
	if d.p.Run.HugePages != "always" || d.points(split) < 1 {
		return nil
	}
	return []string{"the machine makes huge pages unasked, and the plan's borders cut those of " + loopShare(split, d.known) + " of the accesses into small ones: --page-size 2M keeps them, at " +
		loopShare(cost, d.known) + " more remote"}
}
