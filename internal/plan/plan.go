// Package plan is contract 2: what shall be done with the pages, loops and threads
// of a program. A plan is a YAML file that people review in a diff. It never names
// an address, and node numbers only relative to the topology it was made for:
// launch resolves it for the machine at hand.
//
// # The file
//
// One YAML document, from the line "numaopt-plan: 1" to the line "...". Sizes
// are bytes or have a suffix (64MiB), offsets are hexadecimal, page maps are
// strings of runs, NODE*PAGES each. plan.schema.json describes every field;
// fields that it does not know are errors, and so is a file that ends early.
// Comments above an entry say why it is there; they are not read back.
package plan

import (
	"fmt"

	"numaopt/internal/units"
)

// Version is the format version that this package writes.
const Version = 1

// Plan is one plan. Objects are in the order of the accesses they save.
type Plan struct {
	Version int     `yaml:"numaopt-plan"`
	From    From    `yaml:"from"`
	Predict Predict `yaml:"predicted"`
	Threads Threads `yaml:"threads"`
	// PageSize is the units that get one node, aligned in memory; 0 is the page.
	PageSize units.Bytes `yaml:"page-size,omitempty"`
	Objects  []Entry     `yaml:"objects"`
	// Loops are those that do not keep OpenMP's schedule; equal groups together.
	Loops []Loop `yaml:"loops,omitempty"`
	// Notes are what the planner could not do and why, for the reader.
	Notes []string `yaml:"notes,omitempty"`
}

// From says what the plan was made from.
type From struct {
	Command  []string `yaml:"command,flow"`
	Topology string   `yaml:"topology"` // "4x2"; Nodes of every distribution below count in it
	Nodes    int      `yaml:"nodes"`
	Only     []string `yaml:"only,omitempty,flow"`
	Profile  string   `yaml:"profile"` // checksum of the profile file
	// Again is the checksums of profiles of further runs, by which was measured
	// what repeats; empty is none.
	Again []string `yaml:"again,omitempty,flow"`
}

// Predict is a prediction in per cent of DRAM accesses with a known home.
type Predict struct {
	RemoteBefore float64 `yaml:"remote_dram_pct_before"`
	RemoteAfter  float64 `yaml:"remote_dram_pct_after"`
	// PagesOnly is what the objects of a plan would change without its loops. It
	// is of a whole plan with loops only: without loops it is RemoteAfter.
	PagesOnly float64 `yaml:"remote_dram_pct_pages_only,omitempty"`
	// Source is what changes of the source would leave, of a whole plan only; absent
	// where they would save less than a point beside it, or rest on an assumption.
	Source *float64 `yaml:"remote_dram_pct_source_change,omitempty"`
}

// Threads says how threads are bound: "compact", "spread" or "none".
type Threads struct {
	Bind string `yaml:"bind"`
}

// Entry places one object.
type Entry struct {
	Name string `yaml:"name"`
	Kind string `yaml:"kind"` // "heap", "mapping" or "global"
	Why  string `yaml:"-"`    // written as a comment above the entry
	// Bytes is the size that the profile saw; a heap object matches within a
	// factor of 64, because relative distributions survive another problem size.
	Bytes units.Bytes `yaml:"bytes"`
	// Stack names a heap or mapping object, innermost frame first.
	Stack []Frame `yaml:"stack,omitempty"`
	// Instance says which allocations of Stack are meant; nil is every one, each
	// placed by itself.
	Instance *Instance `yaml:"instance,omitempty,flow"`
	// Symbol, Module and File name a global; a member of a COMMON block as "flds_(u)".
	Symbol string `yaml:"symbol,omitempty"`
	Module Module `yaml:"module,omitempty,flow"`
	File   string `yaml:"file,omitempty"`

	Place Distribution `yaml:"place"`
	// Otherwise is its place where the plan's loops keep OpenMP's schedule: most of them
	// from the start, as in another build or on other nodes, or all of them once a sweep of
	// block-exclusive loops, if no others are permuted, has another length than in the plan.
	// Pages and schedules belong together. Absent is Place.
	Otherwise *Distribution `yaml:"otherwise,omitempty"`
	// Touched is which pages the profile saw touched, as runs; empty is not
	// known. Offsets are pages of the object, or of the instances together.
	Touched Runs    `yaml:"touched,omitempty"`
	Predict Predict `yaml:"predicted"`
}

// Module is an ELF file.
type Module struct {
	Name    string `yaml:"name"`               // base name
	BuildID string `yaml:"build-id,omitempty"` // see ident.Module
}

// Frame is one return address of a call stack.
type Frame struct {
	Module Module `yaml:"module,flow"`
	Offset uint64 `yaml:"offset"` // ELF virtual address of the return address
	// Function, File, Line and FunctionLine are of the innermost inlined function
	// at the call; they find the frame again after a rebuild.
	Function     string `yaml:"function,omitempty"`
	File         string `yaml:"file,omitempty"`
	Line         int    `yaml:"line,omitempty"`
	FunctionLine int    `yaml:"function-line,omitempty"`
	// InlinedAt holds the places that Function was inlined at, innermost first,
	// those in headers of the system left out.
	InlinedAt []Place `yaml:"inlined-at,omitempty"`
}

