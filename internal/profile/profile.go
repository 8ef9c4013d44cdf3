// Package profile is contract 1: what was observed in one run of a program.
//
// Its core is the sufficient statistic of every analysis: a sparse table
// (page, thread, region, operation, serving level) → count. It grows with
// pages × threads × regions that really met, never with samples or accesses. Beside it
// are histograms of load latencies and the cache lines that nodes share.
// Every source (emulation today, hardware samples and imports later) ends in
// this one model; nothing to the right of it knows where a profile came from.
package profile

import (
	"time"

	"numaopt/internal/ident"
	"numaopt/internal/topo"
)

// Profile is one run. It is plain data: what refers to something else does so
// by index into the slices of this struct. It is not changed after ingest.
type Profile struct {
	Run     Run            `json:"run"`
	Modules []ident.Module `json:"modules"`
	Sites   []Site         `json:"sites"`
	Places  []ident.Code   `json:"places"` // code of first touches, see Page.Place
	Objects []Object       `json:"objects"`
	Regions []Region       `json:"regions"`
	Threads []Thread       `json:"threads"`

	// The tables are the bulk; they are stored as columns. Latencies and Lines are of
	// samples, and empty where the source has none.
	Pages     []Page    `json:"-"`
	Rows      []Row     `json:"-"`
	Latencies []Latency `json:"-"`
	Lines     []LineUse `json:"-"`
	// CodeUses and Intervals are where in the source and when memory was accessed, in
	// the order of their fields as far as these are no counts; empty where the source
	// of the profile does not tell.
	Codes     []ident.Code `json:"codes,omitempty"` // instructions, one for a line; see CodeUse
	CodeUses  []CodeUse    `json:"-"`
	Intervals []Interval   `json:"-"`

	// Warnings are for the reader of any report made from the profile.
	Warnings []string `json:"warnings,omitempty"`
}

