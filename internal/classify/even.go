package classify

import (
	"cmp"
	"slices"

	"numaopt/internal/profile"
)

// EvenUse says why the evenly used pages of a group have no good place.
type EvenUse struct {
	Group int
	Even  Share // the pages
	// Conflict is the pages that every loop by itself uses mostly from one node,
	// but not all from the same: another schedule of a loop can help (CGO'12 §3.2).
	Conflict Share
	// Regions are the regions with most DRAM accesses to the pages, most first.
	Regions []int
}

// clearShare is the share of one node in a region's accesses to a page from
// which on the region uses the page mostly from there.
const clearShare = 0.75

// FindEven explains the Even pages of each group with such pages, those with
// most DRAM accesses first. group is as in FindSerialInit.
func FindEven(p *profile.Profile, pages []Page, group func(i int) int) []EvenUse {
	found := make(map[int]*EvenUse)
	byRegion := make(map[int]map[int]uint64)
	n := len(p.Run.Topology.Nodes)
	for i, rows := range rowsOf(p, func(i int) bool { return pages[i].Even && pages[i].Class != Private && group(i) >= 0 }) {
		if len(rows) == 0 {
			continue
		}
		g := group(i)
		e := found[g]
		if e == nil {
			e = &EvenUse{Group: g}
			found[g], byRegion[g] = e, make(map[int]uint64)
		}
		e.Even.add(&pages[i])
		use := make(map[int][]uint64) // by region, then node
		for _, r := range rows {
			row := &p.Rows[r]
			if use[row.Region] == nil {
				use[row.Region] = make([]uint64, n)
			}
			use[row.Region][p.Threads[row.Thread].Node] += row.Count
			byRegion[g][row.Region] += row.Count
		}
		if conflict(use) {
			e.Conflict.add(&pages[i])
		}
	}
	list := make([]EvenUse, 0, len(found))
	for g, e := range found {
		for r := range byRegion[g] {
			e.Regions = append(e.Regions, r)
		}
		slices.SortFunc(e.Regions, func(a, b int) int {
			return cmp.Or(cmp.Compare(byRegion[g][b], byRegion[g][a]), cmp.Compare(a, b))
		})
		list = append(list, *e)
	}
	slices.SortFunc(list, func(a, b EvenUse) int {
		return cmp.Or(cmp.Compare(b.Even.DRAM, a.Even.DRAM), cmp.Compare(a.Group, b.Group))
	})
	return list
}

// conflict reports whether regions have different favourite nodes for a page,
// and regions without a favourite have a small part of its accesses.
func conflict(use map[int][]uint64) bool {
	var clear, all uint64
	favourites := make(map[int]bool)
	for _, counts := range use {
		var sum uint64
		best := 0
		for node, c := range counts {
			sum += c
			if c > counts[best] {
				best = node
			}
		}
		all += sum
		if float64(counts[best]) >= clearShare*float64(sum) {
			clear += sum
			favourites[best] = true
		}
	}
	return len(favourites) > 1 && float64(clear) >= clearShare*float64(all)
}

// rowsOf returns for each page that keep wants the indices of its DRAM rows.
func rowsOf(p *profile.Profile, keep func(page int) bool) [][]int {
	want := make([]bool, len(p.Pages))
	for i := range want {
		want[i] = keep(i)
	}
	rows := make([][]int, len(p.Pages))
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Level == profile.DRAM && want[r.Page] {
			rows[r.Page] = append(rows[r.Page], i)
		}
	}
	return rows
}
