// Package report turns a profile into what a reader wants to know of it, as
// text for people and as JSON for programs.
//
// # Input
//
// A profile, perhaps restricted to some loops or functions.
//
// # Output
//
// A Report: plain data, written by WriteText or WriteJSON; the JSON keeps to
// Schema.
//
// # Method
//
// Sums and classes are those of the packages access and classify. Objects of one
// allocation site are one entry. What the figures mean is said in the schema,
// field by field.
//
// # Limits
//
// A share in per cent of nothing is not a number and written as null. The report
// judges placement by counted accesses; it knows nothing of time.
package report

import (
	"math"
	"strconv"

	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// Version is the version of the JSON; it is raised when a field changes its
// meaning or goes, not when one is added.
const Version = 1

// Pct is a percentage in [0,100], or a ratio where the field says so; NaN is
// "there is nothing to take a share of" and null in JSON.
type Pct float64

// MarshalJSON writes four digits after the point at most, and NaN as null.
func (p Pct) MarshalJSON() ([]byte, error) {
	f := float64(p)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(f*1e4)/1e4, 'f', -1, 64), nil
}

func (p Pct) String() string { return units.FormatPercent(float64(p)) }

// Report is everything that is known of one profile. The order of fields is the
// order of the JSON; each is described in report.schema.json.
type Report struct {
	Version  int      `json:"numaopt_report"`
	Verdict  string   `json:"verdict"`
	Findings []string `json:"findings"` // what stands behind the verdict, the most costly first
	Warnings []string `json:"warnings"` // what the reader must know before believing a figure
	Only     []string `json:"only"`     // the loops and functions that it is restricted to; empty is all

	// OnlyObjects and OnlyThreads (ranks) are likewise.
	OnlyObjects []string `json:"only_objects,omitempty"`
	OnlyThreads []int    `json:"only_threads,omitempty"`

	RemoteDRAM   Pct     `json:"remote_dram_pct"`
	RemoteDRAMCI *[2]Pct `json:"remote_dram_ci"` // null where every access was counted
	RemoteAccess Pct     `json:"remote_access_pct"`
	// BestPlacement is remote_dram_pct with every page on the node that uses it most.
	BestPlacement Pct `json:"best_placement_remote_dram_pct"`
	Imbalance     Pct `json:"imbalance"`
	Match         Pct `json:"match_pct"`
	Coverage      Pct `json:"coverage_pct"`

	Accesses     uint64 `json:"accesses"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	DRAM         Flow   `json:"dram"`
	All          Flow   `json:"all"`

	Sharing    Sharing      `json:"sharing"`
	Small      Small        `json:"small_objects"`
	Objects    []Object     `json:"objects"`
	Loops      []Loop       `json:"loops"`
	Threads    []Thread     `json:"threads"`
	Matrix     Matrix       `json:"matrix"`
	FirstTouch []FirstTouch `json:"first_touch"`
	SerialInit []SerialInit `json:"serial_initialisation"`
	Stuck      []Stuck      `json:"placement_cannot_help"`
	// Latency and Lines are of samples; nil where the source has none.
	Latency *Latency     `json:"latency,omitempty"`
	Lines   *SharedLines `json:"shared_lines,omitempty"`
	// SourceLines is nil where the source of the profile does not tell.
	SourceLines *SourceLines `json:"source_lines,omitempty"`
	Quality     Quality      `json:"quality"`
	Run         Run          `json:"run"`

	// Unsought is how many objects, the last ones, Patterns were not looked for, see
	// Options.PatternRows.
	Unsought int    `json:"-"`
	sorted   string // see byText
}

// Flow is accesses by where they were served; the three shares add up to 100.
type Flow struct {
	Local      uint64 `json:"local"`
	Remote     uint64 `json:"remote"`
	Unknown    uint64 `json:"unknown"`
	LocalPct   Pct    `json:"local_pct"`
	RemotePct  Pct    `json:"remote_pct"`
	UnknownPct Pct    `json:"unknown_pct"`
}

// Shares splits something into the three classes of pages; they add up to 100.
type Shares struct {
	Private         Pct `json:"private_pct"`
	NonShared       Pct `json:"non_shared_pct"`
	UniformlyShared Pct `json:"uniformly_shared_pct"`
}

// Sharing is the classes of all touched pages. The embedded shares are of bytes.
type Sharing struct {
	Shares
	SingleThread      Pct    `json:"single_thread_pct"`
	WithoutSerialInit Pct    `json:"uniformly_shared_without_serial_init_pct"`
	EvenlyUsed        Pct    `json:"evenly_used_pct"`
	SerialInit        Pct    `json:"serial_first_touch_pct"`
	TouchedBytes      int64  `json:"touched_bytes"`
	TouchedPages      int    `json:"touched_pages"`
	Pages             Shares `json:"pages"`
	Accesses          Shares `json:"accesses"`
	DRAMAccesses      Shares `json:"dram_accesses"`

	// The same parts as shares of accesses, for the text.
	accessesSingle, accessesWithout, accessesEven, accessesSerialInit Pct
	dramSingle, dramWithout, dramEven, dramSerialInit                 Pct
}

// Small is the objects smaller than a page, which no plan places singly.
type Small struct {
	Sites  int `json:"sites"`
	Bytes  Pct `json:"bytes_pct"`
	DRAM   Pct `json:"dram_pct"`
	Remote Pct `json:"remote_dram_pct"`
}

// Object is all instances of one allocation site, one symbol, all stacks.
type Object struct {
	Name         string `json:"name"`
	Kind         string `json:"kind"`
	Bytes        int64  `json:"bytes"`
	Instances    int    `json:"instances"`
	TouchedBytes int64  `json:"touched_bytes"`
	// Placed is true where the program itself chose nodes, so that no plan places it.
	Placed        bool   `json:"placed,omitempty"`
	Accesses      uint64 `json:"accesses"`
	DRAMAccesses  uint64 `json:"dram_accesses"`
	DRAMPct       Pct    `json:"dram_pct"`
	RemoteDRAM    Pct    `json:"remote_dram_pct"`
	RemoteAccess  Pct    `json:"remote_access_pct"`
	BestPlacement Pct    `json:"best_placement_remote_dram_pct"`
	// Dynamic is the share of DRAMAccesses by work that is handed out at run time, or
	// looks like it: the next run makes them from other nodes, and BestPlacement is
	// of this run.
	Dynamic           Pct      `json:"dynamic_dram_pct"`
	known             Pct      // the part of Dynamic that OpenMP's runtime knows
	Store             Pct      `json:"store_pct"`
	NonShared         Pct      `json:"non_shared_pct"`
	SingleThread      Pct      `json:"single_thread_pct"`
	UniformlyShared   Pct      `json:"uniformly_shared_pct"`
	WithoutSerialInit Pct      `json:"uniformly_shared_without_serial_init_pct"`
	EvenlyUsed        Pct      `json:"evenly_used_pct"`
	HomePages         []int    `json:"home_pages"`    // by node
	UnknownPages      int      `json:"unknown_pages"` // without a known home
	DRAMByNode        []uint64 `json:"dram_by_node"`  // by node of the accessing thread
	remote            uint64   // of DRAMAccesses
	group             int      // of the builder's
	cost              uint64   // cycles of remote loads beyond local ones; 0 is not known
	Stack             []string `json:"stack,omitempty"` // where it is allocated, innermost first
	Symbol            string   `json:"symbol,omitempty"`
	File              string   `json:"file,omitempty"`

	Shape *Shape `json:"shape,omitempty"`
	// ShapeDoubt is why the shape, or the variable that has it, is not known.
	ShapeDoubt   string    `json:"shape_doubt,omitempty"`
	Patterns     []Pattern `json:"patterns"` // by loop, most DRAM accesses first
	Conflict     bool      `json:"conflict"`
	ConflictText string    `json:"conflict_text,omitempty"`
}

// Shape is the array behind an object.
type Shape struct {
	Dims     []int64 `json:"dims"` // in memory order, the slowest first
	Elem     int64   `json:"element_bytes"`
	Source   string  `json:"source"`
	Variable string  `json:"variable,omitempty"`
	text     string
}

// Pattern is how one loop divides an object over the nodes.
type Pattern struct {
	Loop string `json:"loop"`
	// Merged is the lines of the loops that Loop stands for, see Loop.
	Merged     []int  `json:"merged_lines,omitempty"`
	Pattern    string `json:"pattern"`
	Block      int64  `json:"block_bytes"`  // mean part of a node, 0 without parts
	Period     int64  `json:"period_bytes"` // after which the parts repeat
	Nodes      []int  `json:"nodes"`        // of the parts in the order of memory
	Explains   Pct    `json:"explains_pct"`
	Confidence Pct    `json:"confidence_pct"`
	Samples    uint64 `json:"samples"`
	Need       uint64 `json:"samples_needed,omitempty"`
	DRAMPct    Pct    `json:"dram_pct"` // of the object's by parallel code
}

// Loop is one parallel loop, or a function outside all loops.
type Loop struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Symbol   string `json:"symbol,omitempty"`
	Thread   string `json:"thread,omitempty"`
	// Merged is the lines of the loops that this one stands for where gcc merged several.
	Merged  []int  `json:"merged_lines,omitempty"`
	Entries uint64 `json:"entries"`
	// Dynamic is true where work is handed out at run time: of loops OpenMP's
	// runtime knows it, of functions the pages look like it.
	Dynamic      bool   `json:"dynamic"`
	Threads      int    `json:"threads"`
	Accesses     uint64 `json:"accesses"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	DRAMPct      Pct    `json:"dram_pct"`
	RemoteDRAM   Pct    `json:"remote_dram_pct"`
	RemoteAccess Pct    `json:"remote_access_pct"`
	remote       uint64 // of DRAMAccesses
	dealt        Pct    // of all DRAM accesses: this loop's that are such work
}