// Place is a place in source code that survives edits above its function.
type Place struct {
	Function     string `yaml:"function,omitempty"`
	File         string `yaml:"file,omitempty"`
	Line         int    `yaml:"line,omitempty"`
	FunctionLine int    `yaml:"function-line,omitempty"`
}

// Instance selects allocations of one site: those that the thread of Rank made,
// Count of them from ordinal First. Where Count > 1 they are placed together,
// as one array in the order of their ordinals.
type Instance struct {
	Rank  int `yaml:"rank"`
	First int `yaml:"first"`
	Count int `yaml:"count"`
}

// Schedule says which thread takes which chunk of a loop (DESIGN §5). Chunks are
// those of OpenMP's unchunked static schedule, which gives chunk t to thread t.
type Schedule string

// The schedules. With T threads on P nodes, T/P on each in the order of the nodes:
const (
	// StaticInverse: thread t takes chunk T-1-t (CGO'12, fig. 12a). It is relative:
	// it holds for any number of nodes and threads.
	StaticInverse Schedule = "static-inverse"
	// ByNodes: thread i of node n takes chunk Loop.Nodes[n]*(T/P)+i, so the threads
	// of a node take the chunks of another node's threads.
	ByNodes Schedule = "nodes"
	// BlockExclusive (CGO'12, fig. 12b and 13): a serial loop around the parallel
	// region runs it Loop.Sweep times in a row, which is a sweep of P phases. In phase
	// q, instances q*Sweep/P to (q+1)*Sweep/P, thread i of node n takes chunk
	// Loop.Nodes[(n+q*Step) mod P]*(T/P)+i: over the phases, each node takes the
	// chunks of each node once.
	BlockExclusive Schedule = "block-exclusive"
	// Affine is for a loop that OpenMP hands out while it runs (dynamic, guided): its
	// iterations are cut into one part for each node, in proportion to its threads.
	// They take chunks of their node's part, and then from the end of what other
	// nodes have left. It holds for any number of nodes and threads.
	Affine Schedule = "affine"
)

// Loop gives the chunks of one worksharing loop to other threads. It is named by
// its call site: the call that fetches the bounds of the loop, in gcc's code the
// call of omp_get_thread_num, which may serve several loops of a function.
type Loop struct {
	Name   string `yaml:"name"` // "lu.c:88 (blts)"
	Why    string `yaml:"-"`    // written as a comment above the loop
	Module Module `yaml:"module,flow"`
	Offset uint64 `yaml:"offset"` // ELF virtual address of the return address
	// Function, File, Line and FunctionLine find the call again after a rebuild.
	Function     string `yaml:"function,omitempty"`
	File         string `yaml:"file,omitempty"`
	Line         int    `yaml:"line,omitempty"`
	FunctionLine int    `yaml:"function-line,omitempty"`
	Runtime      string `yaml:"runtime"` // "libgomp" or "libomp"
	// Group > 0: all loops of the plan with this number are permuted, or none: a
	// thread may rely on taking the same iterations in each of them.
	Group    int      `yaml:"group,omitempty"`
	Schedule Schedule `yaml:"schedule"`
	Nodes    []int    `yaml:"nodes,omitempty,flow"` // for "nodes" and "block-exclusive", by node
	Sweep    int      `yaml:"sweep,omitempty"`      // for "block-exclusive"; P or more
	Step     int      `yaml:"step,omitempty"`       // for "block-exclusive"; from 1 to P-1, with no factor in common with P
	Predict  Predict  `yaml:"predicted"`
}

// String names the schedule as comments and reports do: "static-inverse",
// "threads of nodes 0 to 3 take the chunks of nodes [1 2 3 0]".
func (l *Loop) String() string {
	switch l.Schedule {
	case StaticInverse:
		return string(l.Schedule)
	case BlockExclusive:
		return fmt.Sprintf("%s in sweeps of %d instances, from nodes %v on by %d node a phase", l.Schedule, l.Sweep, l.Nodes, l.Step)
	}
	return fmt.Sprintf("threads of nodes 0 to %d take the chunks of nodes %v", len(l.Nodes)-1, l.Nodes)
}

// Policy is the family of a distribution (DESIGN §5).
type Policy string

// The policies.
const (
	Bind        Policy = "bind"         // all on Node
	Interleave  Policy = "interleave"   // page mod nodes
	BlockCyclic Policy = "block-cyclic" // (offset / Block) mod nodes
	XWise       Policy = "x-wise"       // one contiguous part for each node, equal to a page
	Pages       Policy = "pages"        // Map
)

// Distribution is object offset → node.
type Distribution struct {
	Policy Policy      `yaml:"policy"`
	Node   int         `yaml:"node,omitempty"`       // for bind
	Block  units.Bytes `yaml:"block,omitempty"`      // for block-cyclic; a multiple of the page
	Nodes  []int       `yaml:"nodes,omitempty,flow"` // for interleave: over these only; empty is all
	Map    Runs        `yaml:"map,omitempty"`        // for pages; Node -1 leaves the page to first touch
}

// Run is Count consecutive pages on Node.
type Run struct {
	Node  int
	Count int
}

// Runs is a page map in run-length form. In YAML it is a string such as
// "0*12 1*13 -*4": node*pages, "-" for pages left alone.
type Runs []Run
