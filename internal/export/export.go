// Package export writes a profile in the formats of other tools: its access table
// as CSV and Parquet, for spreadsheets and data frames, and as a profile that pprof
// opens.
//
// # Input
//
// A profile, perhaps restricted to some loops by access.Only.
//
// # Output
//
// WriteCSV and WriteParquet write one Record for each row of the profile's table,
// in its order, and the memory that they take does not grow with it. WritePprof
// writes sums of these rows, see there.
//
// # Limits
//
// Text that is not UTF-8 has U+FFFD where it is broken: readers of Parquet and of
// protocol buffers refuse it otherwise.
package export

import (
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Record is a row of the access table with the names of what its indices stand for.
type Record struct {
	Object string `parquet:"object,dict"` // as report names it: all allocations of one call stack are one
	Kind   string `parquet:"kind,dict"`   // of the object
	// Instance tells the objects of one name apart: it is the object's number in the profile.
	Instance int32 `parquet:"instance"`
	Page     int64 `parquet:"page"`   // number of the page in the object
	Thread   int32 `parquet:"thread"` // number in the profile: a rank that moves to another CPU has several
	Rank     int32 `parquet:"rank"`
	CPU      int32 `parquet:"cpu"`
	Node     int32 `parquet:"node"` // of the CPU
	// Home is the node that holds the page; nil is not known.
	Home       *int32 `parquet:"home,optional"`
	Region     string `parquet:"region,dict"` // the loop, or the function outside loops
	RegionKind string `parquet:"region_kind,dict"`
	Op         string `parquet:"op,dict"`    // "load" or "store"
	Level      string `parquet:"level,dict"` // that served the access: "L1", "L2", "LLC" or "DRAM"
	Accesses   int64  `parquet:"accesses"`
	// LatencyCycles is the sum over Accesses; 0 where the source has none.
	LatencyCycles int64 `parquet:"latency_cycles"`
}

var (
	ops    = [...]string{profile.Load: "load", profile.Store: "store"}
	levels = [...]string{profile.L1: "L1", profile.L2: "L2", profile.LLC: "LLC", profile.DRAM: "DRAM"}
)

// names are the texts of a profile's records.
type names struct {
	objects, regions []string
	homes            []*int32 // by node; the records share them
}

func findNames(p *profile.Profile) *names {
	groups, of := access.Groups(p)
	n := &names{objects: make([]string, len(p.Objects)), regions: make([]string, len(p.Regions))}
	for i, g := range of {
		n.objects[i] = valid(groups[g].Name)
	}
	for i := range p.Regions {
		n.regions[i] = valid(access.RegionName(p, i))
	}
	for i := range p.Run.Topology.Nodes {
		home := int32(i)
		n.homes = append(n.homes, &home)
	}
	return n
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// record fills x with row i of p.
func (n *names) record(p *profile.Profile, i int, x *Record) {
	r := &p.Rows[i]
	page, thread := &p.Pages[r.Page], &p.Threads[r.Thread]
	*x = Record{
		Object: n.objects[page.Object], Kind: string(p.Objects[page.Object].Kind), Instance: int32(page.Object), Page: int64(page.Index),
		Thread: r.Thread, Rank: int32(thread.Rank), CPU: int32(thread.CPU), Node: int32(thread.Node),
		Region: n.regions[r.Region], RegionKind: string(p.Regions[r.Region].Kind),
		Op: ops[r.Op], Level: levels[r.Level], Accesses: int64(r.Count), LatencyCycles: int64(r.Latency),
	}
	if page.Home != topo.Unknown {
		x.Home = n.homes[page.Home]
	}
}