// Run says where the profile came from and how far to trust it.
type Run struct {
	Source   string        `json:"source"` // "emulate"
	Command  []string      `json:"command"`
	Dir      string        `json:"dir"`
	Host     string        `json:"host"`
	Version  string        `json:"version"` // of the numaopt that recorded it
	Start    time.Time     `json:"start"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	Topology topo.Topology `json:"topology"` // the machine that the program saw
	Bind     string        `json:"bind"`     // "compact", "spread" or "none"
	// Pinned says who bound threads other than numaopt, e.g. "OMP_PROC_BIND=close"
	// or "sched_setaffinity"; empty if nobody.
	Pinned []string `json:"pinned,omitempty"`
	// Cache is the cache model under which serving levels were decided.
	Cache topo.CacheModel `json:"cache"`
	// Period is the number of accesses for which one sample stands; 1 is a full trace.
	Period uint64 `json:"period"`
	// HugePages is the machine's /sys/kernel/mm/transparent_hugepage/enabled: "always",
	// "madvise" or "never"; empty is not known, or none.
	HugePages string `json:"huge_pages,omitempty"`
	// Plan is the file name of the plan that was in force; empty if none.
	Plan string `json:"plan,omitempty"`
	// Complete is false where the program was killed or the recording cut short.
	Complete bool `json:"complete"`
	// ExitStatus is the program's, 128+signal if a signal ended it.
	ExitStatus int `json:"exit_status"`
	// Processes counts the observed processes; the profile is of the one with
	// the most accesses, OtherAccesses is what the others made.
	Processes     int    `json:"processes"`
	OtherAccesses uint64 `json:"other_accesses,omitempty"`
	// Recording is how samples were taken; nil where accesses were counted.
	Recording *Recording `json:"recording,omitempty"`
	// IntervalWidth is the length of one part of the run, see Interval, by the clock
	// IntervalClock; 0 is that there are none.
	IntervalWidth uint64 `json:"interval_width,omitempty"`
	IntervalClock Clock  `json:"interval_clock,omitempty"`
}

// Clock is what the parts of a run are measured by.
type Clock string

// The clocks. Under emulation a thread's time is the accesses that it made: wall time
// would be the emulator's, which runs many threads on few CPUs. Threads that wait are
// put at the time of those that they waited for; so the clock says who worked while
// others waited, and nothing of what a remote access costs.
const (
	Nanoseconds Clock = "ns"
	Accesses    Clock = "accesses"
)

// Recording is how a profile of samples was taken, as far as that is known.
type Recording struct {
	Recorder string   `json:"recorder,omitempty"` // "perf 6.1.187"
	Kind     string   `json:"kind,omitempty"`     // "Intel PEBS"
	Events   []string `json:"events,omitempty"`
	// WishedPeriod or WishedFrequency (samples a second and CPU) is what was asked
	// for; Run.Period is the mean of what came.
	WishedPeriod    uint64 `json:"wished_period,omitempty"`
	WishedFrequency uint64 `json:"wished_frequency,omitempty"`
	// PID is the process that was attached to; 0 is a program that was started.
	PID        int  `json:"pid,omitempty"`
	SystemWide bool `json:"system_wide,omitempty"`
	// Samples were read, Used are in the table; Lost found no room in the kernel's
	// buffer, and Throttled counts how often the kernel stopped sampling.
	Samples   uint64 `json:"samples"`
	Used      uint64 `json:"used"`
	Lost      uint64 `json:"lost,omitempty"`
	Throttled uint64 `json:"throttled,omitempty"`
	// DRAMPeriod is the accesses for which a sample of DRAM stands in the mean: loads and
	// stores may be sampled at different periods, and Run.Period is the mean of all. The
	// samples tell as much of a share as equal ones at EvenPeriod would, of page faults
	// independent ones. 0 is not known.
	DRAMPeriod float64 `json:"dram_period,omitempty"`
	EvenPeriod float64 `json:"even_period,omitempty"`
	// Rate is Used a second and thread.
	Rate float64 `json:"rate,omitempty"`
	// Notes are limits of kernel and processor that the recording was fitted to.
	Notes []string `json:"notes,omitempty"`
}

// Site is a call stack at which objects are allocated, innermost frame first.
// Offsets are return addresses. Frames of allocator wrappers are kept.
type Site struct {
	Frames []ident.Code `json:"frames"`
}

// Kind is the kind of an object.
type Kind string

// The kinds. Stack and Image are private in the sense of CGO'12 §2.2 and
// excluded from placement and from sharing.
const (
	Heap    Kind = "heap"    // one allocation of at least a page
	Small   Kind = "small"   // all smaller allocations of one site, by the pages that they fill most of
	Global  Kind = "global"  // a symbol of .data, .bss or a COMMON block
	Mapping Kind = "mapping" // an mmap of the program's own
	Stack   Kind = "stack"   // a thread's stack and TLS
	Image   Kind = "image"   // program and libraries: code, constants, symbols smaller than a page
	Unknown Kind = "unknown" // touched, and nobody knows what it is
)

// Object is one instance of an allocation, one symbol, one stack.
type Object struct {
	Kind Kind   `json:"kind"`
	Name string `json:"name"` // what a person recognises: "grid.c:42 (init)", "u in bt.c"
	// Site is the index of the call stack for Heap, Small and Mapping, else -1.
	Site int `json:"site"`
	// Rank and Ordinal name the instance: the Ordinal-th allocation (from 0)
	// that the thread of this rank made at Site.
	Rank    int `json:"rank"`
	Ordinal int `json:"ordinal"`
	// Overlaps is true where an earlier instance of (Site, Rank) was still live
	// when this one was allocated: rows of one matrix rather than one buffer again.
	Overlaps bool `json:"overlaps,omitempty"`
	// FileBacked is true for a Mapping of a file: its pages are the page cache's,
	// on the node of whoever first read them, and no plan places them.
	FileBacked bool `json:"file_backed,omitempty"`
	// Placed is true where the program itself chose the nodes of half of the pages or
	// more, by mbind, set_mempolicy, move_pages or numaopt.h: its call comes after a
	// plan's, and wins.
	Placed bool `json:"placed,omitempty"`
	// Module, Symbol, File and Offset name a Global (Module also an Image).
	Module int    `json:"module"` // -1 is none
	Symbol string `json:"symbol,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Offset uint64 `json:"offset,omitempty"` // ELF virtual address
	// Bytes is the size asked for; Head the offset of the object's first byte in
	// its first page, 0 <= Head < 4096.
	Bytes int64 `json:"bytes"`
	Head  int   `json:"head,omitempty"`
}

