package classify

import (
	"cmp"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Stuck is the DRAM accesses of parallel code to one group that stay remote with
// each page on the node that uses it most, and why: where pages cannot help.
type Stuck struct {
	Group  int
	Remote uint64
	// Conflict is the part of Remote by loops that by themselves use a page mostly
	// from one node, which is not the page's best: another schedule of such a loop
	// can help (CGO'12 §3.2). The rest is of loops that by themselves use a page
	// from several nodes.
	Conflict uint64
	Even     Share // the pages that no node uses clearly most
	// Regions are those that make Remote, most first.
	Regions []RegionRemote
}

// RegionRemote is a region's part of something remote.
type RegionRemote struct {
	Region int
	Remote uint64
}

// clearShare is the share of one node in a region's accesses to a page from
// which on the region by itself uses the page mostly from there.
const clearShare = 0.75

// FindStuck returns the groups with such accesses, most first. group is as in
// FindSerialInit. Objects that no plan places are not judged, nor are pages
// without a known home.
func FindStuck(p *profile.Profile, pages []Page, group func(i int) int) []Stuck {
	serial := access.SerialCode(p)
	parallel := access.PageUse(p, func(r *profile.Row) bool { return !serial(r) })
	found := make(map[int]*Stuck)
	byRegion := make(map[int]map[int]uint64)
	rows := rowsOf(p, func(i int) bool {
		return group(i) >= 0 && !pages[i].Part && p.Pages[i].Home != topo.Unknown && Placeable(p.Objects[p.Pages[i].Object].Kind)
	})
	for i := range pages {
		best, most, all := parallel.Best(i, p.Pages[i].Home)
		if len(rows[i]) == 0 || most == all {
			continue
		}
		g := group(i)
		s := found[g]
		if s == nil {
			s = &Stuck{Group: g}
			found[g], byRegion[g] = s, make(map[int]uint64)
		}
		if pages[i].Even {
			s.Even.add(&pages[i])
		}
		s.Remote += all - most
		for region, counts := range useByRegion(p, rows[i], serial, parallel.Nodes) {
			away := sum(counts) - counts[best]
			if away == 0 {
				continue
			}
			byRegion[g][region] += away
			if own := slices.Max(counts); float64(own) >= clearShare*float64(sum(counts)) && own != counts[best] {
				s.Conflict += away
			}
		}
	}
	list := make([]Stuck, 0, len(found))
	for g, s := range found {
		for r, n := range byRegion[g] {
			s.Regions = append(s.Regions, RegionRemote{r, n})
		}
		slices.SortFunc(s.Regions, func(a, b RegionRemote) int {
			return cmp.Or(cmp.Compare(b.Remote, a.Remote), cmp.Compare(a.Region, b.Region))
		})
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b Stuck) int {
		return cmp.Or(cmp.Compare(b.Remote, a.Remote), cmp.Compare(a.Group, b.Group))
	})
	return list
}

// useByRegion sums the rows of one page, without serial code, by region and node.
func useByRegion(p *profile.Profile, rows []int, serial func(*profile.Row) bool, nodes int) map[int][]uint64 {
	use := make(map[int][]uint64, 4)
	for _, i := range rows {
		r := &p.Rows[i]
		if serial(r) {
			continue
		}
		if use[int(r.Region)] == nil {
			use[int(r.Region)] = make([]uint64, nodes)
		}
		use[int(r.Region)][p.Threads[r.Thread].Node] += r.Count
	}
	return use
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
