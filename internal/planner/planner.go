// Package planner turns a profile into a plan: which node each page of each
// object should be on, in the simplest words that lose nothing, and which threads
// should take which chunks of a loop.
//
// # Input
//
// A profile, and the names of the loops to plan for (all of the run if none).
//
// # Output
//
// A plan with one entry for each object, or group of allocations, that gains, and
// one for each loop that gets another schedule; a Decision for every object and a
// LoopDecision for every loop looked at; what the plan is predicted to change.
//
// # Method
//
// Frequency-based placement, CGO'12 §2.3: a page belongs on the node that makes
// most DRAM accesses to it, less what is luck in the LLC (steady.go) or of few samples
// (sparse.go). A page where that saves next to nothing over where
// first touch puts it (Options.PageGain) is left to first touch. The map that
// results for an object is then described as bind, x-wise or block-cyclic where
// these are as good, within Options.Tolerance, and as a page map where nothing
// is. Allocations of one call stack are described together where they can be:
// each alike, or one after the other as one array, or else each for itself.
// Objects that no place of their pages makes more local are interleaved over
// the nodes that use them, if that evens out the memory controllers and makes
// nothing remote.
//
// Loops that use the same pages in incompatible ways leave them shared wherever
// they are; other schedules, with pages that match, do not (CGO'12, §4). A schedule
// permutes the chunks of an unchunked static loop: what thread t did in the table,
// another thread does. Pages and schedules are each easy given the other, so the
// search alternates, from several starts (search.go), page by page; then pages are
// planned as above for the schedules found, and both are taken if that is better
// than pages alone by Options.MinSchedule.
//
// A prediction re-evaluates the profile's own table: pages that the plan places
// count from where the runtime will put them, all others from the home that
// they had in the profiled run. Work that is handed out while the program runs uses
// a page as it uses all allocations of its call stack, see dynamic.go. It counts
// accesses; pages and schedules are chosen by what accesses cost where some remote nodes
// are farther than others (distance.go).
//
// # Limits
//
// Stacks, program image, allocations below a page and memory that nobody knows
// are not placed, nor are pages that were only read: they have no home. Memory
// that the program frees and gets again keeps the pages of its first use, which
// the prediction does not follow across objects. What a thread keeps for itself,
// by its number or threadprivate, is known from its stack and from what it
// allocated alone; a shared array indexed by thread number is taken for one that
// is indexed by iteration. A serial loop has phases for the planner only where it runs
// one parallel region, as often each time. Where threads of several nodes use a page
// alike in one loop, no plan helps, and the notes say so.
package planner

