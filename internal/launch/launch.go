// Package launch turns a plan into a run of a program on the machine at hand:
// call stacks, symbols and loops become addresses of the binaries that will be
// loaded, nodes and ranks become this machine's nodes and CPUs.
//
// # Input
//
// A plan, the program's command line, the nodes that this process may use.
//
// # Output
//
// A run file for runtime-c, and what could not be resolved, as warnings.
//
// # Method
//
// A module that still has the build id that the plan names is the same file:
// its offsets hold, if they are what the plan says. In a rebuilt one a frame is found by function, file and the
// distance of its line from the beginning of the function, with what is inlined
// where; a global by its symbol and source file; a loop by the calls of the OpenMP
// library in the machine code and their places. What fits several places, or none,
// is left out and named: a wrong placement is worse than none. Loops that must be
// permuted alike are left out together, and so is a loop of which the compiler made
// copies where the plan has not all of them.
//
// # Limits
//
// A program that a wrapper starts is found by its name among the wrapper's
// arguments and, for scripts, its words; where that fails, a plan with build ids
// still holds for the very same files. Copies of a loop are told by the lines of their
// calls; gcc may give a call that begins a function the line of that instead.
package launch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Run is the run file that Resolve makes; see package runfile.
type Run = runfile.Run

// FuncOffset is the entry of a function.
type FuncOffset = runfile.FuncOffset

// Options is what a run is made for, beside the plan.
type Options struct {
	Command  []string // of the program
	Environ  []string // that it will have, as os.Environ
	Topology topo.Topology
	System   runfile.System // Linux, or the emulator's
	Mode     runfile.Mode   // Apply or Track
	// Bind is "compact", "spread", "none", or empty for what the plan says.
	Bind    string
	Mark    bool     // open the lab's counting windows
	Only    []string // loops that open them instead of the program
	Summary string   // path for the runtime's JSON; empty is text on stderr
	// Permutable says why the loop whose bounds are fetched by the call that returns
	// to an ELF virtual address of a file must stay as it is; nil if it need not.
	// loaded are the files that are loaded with it, but for those of compilers and system.
	// Without it loops of rebuilt files keep OpenMP's schedule.
	Permutable func(path string, loaded []string, returns uint64) error
	// MapCount is the kernel's vm.max_map_count, of which placing may use a
	// quarter; 0 is the kernel's default.
	MapCount int
}

// defaultMapCount is the kernel's DEFAULT_MAX_MAP_COUNT (include/linux/mm.h).
const defaultMapCount = 65530

// Result is a plan resolved for a machine.
type Result struct {
	Run Run
	// Placed and Left count the plan's objects and loops: found here, and not.
	Placed, Left int
	// OneNode is true where the machine has one node, so that there is nothing to
	// place; Run has no objects and loops then.
	OneNode bool
	// Warnings are what the user should know; each object and loop that was left out
	// is named.
	Warnings []error
}

// Resolve resolves p. It fails only where the options are wrong; objects and loops
// that are not found become warnings.
func Resolve(p *plan.Plan, table *symbol.Table, opt Options) (*Result, error) {
	res := &Result{Run: Run{Mode: opt.Mode, System: opt.System, Mark: opt.Mark, Summary: opt.Summary}}
	if err := res.machine(p, opt); err != nil {
		return nil, err
	}
	if len(opt.Only) > 0 {
		only, err := RegionsOf(opt.Command, opt.Environ, opt.Only, table)
		if err != nil {
			return nil, err
		}
		res.Run.Only = only
	}
	mapCount := opt.MapCount
	if mapCount <= 0 {
		mapCount = defaultMapCount
	}
	res.Run.PageRanges, res.Run.PageSize = mapCount/4, uint64(p.PageSize)
	if len(res.Run.Nodes) == 1 {
		res.OneNode = true
		res.warn("this machine has one NUMA node: the plan's objects (%d) and loops (%d) are skipped, no thread is bound, and the program runs unchanged", len(p.Objects), len(p.Loops))
		return res, nil
	}
	r := &resolver{res: res, plan: p, files: newFiles(opt.Command, opt.Environ, p.From.Command, table), modules: map[string]int{},
		hoped: map[int]bool{}, hopedLoops: map[int]bool{}, bind: bindOf(p, opt), permutable: opt.Permutable}
	before := len(res.Warnings)
	r.loops()
	found := len(res.Run.Loops) - len(r.hopedLoops)
	for i := range p.Objects {
		r.object(i, &p.Objects[i])
	}
	found += len(res.Run.Objects) - len(r.hoped)
	reasons := len(res.Warnings)
	r.dropAmbiguous()
	res.Placed = len(res.Run.Objects) + len(res.Run.Loops)
	if found == 0 && len(p.Objects)+len(p.Loops) > 0 {
		r.otherProgram(before, reasons)
	}
	r.mismatched()
	return res, res.Run.Check()
}

// warn adds a warning.
func (res *Result) warn(format string, args ...any) {
	res.Warnings = append(res.Warnings, fmt.Errorf(format, args...))
}

// resolver resolves the objects of one plan.
type resolver struct {
	res     *Result
	plan    *plan.Plan
	files   *files
	modules map[string]int // path → index in Run.Modules
	hoped   map[int]bool   // by ID: objects of a program that this one may start
	// hopedLoops is the same for loops.
	hopedLoops map[int]bool
	bind       string
	// permutable is Options.Permutable; bounds the calls found so far.
	permutable func(path string, loaded []string, returns uint64) error
	bounds     map[string]callsOutcome
	// otherwise and untouched count objects for which Entry.Otherwise is in force: those
	// that it places, and those that it leaves to first touch.
	otherwise, untouched int
	itself               map[plan.Module]bool // see isItself
}

