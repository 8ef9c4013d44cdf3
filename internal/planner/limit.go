package planner

import (
	"cmp"
	"slices"
)

// dropped is the entries that were left out for the length of the plan.
type dropped struct {
	entries int
	saves   uint64
}

// beyond is the reason of groups of which limit left out all.
const beyond = "left out: the plan has as many entries as it may"

// limit keeps the MaxEntries units that save most.
func (d *demand) limit(groups []group) dropped {
	type at struct {
		group, unit int
		saves       uint64
	}
	var list []at
	for g := range groups {
		for u := range groups[g].chosen {
			list = append(list, at{g, u, groups[g].chosen[u].saves()})
		}
	}
	slices.SortStableFunc(list, func(a, b at) int { return cmp.Compare(b.saves, a.saves) })
	if len(list) <= d.opt.MaxEntries {
		return dropped{}
	}
	var drop dropped
	out := make(map[[2]int]bool)
	for _, a := range list[d.opt.MaxEntries:] {
		out[[2]int{a.group, a.unit}] = true
		drop.entries++
		drop.saves += a.saves
	}
	for g := range groups {
		var kept []unit
		for u, x := range groups[g].chosen {
			if !out[[2]int{g, u}] {
				kept = append(kept, x)
			}
		}
		if len(kept) < len(groups[g].chosen) && len(kept) == 0 {
			groups[g].reason = beyond
		}
		groups[g].chosen = kept
	}
	return drop
}