// RegionKind is the kind of a region.
type RegionKind string

// The kinds of regions.
const (
	Loop     RegionKind = "loop"     // a parallel region, or a worksharing loop in one, with all that its body calls
	Function RegionKind = "function" // code outside loops, by the function of the instruction
	Serial   RegionKind = "serial"   // code outside loops whose function is not known
)

// Region is where in the program accesses come from: the thread's current
// worksharing loop, or the parallel region outside of such loops, or outside any
// region the function of the accessing instruction.
type Region struct {
	Kind RegionKind `json:"kind"`
	Name string     `json:"name"` // "sweep.c:88 (sweep_x)"; the function's name
	Code ident.Code `json:"code"` // entry of the outlined or plain function, for a worksharing loop its region's
	// Site is the call site of a worksharing loop: where the call that fetches its
	// bounds returns to, __kmpc_for_static_init_* in code of clang, flang and icx,
	// omp_get_thread_num in code of gcc and gfortran, where one call may serve
	// several loops. Module -1: the region as a whole, outside such loops.
	Site ident.Code `json:"site"`
	// Runtime is "libgomp" or "libomp" for a worksharing loop.
	Runtime string `json:"runtime,omitempty"`
	// Schedule is "static" for an unchunked static loop, Affine for one that ran so in
	// place of dynamic or guided; empty is not known, or another.
	Schedule string `json:"schedule,omitempty"`
	// Group > 0: in some execution no barrier came between the worksharing loops of
	// this outlined function with the same number, so a thread may rely on having
	// the same iterations in them: they must be permuted alike.
	Group int `json:"group,omitempty"`
	// Invocations counts the instances of a worksharing loop, at rank 0 of the team.
	Invocations uint64 `json:"invocations,omitempty"`
	// Sweep is how often the parallel region of a loop runs in a row, without another
	// region between: the trips of a serial loop around it. 0 if that varies.
	Sweep uint64 `json:"sweep,omitempty"`
	// Function is the source function that contains the loop ("sweep_x"), or the
	// function itself.
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	// Thread is the start routine of the thread that ran it, for threads that the
	// program started itself; empty for the main thread and OpenMP teams.
	Thread string `json:"thread,omitempty"`
	// Entries is how often a loop was entered by a team (counted at its rank 0); 0 if not counted.
	Entries uint64 `json:"entries,omitempty"`
	// Dynamic is true for a loop that hands out its work while it runs (schedules
	// dynamic and guided, tasks, sections, teams inside teams): which thread made
	// which of its accesses is chance and differs from run to run.
	Dynamic bool `json:"dynamic,omitempty"`
}

// Affine is the schedule of a loop that OpenMP hands out while it runs, where its
// chunks were handed out by node instead: such a loop is Dynamic all the same.
const Affine = "affine"

// Worksharing reports whether r is a worksharing loop of known site.
func (r *Region) Worksharing() bool {
	return r.Kind == Loop && r.Site.Module >= 0 && r.Site.Offset != 0
}

