package planner

import (
	"fmt"

	"numaopt/internal/plan"
	"numaopt/internal/units"
)

// Each range of pages with a policy of its own is a memory area of the kernel's, of which
// a process has vm.max_map_count. Where there is no room the runtime makes pages that the
// profile saw touched resident on their nodes, which takes time and big pages, and leaves
// the smallest other ranges to first touch. So a map of too many ranges is simplified if
// that loses little, and the plan says what it loses, or what the runtime will do.

// ranges is how many ranges of memory dist divides pages pages into on so many nodes.
func ranges(dist plan.Distribution, pages, nodes int) int {
	switch dist.Policy {
	case plan.Bind, plan.Interleave:
		return 1
	case plan.XWise:
		return min(nodes, pages)
	case plan.BlockCyclic:
		block := int(dist.Block / units.PageSize)
		return (pages + block - 1) / block
	}
	n := 0
	for _, r := range dist.Map {
		if r.Node >= 0 {
			n++
		}
	}
	return n
}

// simplify is the page map best of u with at most Options.MaxRanges ranges, if it loses
// no more than Options.Relative; else best.
func (d *demand) simplify(u *unit, best plan.Distribution) plan.Distribution {
	limit := d.opt.MaxRanges
	if limit <= 0 || ranges(best, u.pages, d.n) <= limit {
		return best
	}
	at := d.positions(u)
	simple := plan.Distribution{Policy: plan.Pages}
	for cost := 4 * float64(max(1, d.opt.RunCost)); ; cost *= 4 {
		simple.Map = d.runs(at, d.path(at, cost, d.opt.PageGain), u.pages)
		if ranges(simple, u.pages, d.n) <= limit {
			break
		}
	}
	before, after := d.evaluate(u, best), d.evaluate(u, simple)
	lost := after - min(before, after)
	if float64(lost) > d.opt.Relative/100*float64(u.all) {
		return best
	}
	u.lost, u.ranges = lost, ranges(best, u.pages, d.n)
	return simple
}

// rangeNotes says of entries what their number of ranges costs.
func (d *demand) rangeNotes(groups []group) (notes []string) {
	for i := range groups {
		for k := range groups[i].chosen {
			u := &groups[i].chosen[k]
			switch n := ranges(u.place, u.pages, d.n); {
			case d.opt.MaxRanges > 0 && n > d.opt.MaxRanges:
				notes = append(notes, fmt.Sprintf("%s: its place has %d ranges, more than the %d that memory is divided into by default: pages beyond them are made resident on their nodes at once where the profile saw them touched, or left to first touch (sysctl vm.max_map_count)",
					d.name(&groups[i], u), n, d.opt.MaxRanges))
			case u.ranges > 0 && u.place.Policy == plan.Pages:
				notes = append(notes, fmt.Sprintf("%s: its best page map has %d ranges, more than the %d that memory is divided into by default; with %s %.2f points more are remote",
					d.name(&groups[i], u), u.ranges, d.opt.MaxRanges, count(n, "range", "ranges"), d.points(u.lost)))
			}
		}
	}
	return notes
}
