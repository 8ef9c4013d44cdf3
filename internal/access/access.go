// Package access answers who touched what, how often: sums of a profile's flat
// table over whatever the reader asks for.
//
// # Input
//
// A profile, perhaps restricted to some regions by Only.
//
// # Output
//
// Traffic per key (By: object, region, thread, …), the node × node Matrix, the
// use of every page by every node (Use), the match rate and the coverage.
//
// # Method
//
// One flat table, many projections: each is one pass over the rows. An access
// is local where the home of its page is the node of its thread, remote where
// it is another, unknown where nobody knows the home. Every row is counted,
// stacks, image and unknown memory too; local + remote + unknown is everything.
//
// # Limits
//
// A page has one home for its life in the table, so pages that the kernel moved
// during the run are counted by the home they had first. Accesses by the kernel
// and by the program's other processes are not in the table.
package access

import (
	"math"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Flow is a number of accesses, split by where they were served.
type Flow struct {
	Local, Remote, Unknown uint64
}

// Total is every access of f.
func (f Flow) Total() uint64 { return f.Local + f.Remote + f.Unknown }

// Known is the accesses whose page has a known home: the base of RemotePct.
func (f Flow) Known() uint64 { return f.Local + f.Remote }

// RemotePct is the share of remote accesses in those with a known home, in
// [0,100]; NaN where there are none.
func (f Flow) RemotePct() float64 { return Pct(f.Remote, f.Known()) }

// Pct is 100·part/whole; NaN where whole is 0.
func Pct(part, whole uint64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return 100 * float64(part) / float64(whole)
}

func (f *Flow) add(home, node topo.NodeID, count uint64) {
	switch home {
	case topo.Unknown:
		f.Unknown += count
	case node:
		f.Local += count
	default:
		f.Remote += count
	}
}

// Merge adds g to f.
func (f *Flow) Merge(g Flow) {
	f.Local += g.Local
	f.Remote += g.Remote
	f.Unknown += g.Unknown
}

// Traffic is accesses of any level, and those of them that DRAM served.
type Traffic struct {
	All, DRAM Flow
	Stores    uint64 // of All
}

// Merge adds u to t.
func (t *Traffic) Merge(u Traffic) {
	t.All.Merge(u.All)
	t.DRAM.Merge(u.DRAM)
	t.Stores += u.Stores
}

// By sums the rows of p by key: the result has n entries, key(r) says which one
// row r belongs to, and rows whose key is negative are left out.
func By(p *profile.Profile, n int, key func(r *profile.Row) int) []Traffic {
	sums := make([]Traffic, n)
	for i := range p.Rows {
		r := &p.Rows[i]
		k := key(r)
		if k < 0 {
			continue
		}
		home, node := p.Pages[r.Page].Home, p.Threads[r.Thread].Node
		sums[k].All.add(home, node, r.Count)
		if r.Level == profile.DRAM {
			sums[k].DRAM.add(home, node, r.Count)
		}
		if r.Op == profile.Store {
			sums[k].Stores += r.Count
		}
	}
	return sums
}

// Total is the traffic of the whole profile.
func Total(p *profile.Profile) Traffic {
	return By(p, 1, func(*profile.Row) int { return 0 })[0]
}

// ByObject, ByRegion and ByThread are the sums by index into the profile's
// slice of that name.
func ByObject(p *profile.Profile) []Traffic {
	return By(p, len(p.Objects), func(r *profile.Row) int { return p.Pages[r.Page].Object })
}

// ByRegion is the traffic of each region, see ByObject.
func ByRegion(p *profile.Profile) []Traffic {
	return By(p, len(p.Regions), func(r *profile.Row) int { return int(r.Region) })
}

// ByThread is the traffic of each thread, see ByObject.
func ByThread(p *profile.Profile) []Traffic {
	return By(p, len(p.Threads), func(r *profile.Row) int { return int(r.Thread) })
}

// Matrix is who reaches where. With n nodes, Reach[i*n+j] is accesses by
// threads of node i to memory of node j; Unknown[i] is accesses by node i to
// pages whose home nobody knows.
type Matrix struct {
	Nodes   int
	Reach   []uint64
	Unknown []uint64
}

// NodeMatrix returns the matrix of the accesses that DRAM served, or of all.
func NodeMatrix(p *profile.Profile, onlyDRAM bool) Matrix {
	n := len(p.Run.Topology.Nodes)
	m := Matrix{Nodes: n, Reach: make([]uint64, n*n), Unknown: make([]uint64, n)}
	for i := range p.Rows {
		r := &p.Rows[i]
		if onlyDRAM && r.Level != profile.DRAM {
			continue
		}
		home, node := p.Pages[r.Page].Home, int(p.Threads[r.Thread].Node)
		if home == topo.Unknown {
			m.Unknown[node] += r.Count
		} else {
			m.Reach[node*n+int(home)] += r.Count
		}
	}
	return m
}

// Imbalance is the accesses that the busiest node's memory serves, relative to
// the mean over all nodes: 1 is balanced, m.Nodes is everything on one node.
// NaN without accesses.
func (m Matrix) Imbalance() float64 {
	var sum, most uint64
	for j := range m.Nodes {
		var served uint64
		for i := range m.Nodes {
			served += m.Reach[i*m.Nodes+j]
		}
		sum += served
		most = max(most, served)
	}
	if sum == 0 {
		return math.NaN()
	}
	return float64(most) * float64(m.Nodes) / float64(sum)
}

// MatchPct is the share, in [0,100], of DRAM accesses outside stacks and image
// that fall in an object somebody can find: a heap site or a mapping with a call
// stack, a global with a symbol or, in a stripped file, with its module and
// offset. NaN without such accesses.
func MatchPct(p *profile.Profile) float64 {
	var matched, all uint64
	for o, t := range ByObject(p) {
		switch x := &p.Objects[o]; {
		case x.Kind.Private():
		case Matched(p, x):
			matched += t.DRAM.Total()
			fallthrough
		default:
			all += t.DRAM.Total()
		}
	}
	return Pct(matched, all)
}

// Matched reports whether o can be found in the program: by a call stack, by a
// symbol, or by module and offset where the file has no symbols.
func Matched(p *profile.Profile, o *profile.Object) bool {
	switch o.Kind {
	case profile.Heap, profile.Small, profile.Mapping:
		return o.Site >= 0 && len(p.Sites[o.Site].Frames) > 0 || o.File != ""
	case profile.Global:
		return o.Symbol != "" || o.File != "" || o.Module >= 0
	}
	return false
}

// CoveragePct is the share, in [0,100], of the pages seen to become resident
// that have at least one counted access. It is below 100 where accesses were
// sampled, or a page was touched by system calls only. NaN without pages.
func CoveragePct(p *profile.Profile) float64 {
	life := Lives(p)
	seen := make([]bool, len(p.Pages))
	for i := range p.Rows {
		seen[life[p.Rows[i].Page]] = true
	}
	var covered, all uint64
	for i := range life {
		if life[i] != i {
			continue
		}
		all++
		if seen[i] {
			covered++
		}
	}
	return Pct(covered, all)
}