// unscheduled reports whether more of the plan's loops keep OpenMP's schedule here than
// do not.
func (r *resolver) unscheduled() bool { return 2*len(r.res.Run.Loops) < len(r.plan.Loops) }

// mismatched warns where pages go where the plan's schedules want them, and some of
// the loops do not, or where they do not for that reason.
func (r *resolver) mismatched() {
	n := len(r.plan.Loops) - len(r.res.Run.Loops)
	var suits []string
	if r.otherwise > 0 {
		suits = append(suits, fmt.Sprintf("%d of its objects are placed as suits that", r.otherwise))
	}
	if r.untouched > 0 {
		suits = append(suits, fmt.Sprintf("%d are left to first touch, which suits that", r.untouched))
	}
	switch {
	case len(suits) > 0:
		r.res.warn("%d of the plan's %d loops keep OpenMP's schedule, so %s: profile the program as it is run here", n, len(r.plan.Loops), strings.Join(suits, " and "))
	case n > 0 && len(r.res.Run.Objects) > 0:
		r.res.warn("%d of the plan's %d loops keep OpenMP's schedule, and the pages are placed for all of them: make a plan without, with numaopt plan --no-schedules", n, len(r.plan.Loops))
	}
}

// left notes that an object is not placed, and why.
func (r *resolver) left(e *plan.Entry, why string) {
	r.res.Left++
	r.res.warn("%s is not placed: %s", e.Name, why)
}

// tooSmall warns of an object that has fewer pages than there are nodes to give parts to.
func (r *resolver) tooSmall(o *runfile.Object, e *plan.Entry, place plan.Distribution) {
	bytes := uint64(e.Bytes) * uint64(max(1, o.Count))
	if o.Symbol != nil {
		bytes = o.Symbol.Bytes
	}
	pages, nodes := (bytes+units.PageSize-1)/units.PageSize, len(r.res.Run.Nodes)
	if place.Policy == plan.XWise && pages < uint64(nodes) {
		r.res.warn("%s: x-wise gives each of %d nodes a part of whole pages, and it has %d: only %d nodes get one; a smaller team or a larger problem would use all", e.Name, nodes, pages, pages)
	}
}

// mayEnd reports whether the plan's schedules can end while the program runs: those of
// block-exclusive loops do where a sweep has another length than in the plan. Others stay,
// and so do the pages where there are any; affine loops Entry.Otherwise has as they are.
func (r *resolver) mayEnd() bool {
	sweeps := func(l runfile.Loop) bool { return l.Sweep > 0 }
	stays := func(l runfile.Loop) bool { return l.Sweep == 0 && l.Schedule != runfile.Affine }
	return slices.ContainsFunc(r.res.Run.Loops, sweeps) && !slices.ContainsFunc(r.res.Run.Loops, stays)
}

// otherMap is Entry.Otherwise as a page map, which the runtime takes up where the plan's
// schedules end. nil where that is interleaving, which is no map of few runs: such an object
// stays where it is.
func (r *resolver) otherMap(e *plan.Entry) []runfile.Pages {
	d, pages := *e.Otherwise, e.Bytes.Pages()
	if e.Instance != nil {
		pages *= e.Instance.Count
	}
	if d.Policy == plan.Interleave {
		return nil
	}
	runs := d.Map
	if d.Policy != plan.Pages {
		runs = plan.MakeRuns(d.Homes(pages, r.plan.From.Nodes))
	}
	return scaleRuns(runs, r.plan.From.Nodes, len(r.res.Run.Nodes))
}

// object resolves entry i of the plan.
func (r *resolver) object(i int, e *plan.Entry) {
	o := runfile.Object{ID: i, Name: e.Name, Kind: runfile.Kind(e.Kind), Rank: -1, Count: 1}
	if e.Instance != nil {
		o.Rank, o.First, o.Count = e.Instance.Rank, e.Instance.First, e.Instance.Count
	}
	o.Touched = touched(e.Touched)
	place := e.Place
	if e.Otherwise != nil && r.unscheduled() {
		if place = *e.Otherwise; !place.Places() {
			r.untouched++
			r.res.Left++
			return
		}
	}
	if err := distribute(&o, place, r.plan.From.Nodes, len(r.res.Run.Nodes)); err != nil {
		r.left(e, err.Error())
		return
	}
	var err error
	if o.Kind == runfile.Global {
		err = r.global(&o, e)
	} else {
		err = r.heap(&o, e)
	}
	if err != nil {
		r.left(e, err.Error())
		return
	}
	r.tooSmall(&o, e, place)
	switch {
	case e.Otherwise == nil:
	case r.unscheduled():
		r.otherwise++
	case r.mayEnd():
		o.Otherwise = r.otherMap(e)
	}
	r.res.Run.Objects = append(r.res.Run.Objects, o)
}

// module returns the index in the run of a file, which it adds if need be. One
// that carries no build id the runtime knows by its base name.
func (r *resolver) module(path, buildID string) int {
	if !carried(buildID) {
		buildID = ""
		if real, err := filepath.EvalSymlinks(path); err == nil && slices.Contains(r.files.programs, path) {
			path = real // as the kernel calls a program
		}
	}
	if i, ok := r.modules[path]; ok {
		return i
	}
	i := len(r.res.Run.Modules)
	r.modules[path] = i
	r.res.Run.Modules = append(r.res.Run.Modules, runfile.Module{BuildID: buildID, Path: path})
	return i
}

// carried reports whether a file has this build id in itself, where the runtime
// finds it.
func carried(buildID string) bool {
	return buildID != "" && !strings.HasPrefix(buildID, ident.ContentPrefix)
}
