// Package runfile is the contract between the Go side and runtime-c: the text
// that tells the preload library what to do in one run of a program, and the
// environment that carries it there.
//
// # Format
//
// Lines of fields separated by one space; a path or a name comes last on its
// line and reaches to its end. The first line is `numaopt-run 1`. The runtime
// skips lines whose first word it does not know.
//
//	mode track|apply|bind
//	sys linux|emulated
//	mark 0|1
//	page-ranges COUNT
//	page-size BYTES           units that get one node, by address; absent is 4096
//	cpu ID NODE               one per rank; rank r is bound to line r mod count
//	node ORDINAL OSNUMBER
//	pinned TEXT
//	only OFFSET PATH
//	summary PATH
//	log PATH                  mode track on linux: the runtime writes PATH.PID, one file for each process
//	affine 0|1
//	module M BUILDID|- PATH
//	read BUILDID|- PATH       a file that the loops were judged with; see Run.Read
//	plain NAME                libm: libm.so, libm.so.6 and so on need not be read
//	object ID KIND RANK FIRST COUNT MINBYTES MAXBYTES POLICY ARG NAME
//	frame ID K M LO HI
//	symbol ID M VADDR BYTES
//	map ID RUNS
//	touched ID RUNS
//	otherwise ID RUNS         the map once the block-exclusive loops have ended: no others are permuted
//	loop ID RUNTIME M OFFSET SCHEDULE ARG NAME
//
// Numbers are decimal; addresses and node masks are hexadecimal with 0x. The
// files of testdata/run are read by the tests of both sides.
package runfile

import "strings"

// Version is the format's version, on its first line.
const Version = 1

// Mode is what the runtime does.
type Mode string

// The modes.
const (
	Track Mode = "track" // tell the emulator, or the log, of threads, loops and objects; place objects, if any
	Apply Mode = "apply" // place objects and bind threads
	Bind  Mode = "bind"  // bind threads only
)

// System is who answers memory policy calls.
type System string

// The systems.
const (
	Linux    System = "linux"
	Emulated System = "emulated" // the emulator's plugin, by magic system calls
)

// CPU is where the thread of one rank runs.
type CPU struct {
	ID   int // the operating system's number
	Node int // ordinal, index in Run.Nodes
}

// FuncOffset is the entry of a function: an ELF virtual address in a module.
type FuncOffset struct {
	Path   string
	Offset uint64
}

// Module is an ELF file that frames and symbols refer to by index.
type Module struct {
	BuildID string // lower-case hex; empty is none
	Path    string // absolute
}

// Span is the addresses [Lo, Hi) of one module in which a return address minus
// one must lie.
type Span struct {
	Module int // index in Run.Modules
	Lo, Hi uint64
}

// Symbol is a global: Bytes from VAddr of a module.
type Symbol struct {
	Module int
	VAddr  uint64
	Bytes  uint64
}

// Pages is Count consecutive pages on Node; Node -1 leaves them alone.
type Pages struct {
	Node, Count int
}

// Policy is the family of a distribution.
type Policy string

// The policies; Object's fields say which argument each takes.
const (
	PolicyBind        Policy = "bind"
	PolicyInterleave  Policy = "interleave"
	PolicyBlockCyclic Policy = "block-cyclic"
	PolicyXWise       Policy = "x-wise"
	PolicyPages       Policy = "pages"
)

// Kind is how an object is recognised.
type Kind string

// The kinds.
const (
	Heap    Kind = "heap"
	Mapping Kind = "mapping"
	Global  Kind = "global"
)

// Object is one object to place. Nodes are ordinals.
type Object struct {
	ID   int // as summary lines name it
	Name string
	Kind Kind
	// Rank made the allocations that are meant; -1 is every allocation of the
	// stack, each placed by itself. Count > 1: the instances First to
	// First+Count-1 are one array in the order of their ordinals.
	Rank, First, Count int
	MinBytes, MaxBytes uint64 // sizes that match, both inclusive
	Policy             Policy
	Node               int    // for bind
	Mask               uint64 // for interleave: bit n is node n
	Block              uint64 // for block-cyclic, in bytes
	Map                []Pages
	// Touched is which pages were seen touched, as runs of Node 1 (touched) and
	// -1 (not); empty is not known.
	Touched []Pages
	// Otherwise is the page map to which it moves once a sweep has another length than in the
	// plan, which ends all block-exclusive loops; empty is none. No other loops are permuted.
	Otherwise []Pages
	// Frames names a Heap or Mapping object: Frames[k] are the alternatives for
	// frame k, 0 is innermost.
	Frames [][]Span
	Symbol *Symbol // names a Global
}

// LoopRuntime is whose entry a worksharing loop asks for its bounds.
type LoopRuntime string

// The runtimes.
const (
	GOMP LoopRuntime = "gomp" // omp_get_thread_num in code of gcc and gfortran; affine: GOMP_loop_*_start, GOMP_parallel_loop_*
	KMP  LoopRuntime = "kmp"  // __kmpc_for_static_init_* in code of clang, flang and icx; affine: __kmpc_dispatch_init_*
)

// LoopSchedule is which thread takes which chunk of an unchunked static loop.
type LoopSchedule string

// The schedules.
const (
	Inverse LoopSchedule = "inverse" // thread t of T takes chunk T-1-t
	ByNodes LoopSchedule = "nodes"   // threads of node n take the chunks of those of node Nodes[n]
	// In phase q of a sweep, those of node Nodes[(n+q*Step) mod nodes].
	BlockExclusive LoopSchedule = "block-exclusive"
	// Affine is for loops that hand out their work while they run: each node's
	// threads take the chunks of their part first, and then help others.
	Affine LoopSchedule = "affine"
)

// Loop is one worksharing loop whose chunks go to other threads.
type Loop struct {
	ID       int // as summary lines name it
	Name     string
	Runtime  LoopRuntime
	Module   int    // index in Run.Modules
	Offset   uint64 // ELF virtual address that the call for its bounds returns to
	Schedule LoopSchedule
	Nodes    []int // for ByNodes and BlockExclusive: all node ordinals, each once
	// Sweep and Step are for BlockExclusive: instances of the loop's region in a row,
	// at least one a node, in which instance i is of phase i*nodes/Sweep; and a number
	// from 1 to nodes-1.
	Sweep uint64
	Step  int
}

// Run is one run file.
type Run struct {
	Mode   Mode
	System System
	// Mark makes the runtime open the lab's counting windows.
	Mark bool
	// PageRanges is the most memory areas that placing may add; 0 is the
	// runtime's own limit.
	PageRanges int
	// PageSize is the units that placing gives to one node, aligned in memory: a power
	// of two from the page on; 0 is the page.
	PageSize uint64
	CPUs     []CPU // by rank
	Nodes    []int // operating system's number of each ordinal
	// Pinned says who binds threads instead of numaopt; empty is numaopt.
	Pinned  string
	Only    []FuncOffset
	Summary string // path for JSON lines; empty is text on stderr
	// Log is the path of the files in which the runtime writes what it would tell the
	// emulator, one for each process (plugin/wire.h of runtime-c); empty is none.
	Log string
	// Affine makes all loops Affine that can be, named or not.
	Affine  bool
	Modules []Module
	Objects []Object
	Loops   []Loop
	// Read are the files that the loops were judged with. Where there are any, loops run
	// as OpenMP makes them once the process has another file, but those of Plain.
	Read  []Module
	Plain []string // names of libraries, without .so and what follows
}

// line makes a text fit to end a line: line breaks become spaces.
func line(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(s)
}
