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
func FindStuck(p *profile.Profile, pages []Page, uses *Uses, group func(i int) int) []Stuck {
	serial, parallel := access.SerialCode(p), uses.Parallel
	found := make(map[int]*Stuck)
	byRegion := make(map[int]map[int]uint64)
	rows := rowsOf(p, func(i int) bool {
		return group(i) >= 0 && !pages[i].Part && p.Pages[i].Home != topo.Unknown && Placeable(p.Objects[p.Pages[i].Object].Kind)
	})
	use := regionUses{nodes: parallel.Nodes}
	for i := range pages {
		best, most, all := parallel.Best(i, p.Pages[i].Home)
		if len(rows.of(i)) == 0 || most == all {
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
		for _, x := range use.sum(p, rows.of(i), serial) {
			region, counts := x.region, x.counts
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

// regionUses sums the rows of one page after the other by region and node, in memory that
// it uses again.
type regionUses struct {
	nodes int
	list  []regionUse
}

type regionUse struct {
	region int
	counts []uint64 // by node
}

// sum is the use of one page's rows, without serial code.
func (u *regionUses) sum(p *profile.Profile, rows []int32, serial func(*profile.Row) bool) []regionUse {
	u.list = u.list[:0]
	for _, i := range rows {
		if r := &p.Rows[i]; !serial(r) {
			u.of(int(r.Region)).counts[p.Threads[r.Thread].Node] += r.Count
		}
	}
	return u.list
}

// of is the entry of a region; a page has few.
func (u *regionUses) of(region int) *regionUse {
	for i := range u.list {
		if u.list[i].region == region {
			return &u.list[i]
		}
	}
	n := len(u.list)
	if n < cap(u.list) {
		u.list = u.list[:n+1]
	} else {
		u.list = append(u.list, regionUse{counts: make([]uint64, u.nodes)})
	}
	x := &u.list[n]
	x.region = region
	if x.counts == nil {
		x.counts = make([]uint64, u.nodes)
	}
	clear(x.counts)
	return x
}

// pageRows is the indices of the DRAM rows of each page, those of page i from begin[i] to
// begin[i+1].
type pageRows struct {
	begin []int32
	rows  []int32
}

func (x *pageRows) of(page int) []int32 { return x.rows[x.begin[page]:x.begin[page+1]] }

// rowsOf returns the rows of each page that keep wants.
func rowsOf(p *profile.Profile, keep func(page int) bool) *pageRows {
	x := &pageRows{begin: make([]int32, len(p.Pages)+2)}
	want := make([]bool, len(p.Pages))
	for i := range want {
		want[i] = keep(i)
	}
	wanted := func(r *profile.Row) bool { return r.Level == profile.DRAM && want[r.Page] }
	for i := range p.Rows {
		if r := &p.Rows[i]; wanted(r) {
			x.begin[r.Page+2]++
		}
	}
	for i := 2; i < len(x.begin); i++ {
		x.begin[i] += x.begin[i-1]
	}
	x.rows = make([]int32, x.begin[len(x.begin)-1])
	for i := range p.Rows {
		if r := &p.Rows[i]; wanted(r) {
			x.rows[x.begin[r.Page+1]] = int32(i)
			x.begin[r.Page+1]++
		}
	}
	return x
}
