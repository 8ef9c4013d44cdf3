package access

import (
	"slices"

	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Use is how much each node uses each page: DRAM[page*Nodes+node] is accesses
// that DRAM served.
type Use struct {
	Nodes int
	DRAM  []uint64
}

// PageUse returns the use of every page of p by the rows for which keep is true;
// a nil keep counts all.
func PageUse(p *profile.Profile, keep func(*profile.Row) bool) Use {
	n := len(p.Run.Topology.Nodes)
	u := Use{Nodes: n, DRAM: make([]uint64, n*len(p.Pages))}
	for i := range p.Rows {
		r := &p.Rows[i]
		if r.Level == profile.DRAM && (keep == nil || keep(r)) {
			u.DRAM[int(r.Page)*n+int(p.Threads[r.Thread].Node)] += r.Count
		}
	}
	return u
}

// Page is the accesses to page by each node; it shares u's memory.
func (u Use) Page(page int) []uint64 { return u.DRAM[page*u.Nodes : (page+1)*u.Nodes] }

// Merged is u with the use of pages that are part of another added to that one, see
// Lives; u itself where there are none.
func (u Use) Merged(life []int) Use {
	whole := true
	for i, of := range life {
		whole = whole && i == of
	}
	if whole {
		return u
	}
	u.DRAM = slices.Clone(u.DRAM)
	for i, of := range life {
		if i == of {
			continue
		}
		for n, c := range u.Page(i) {
			u.DRAM[of*u.Nodes+n] += c
			u.DRAM[i*u.Nodes+n] = 0
		}
	}
	return u
}

// Best is the node with most accesses to page, how many they are, and the
// accesses of all nodes together. Among equals it is prefer (the home, say), or
// else the lowest number; topo.Unknown where nobody has any.
func (u Use) Best(page int, prefer topo.NodeID) (best topo.NodeID, most, all uint64) {
	best = topo.Unknown
	for node, count := range u.Page(page) {
		all += count
		if count > most || count == most && count > 0 && topo.NodeID(node) == prefer {
			best, most = topo.NodeID(node), count
		}
	}
	return best, most, all
}

// SerialCode returns a predicate: is the row's access made by the main thread
// in code that only it runs, outside all loops? The code of threads that the
// program started itself is parallel, also where the main thread runs it.
func SerialCode(p *profile.Profile) func(r *profile.Row) bool {
	serial := SerialRegions(p)
	return func(r *profile.Row) bool {
		return serial[r.Region] && p.Threads[r.Thread].Rank == 0
	}
}

// SerialRegions tells for each region of p whether it is code outside loops that
// threads started by the program do not run.
func SerialRegions(p *profile.Profile) []bool {
	type code struct {
		module int
		offset uint64
	}
	parallel := make(map[code]bool)
	for _, r := range p.Regions {
		if r.Kind != profile.Loop && r.Thread != "" {
			parallel[code{r.Code.Module, r.Code.Offset}] = true
		}
	}
	serial := make([]bool, len(p.Regions))
	for i, r := range p.Regions {
		serial[i] = r.Kind != profile.Loop && r.Thread == "" &&
			(r.Kind == profile.Serial || !parallel[code{r.Code.Module, r.Code.Offset}])
	}
	return serial
}