// Thread is one rank on one CPU.
type Thread struct {
	Rank         int    `json:"rank"`
	CPU          int    `json:"cpu"`
	Node         int    `json:"node"`
	Pinned       bool   `json:"pinned"`
	Accesses     uint64 `json:"accesses"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	DRAMPct      Pct    `json:"dram_pct"`
	RemoteDRAM   Pct    `json:"remote_dram_pct"`
	RemoteAccess Pct    `json:"remote_access_pct"`
}

// Matrix is node × node: [i][j] is accesses by threads of node i to memory of
// node j. Unknown is accesses by node i to pages without a known home.
type Matrix struct {
	DRAM        [][]uint64 `json:"dram"`
	DRAMUnknown []uint64   `json:"dram_unknown"`
	All         [][]uint64 `json:"all"`
	AllUnknown  []uint64   `json:"all_unknown"`
}

// FirstTouch is the pages of one object that were first touched at one place.
type FirstTouch struct {
	Object     string `json:"object"`
	Place      string `json:"place"`
	Loop       string `json:"loop"`
	Ranks      string `json:"ranks"` // "0", "0-7"
	Serial     bool   `json:"serial"`
	Pages      int    `json:"pages"`
	Bytes      int64  `json:"bytes"`
	HomePages  []int  `json:"home_pages"`
	DRAM       uint64 `json:"dram_accesses"`
	RemoteDRAM Pct    `json:"remote_dram_pct"`
}

// SerialInit is data that serial code touches first and other nodes then use.
type SerialInit struct {
	Object       string `json:"object"`
	Place        string `json:"place"`
	Rank         int    `json:"rank"`
	Node         int    `json:"node"`
	FirstTouched int64  `json:"first_touched_bytes"`
	Pages        int    `json:"pages"`
	Bytes        int64  `json:"bytes"`
	UserNodes    int    `json:"user_nodes"`
	Remote       uint64 `json:"remote_dram_accesses"`
	Avoidable    uint64 `json:"avoidable_remote_dram_accesses"`
	AvoidablePct Pct    `json:"avoidable_pct"`
	EvenlyUsed   int64  `json:"evenly_used_bytes"`
}

// Stuck is accesses to one object that stay remote wherever its pages lie.
type Stuck struct {
	Object      string      `json:"object"`
	Remote      uint64      `json:"remote_dram_accesses"`
	RemotePct   Pct         `json:"remote_pct"`
	ConflictPct Pct         `json:"conflict_pct"`
	EvenlyUsed  int64       `json:"evenly_used_bytes"`
	Loops       []StuckLoop `json:"loops"`
}

// StuckLoop is a loop's part of them.
type StuckLoop struct {
	Name   string `json:"name"`
	Remote uint64 `json:"remote_dram_accesses"`
}

// Quality says how far to trust the figures.
type Quality struct {
	Exact       bool   `json:"exact"`
	Period      uint64 `json:"period"`
	DRAMSamples uint64 `json:"dram_samples"`
	Enough      bool   `json:"enough"`
	Reason      string `json:"reason,omitempty"` // why not, and what would do
}

// Run is where the profile came from.
type Run struct {
	Source        string   `json:"source"`
	Command       []string `json:"command"`
	Dir           string   `json:"dir"`
	Host          string   `json:"host"`
	Version       string   `json:"numaopt"`
	Start         string   `json:"start"`
	Elapsed       Pct      `json:"elapsed_s"`
	Topology      string   `json:"topology"`
	Nodes         int      `json:"nodes"`
	CPUs          int      `json:"cpus"`
	Bind          string   `json:"bind"`
	Pinned        []string `json:"pinned"`
	Cache         Cache    `json:"cache"`
	Period        uint64   `json:"period"`
	Plan          string   `json:"plan"`
	Complete      bool     `json:"complete"`
	ExitStatus    int      `json:"exit_status"`
	Processes     int      `json:"processes"`
	OtherAccesses uint64   `json:"other_accesses"`
	// Recording is how samples were taken; nil where accesses were counted.
	Recording *profile.Recording `json:"recording,omitempty"`
}

// Cache is the cache model that decides what is a DRAM access, each level as
// "16K:8", size and ways.
type Cache struct {
	LineBytes int    `json:"line_bytes"`
	L1        string `json:"l1"`
	L2        string `json:"l2"`
	LLC       string `json:"llc"`
}