import (
	"fmt"

	"numaopt/internal/access"
	"numaopt/internal/classify"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Options are the thresholds of Build.
type Options struct {
	// Only names the loops and functions to plan for, see access.Only; the
	// accesses of others then do not count. Empty is the whole run.
	Only []string
	// MinGain is the smallest saving for which an entry is written, in points of
	// all DRAM accesses with a known home. Below 0.02 an entry costs the reader
	// more than it gives the program: all entries dropped, at most a few dozen,
	// stay below one point.
	MinGain float64
	// PageGain is the smallest saving, as a share in [0,1] of the accesses to a
	// page, for which the page is moved away from where first touch puts it. At
	// 0.02 everything that is left undone is less than 2 points.
	PageGain float64
	// Tolerance is how many points of the accesses to an object a simple
	// description may lose against the best page map; 0.25 is below what two
	// runs of a program differ by. It may lose MinGain in any case.
	Tolerance float64
	// Relative is the same for x-wise, which alone stands for any number of nodes
	// and any problem size. Where the threads' parts of a loop differ by an
	// iteration, or end within a page, it is off by a row or a page at each border:
	// most often far less than one point. It never loses a tenth of what is saved.
	Relative float64
	// RunCost is the accesses that must be gained for a page map to change node
	// once more: a further range costs the kernel a few microseconds, a remote
	// access some 0.1 µs more than a local one. It never costs more than
	// Tolerance.
	RunCost uint64
	// PlaceCost is the accesses that an entry must save for every allocation that it
	// places: setting a policy, reading back where the pages are and taking the
	// policy off again are a few system calls, each worth some ten remote accesses.
	PlaceCost uint64
	// MinDRAM is how many DRAM accesses with a known home a profile must have,
	// as samples; below it all accesses count instead, because a program that
	// fits in its caches has too few.
	MinDRAM uint64
	// MinBalance is by how much the controller imbalance (1 is balanced) must
	// fall for an object to be interleaved that nothing makes more local.
	MinBalance float64
	// MaxRanges is how many ranges of memory one object's places may divide it into before
	// simpler places are preferred, see ranges.go: a quarter of the kernel's default
	// vm.max_map_count, as the runtime uses.
	MaxRanges int
	// MaxEntries bounds the plan, MaxInstances the entries of one call stack
	// whose allocations have nothing in common.
	MaxEntries, MaxInstances int
	// Again is profiles of further runs of the same program on the same machine.
	// What they do not repeat is chance, see classify.FindChance.
	Again []Further
	// Ratios is how many times as long a load from a node's memory takes as one from the
	// own, by [node of the CPU*nodes+node of the memory], for a profile that has measured
	// no latencies; nil is not known.
	Ratios []float64
	// NoSchedules leaves all loops as OpenMP makes them.
	NoSchedules bool
	// MinSchedule is how many points of all DRAM accesses the schedules of a plan
	// must save beside its pages: schedules touch what a program does, pages do not,
	// and a point is what two runs may differ by.
	MinSchedule float64
	// ScheduleGain is the smallest saving, as a share in [0,1] of the accesses in
	// loops that are permuted alike, for which they are; as PageGain.
	ScheduleGain float64
	// Refuse is by region why a loop must stay static, for those that somebody looked
	// at: in gcc's code the thread number may reach more than the bounds of loops, and
	// threads may keep data of their own. An empty reason says that it is not so; then
	// a loop of libgomp, whose runtime does not know its schedule, can be permuted:
	// what thread t did another does, whether its chunks are one or many.
	Refuse map[int]string
	// Apart tells of a region whether a barrier frees its loop from the others of
	// its outlined function, because no thread keeps data of its own from one to
	// the next; nil: of none. Loops of an equal Region.Group are permuted alike in
	// any case.
	Apart func(region int) bool
	// Affine makes the loops affine that ran so in the profile, all of them, if that
	// saves MinSchedule beside what the plan does otherwise, see affine.go.
	Affine bool
	// PageSize is the units that get one node, a power of two (plan.CheckPageSize); 0 is
	// the page. What schedules are worth is looked for page by page all the same.
	PageSize units.Bytes
	// Profile is the checksum of the profile's file, kept in the plan.
	Profile string
}

// DefaultOptions are the thresholds of the plan command.
func DefaultOptions() Options {
	return Options{
		MinGain: 0.02, PageGain: 0.02, Tolerance: 0.25, Relative: 1, RunCost: 32, PlaceCost: 64,
		MinSchedule: 1, ScheduleGain: 0.02,
		MinDRAM: 1000, MinBalance: 0.1, MaxRanges: 65530 / 4, MaxEntries: 256, MaxInstances: 64,
	}
}

// Result is a plan and how it came about.
type Result struct {
	Plan *plan.Plan
	// Before and After are the accesses with a known home as profiled and as
	// predicted; PagesOnly is with the best plan without schedules, Best with every
	// page on the node that uses it most under the plan's schedules.
	Before, PagesOnly, After, Best Split
	// Same is After if the same threads do the same work in each run, where it is
	// only guessed that they do not.
	Same Split
	// AllLevels is true where accesses of all levels were counted for want of
	// DRAM accesses.
	AllLevels bool
	// Decisions is one for each object or call stack, by accesses, most first.
	Decisions []Decision
	// Loops is one for each worksharing loop, by accesses, most first.
	Loops []LoopDecision
	// Outcome is the profile's table under the plan.
	Outcome *Outcome
	// Warnings say how far to trust the plan.
	Warnings []string
}

// Split is accesses by where they are served.
type Split struct {
	Remote, Known uint64
	// Load is the accesses that each node's memory serves.
	Load []uint64
}

// RemotePct is 100·Remote/Known, 0 without accesses.
func (s Split) RemotePct() float64 { return units.Percent(float64(s.Remote), float64(s.Known)) }

// Imbalance is the busiest node's load over the mean, 1 without accesses.
func (s Split) Imbalance() float64 { return imbalance(s.Load) }

func imbalance(load []uint64) float64 {
	var sum, most uint64
	for _, l := range load {
		sum += l
		most = max(most, l)
	}
	if sum == 0 {
		return 1
	}
	return float64(most) * float64(len(load)) / float64(sum)
}

// Decision is what became of one object, or of all allocations of a call stack.
type Decision struct {
	Name      string
	Kind      profile.Kind
	Instances int
	Bytes     units.Bytes
	// Accesses are those to pages with a known home. Profiled, Before, After and
	// Best are the remote ones of them: as profiled; left to first touch, with the
	// plan's schedules; with the plan; and as in Result.
	Accesses, Profiled, Before, After, Best uint64
	// Seen is the accesses as profiled, of which Profiled are remote: fewer than Accesses
	// where the plan's schedules add some.
	Seen uint64
	// Serial is the part of Best that the main thread makes outside loops.
	Serial uint64
	// Chance is the part of Accesses by work that is handed out at run time,
	// Evidence what says so of most of it.
	Chance   uint64
	Evidence classify.Evidence
	// Place is what the plan does with it, Reason why.
	Place, Reason string
	// Huge is After with pages of 2 MiB, and Split the accesses to such ranges that the
	// plan cuts, see huge.go. Both are of Options.PageSize 0.
	Huge, Split uint64
}

// Build makes the plan. The error is topo.ErrOneNode where the profiled machine
// has no two nodes with memory, or about Options.Only.
func Build(p *profile.Profile, opt Options) (*Result, error) {
	if memoryNodes(p) < 2 {
		return nil, topo.ErrOneNode
	}
	if access.OnlyFirst(p) {
		return nil, access.Support(p)
	}
	if opt.Affine {
		return buildAffine(p, opt)
	}
	return planFor(p, opt)
}

// planFor makes the plan; loops of p that ran affine do so in the plan where they are
// not Dynamic.
func planFor(p *profile.Profile, opt Options) (*Result, error) {
	if err := checkAgain(p, &opt); err != nil {
		return nil, err
	}
	p, few := dense(p, opt.MinDRAM)
	p = steady(p)
	d, err := newDemand(p, opt)
	if err != nil {
		return nil, err
	}
	if d.few = few; few != "" {
		d.opt.PageGain = max(d.opt.PageGain, sampleGain)
	}
	if err := d.counterparts(); err != nil {
		return nil, err
	}
	r := &Result{AllLevels: d.allLevels, Before: d.splitBy(d.expected, nil)}
	groups, drop := d.scheduled(r)
	r.Same = d.splitBy(d.same, groups)
	d.predict(groups)
	r.After, r.Best = d.split(groups, false), d.split(nil, true)
	r.Loops = d.loopDecisions(groups)
	for i := range r.Loops {
		r.After.Remote += r.Loops[i].Stolen
	}
	r.Outcome = d.outcome(groups)
	r.Plan = &plan.Plan{
		Version: plan.Version,
		From: plan.From{
			Command: p.Run.Command, Topology: p.Run.Topology.String(), Nodes: d.n, Only: opt.Only, Profile: opt.Profile,
			Again: checksums(opt.Again),
		},
		Predict: plan.Predict{RemoteBefore: round(r.Before.RemotePct()), RemoteAfter: round(r.After.RemotePct())},
		Threads: plan.Threads{Bind: bindOf(p)}, PageSize: opt.PageSize,
		Objects: d.entries(groups),
		Loops:   append(d.loopEntries(r.Loops), d.affineEntries(r.Loops)...),
	}
	if len(r.Plan.Loops) > 0 {
		r.Plan.Predict.PagesOnly = round(r.PagesOnly.RemotePct())
	}
	r.Decisions = d.decisions(groups)
	r.Warnings = append(d.warnings(r), d.splitHuge(r)...)
	r.Plan.Notes = append(append([]string(nil), r.Warnings...), d.notes(r, groups, drop)...)
	d.inAccesses(r)
	if err := r.Plan.Check(); err != nil {
		return nil, fmt.Errorf("the plan does not hold together: %w", err)
	}
	return r, nil
}

func checksums(list []Further) (sums []string) {
	for _, f := range list {
		sums = append(sums, f.Checksum)
	}
	return sums
}

// solve plans the pages for the schedules that d is arranged for.
func (d *demand) solve() ([]group, dropped) {
	groups := d.groups()
	for i := range groups {
		d.choose(&groups[i])
	}
	drop := d.limit(groups)
	d.balance(groups)
	return groups, drop
}

func memoryNodes(p *profile.Profile) int {
	n := 0
	for _, node := range p.Run.Topology.Nodes {
		if !node.NoMemory {
			n++
		}
	}
	return n
}

func bindOf(p *profile.Profile) string {
	switch p.Run.Bind {
	case "compact", "spread":
		return p.Run.Bind
	}
	return "none"
}

// round keeps two digits after the point, so that plans are stable to the eye.
func round(pct float64) float64 { return float64(int64(pct*100+0.5)) / 100 }

// regions is the filter of Options.Only; nil is everything.
func regions(p *profile.Profile, only []string) ([]bool, error) {
	if len(only) == 0 {
		return nil, nil
	}
	return access.Regions(p, only)
}
