package planner

import (
	"cmp"
	"slices"

	"numaopt/internal/plan"
)

// balance interleaves objects that the plan does not make more local, over the
// nodes that use them, where that takes load off the busiest memory controller
// and makes nothing remote. Those with most accesses come first.
func (d *demand) balance(groups []group) {
	load := d.split(groups, false).Load
	order := make([]int, 0, len(groups))
	for g := range groups {
		if len(groups[g].chosen) == 0 && len(groups[g].objects) > 0 {
			order = append(order, g)
		}
	}
	weight := func(g int) (all uint64) {
		for i := range groups[g].cells {
			all += groups[g].cells[i].all
		}
		return all
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight(b), weight(a)) })
	for _, g := range order {
		u, after, ok := d.interleave(&groups[g], load)
		if !ok || imbalance(load)-imbalance(after) < d.opt.MinBalance {
			continue
		}
		groups[g].chosen = []unit{u}
		groups[g].reason = "used evenly"
		load = after
	}
}

// interleave is g interleaved over its users, and the load of the nodes with it;
// false where that would make accesses remote, or is not worth placing so many
// allocations.
func (d *demand) interleave(g *group, load []uint64) (unit, []uint64, bool) {
	u := d.alike(g)
	u.before, _, u.all = d.totals(u.cells)
	used := make([]uint64, d.n)
	after := slices.Clone(load)
	for i := range u.cells {
		if c := &u.cells[i]; c.home >= 0 {
			for n, count := range d.of(d.expected.use, c.profile) {
				used[n] += count
			}
			after[c.home] -= min(c.all, after[c.home])
		}
	}
	users := d.users(used, u.all)
	if len(users) < 2 || u.pages < 2 || u.all < 10*d.opt.PlaceCost*uint64(len(u.objects)) {
		return u, nil, false
	}
	for _, n := range users {
		after[n] += u.all / uint64(len(users))
	}
	u.place = plan.Distribution{Policy: plan.Interleave}
	if len(users) < d.n {
		u.place.Nodes = users
	}
	u.after = d.evaluate(&u, u.place)
	return u, after, u.after <= u.before
}

// users is the nodes with memory that make at least half an equal share of all
// accesses.
func (d *demand) users(used []uint64, all uint64) []int {
	var list []int
	for n, count := range used {
		if d.canHold[n] && count > 0 && count*uint64(2*d.n) >= all {
			list = append(list, n)
		}
	}
	return list
}