// Thread is one rank on one CPU. A thread that is pinned elsewhere during the
// run appears again with its new CPU.
type Thread struct {
	Rank int         `json:"rank"` // lowest not in use at start; 0 is the main thread
	CPU  int         `json:"cpu"`
	Node topo.NodeID `json:"node"`
	// Pinned is true where the program itself chose the CPU.
	Pinned bool `json:"pinned,omitempty"`
}

// Page is one base page of one object on one home. A page that lost its home
// (munmap, MADV_DONTNEED) and was touched again elsewhere appears twice.
type Page struct {
	Object int // index in Objects
	// Index is the page's number in the object, from 0 at the page of its first byte.
	Index int
	// Home is the node that holds the page; topo.Unknown while it was only read
	// and never written (the kernel's zero page). A page of a file is where the
	// first of the program's threads to read, write or touch that part of the file
	// brought it into the page cache, until a private mapping writes it: the copy
	// is the writer's.
	Home topo.NodeID
	// Thread first touched the page (index in Threads) from Region, at Place
	// (index in Places); each is -1 if not known. What a system library or the
	// kernel touched is put down to the program's code that called last.
	Thread, Region, Place int
	// Serial is true if that touch happened outside any loop while no other
	// thread had touched the page.
	Serial bool
}

// Op is the operation of an access.
type Op uint8

// The operations.
const (
	Load Op = iota
	Store
)

// Level is where an access was served.
type Level uint8

// The levels. DRAM is a miss of the node's LLC: load or write-allocate,
// write-backs and prefetches not counted.
const (
	L1 Level = iota
	L2
	LLC
	DRAM
)

// Row is one cell of the table. Count is in accesses: a sample of period N
// counts N.
type Row struct {
	Page   int32 // index in Pages
	Thread int32 // index in Threads
	Region int32 // index in Regions
	Op     Op
	Level  Level
	// First and Last are the parts of the sweep of a loop, as Region.Sweep has it, in
	// which the accesses of this row's page, thread and loop that missed the L1 were
	// the first and the last: instance i of n is in part i*SweepParts/n. Both are 0
	// where there is no sweep; 0 and SweepParts-1 also mean that it is not known.
	First, Last uint8
	Count       uint64
	// Latency is the sum in cycles over Count accesses; 0 where the source has none.
	Latency uint64
}

// SweepParts is in how many equal parts a sweep is divided, see Row: for as many
// phases as most machines have nodes, each is of whole parts.
const SweepParts = 240

// CodeUse is the DRAM accesses that one line of source, known by an instruction of it,
// makes to one object in one region.
type CodeUse struct {
	Code   int32 // index in Codes
	Object int32 // index in Objects
	Region int32 // index in Regions
	Op     Op
	// Local, Remote and Unknown are accesses by where the page was; over all entries they
	// add up to the rows' DRAM accesses. Here each access tells for itself: one to a page that
	// was read before its first store, or of a sample that does not say, may be Unknown
	// and known in the rows. Profiles of page faults have no CodeUses and no Intervals.
	Local, Remote, Unknown uint64
	// Latency is the sum in cycles over Loads of these accesses; both 0 where the source has none.
	Latency, Loads uint64
}

// Total is every access of u.
func (u *CodeUse) Total() uint64 { return u.Local + u.Remote + u.Unknown }

// Interval is what one thread did in one region during one part of the run with memory
// of one node. Where a thread has no Interval it waited, or was not there.
type Interval struct {
	Thread int32       // index in Threads
	At     int32       // the part: from At*Run.IntervalWidth after the start on
	Region int32       // index in Regions
	Home   topo.NodeID // of the memory, topo.Unknown where it is not known
	Count  uint64      // DRAM accesses; they add up to the rows'
	// Work is the accesses of any level. Those of which the source does not tell the
	// home have an entry with topo.Unknown. Samples of it are few: it says that a thread
	// worked rather than how much.
	Work uint64
}

// MostIntervals is into how many parts a run is divided at most: more than a wide
// screen has pixels, and a run of any length still fits.
const MostIntervals = 2048
