package planner

import (
	"slices"
	"sort"

	"numaopt/internal/plan"
	"numaopt/internal/units"
)

// fit finds the simplest distribution for u that is as good as the best page
// map within the tolerance. For x-wise that is Options.Relative.
func (d *demand) fit(u *unit) {
	u.before, _, u.all = d.totals(u.cells)
	best := d.pageMap(u)
	if len(best.Map) == 0 {
		u.after = u.before // nothing is worth moving
		return
	}
	best = d.simplify(u, best)
	least := d.evaluate(u, best)
	u.place, u.after = best, least
	for _, c := range d.candidates(u, best) {
		after := d.evaluate(u, c)
		if after > u.before {
			continue
		}
		if d.close(after, least, u.all) || c.Policy == plan.XWise && d.relative(u, after, least) {
			u.place, u.after = c, after
			return
		}
	}
}

// relative reports whether u, with after remote accesses where least are
// possible, loses no more than Options.Relative, and but a tenth of its saving.
func (d *demand) relative(u *unit, after, least uint64) bool {
	if after <= least {
		return true
	}
	lost := after - least
	return float64(lost) <= d.opt.Relative/100*float64(u.all) && 10*lost <= u.before-least
}

// evaluate is the remote accesses to u under dist.
func (d *demand) evaluate(u *unit, dist plan.Distribution) uint64 {
	home, nodes := homes(dist, d.n), d.interleaved(dist)
	var r uint64
	for i := range u.cells {
		c := &u.cells[i]
		if dist.Policy != plan.Interleave {
			r += c.remote(home(c.page, c.pages))
		} else if c.home >= 0 { // which page gets which node depends on addresses
			r += c.all - mean(c.use, nodes)
		}
	}
	return r
}

// homes is dist.Home with page maps looked up in logarithmic time.
func homes(dist plan.Distribution, nodes int) func(page, pages int) int {
	if dist.Policy != plan.Pages {
		return func(page, pages int) int { return dist.Home(page, pages, nodes) }
	}
	ends := make([]int, len(dist.Map))
	total := 0
	for i, r := range dist.Map {
		total += r.Count
		ends[i] = total
	}
	return func(page, pages int) int {
		at := position(page, pages, total)
		return dist.Map[sort.SearchInts(ends, at+1)].Node
	}
}

// position is the entry of a map of total pages that stands for a page of pages.
func position(page, pages, total int) int {
	if pages == total {
		return page
	}
	return int(int64(page) * int64(total) / int64(pages))
}

// candidates are the distributions to try for u, simplest first; best is its
// best page map.
func (d *demand) candidates(u *unit, best plan.Distribution) []plan.Distribution {
	var list []plan.Distribution
	wanted := make([]uint64, d.n)
	for i := range u.cells {
		if c := &u.cells[i]; c.home >= 0 {
			for n, count := range c.use {
				wanted[n] += count
			}
		}
	}
	top := -1
	for n, w := range wanted {
		if d.canHold[n] && (top < 0 || w > wanted[top]) {
			top = n
		}
	}
	list = append(list, plan.Distribution{Policy: plan.Bind, Node: top})
	for _, can := range d.canHold {
		if !can {
			return list // the others would use every node
		}
	}
	list = append(list, plan.Distribution{Policy: plan.XWise})
	most := 2 * len(best.Map) // as good, a map of few ranges costs less than a distribution of many
	for _, b := range blocks(best.Map, u.pages, d.n) {
		if u.pages/b > most {
			continue
		}
		list = append(list, plan.Distribution{Policy: plan.BlockCyclic, Block: units.Bytes(b) * units.PageSize})
	}
	return list
}

// maxCycles bounds how often a block-cyclic distribution that is guessed from
// the size alone goes round the nodes.
const maxCycles = 64

// blocks guesses the blocks, in pages, of a block-cyclic distribution: the
// lengths of the first runs of the best map, and what cuts the object into whole
// rounds. It goes round the nodes twice at least: what goes round once is cut by
// the object's size, and a block in bytes would be wrong at any other size, where
// a page map is stretched.
func blocks(best plan.Runs, pages, nodes int) []int {
	var list []int
	seen := make(map[int]bool)
	add := func(b int) {
		if b > 0 && 2*b*nodes <= pages && !seen[b] {
			seen[b] = true
			list = append(list, b)
		}
	}
	for i := 0; i < len(best) && i < 4; i++ {
		add(best[i].Count)
	}
	for rounds := 2; rounds <= maxCycles; rounds++ {
		if pages%(nodes*rounds) == 0 {
			add(pages / (nodes * rounds))
		}
	}
	slices.SortFunc(list, func(a, b int) int { return b - a }) // fewest ranges first
	return list
}
