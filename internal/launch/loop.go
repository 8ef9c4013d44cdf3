package launch

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"numaopt/internal/bounds"
	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
)

// loops resolves the loops of the plan. Those of one group are permuted together
// or not at all, because a thread may rely on its iterations of one in the next.
func (r *resolver) loops() {
	found := make([]runfile.Loop, len(r.plan.Loops))
	why := make([]error, len(r.plan.Loops))
	group := make(map[int]int) // group → first loop of it that is left out
	leave := func(i int, err error) {
		why[i] = err
		if _, ok := group[r.plan.Loops[i].Group]; !ok {
			group[r.plan.Loops[i].Group] = i
		}
	}
	for i := range found {
		l := &r.plan.Loops[i]
		found[i] = runfile.Loop{ID: i, Name: l.Name, Schedule: runfile.Inverse, Runtime: runfile.KMP}
		if l.Runtime == "libgomp" {
			found[i].Runtime = runfile.GOMP
		}
		err := r.schedule(&found[i], l)
		guess := false
		if err == nil {
			guess, err = r.site(&found[i], l)
		}
		if err != nil {
			leave(i, err)
		} else if guess {
			r.hopedLoops[i] = true
		}
	}
	r.sameSite(found, why, leave)
	r.apart(found, why, leave)
	for i := range found {
		l := &r.plan.Loops[i]
		if first, ok := group[l.Group]; ok && why[i] == nil && l.Group > 0 {
			why[i] = fmt.Errorf("it must be scheduled as %s, which keeps OpenMP's schedule", r.plan.Loops[first].Name)
		}
		if why[i] != nil {
			delete(r.hopedLoops, i)
			r.res.Left++
			r.res.warn("loop %s keeps OpenMP's schedule: %w", l.Name, why[i])
			continue
		}
		r.res.Run.Loops = append(r.res.Run.Loops, found[i])
	}
	r.read()
}

// read tells the runtime with which files the loops were judged: what runs in the end,
// by whatever wrapper, search path or dlopen, may be others.
func (r *resolver) read() {
	judged := func(l runfile.Loop) bool { return l.Schedule != runfile.Affine }
	if r.permutable == nil || !slices.ContainsFunc(r.res.Run.Loops, judged) {
		return
	}
	for _, path := range r.files.loaded(r.plan) {
		file, err := r.files.table.Open(path)
		if err != nil {
			continue // nor was it judged
		}
		m := runfile.Module{Path: path}
		if carried(file.BuildID()) {
			m.BuildID = file.BuildID()
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && slices.Contains(r.files.programs, path) {
			m.Path = real // as the runtime knows the program
		}
		r.res.Run.Read = append(r.res.Run.Read, m)
	}
	r.res.Run.Plain = bounds.PlainLibraries()
}

// sameSite leaves out loops that are one call site now.
func (r *resolver) sameSite(found []runfile.Loop, why []error, leave func(int, error)) {
	at := make(map[callSite]int)
	for i, l := range found {
		if why[i] != nil {
			continue
		}
		k := callSite{l.Module, l.Offset}
		if j, ok := at[k]; ok {
			err := errors.New("in the rebuilt program it cannot be told from another loop of the plan: profile it again")
			leave(i, err)
			leave(j, err)
		}
		at[k] = i
	}
}

// schedule sets the schedule of a loop for this machine. static-inverse holds on
// any; a permutation of nodes only where they are those of the plan, with threads
// on them in the order of their numbers.
func (r *resolver) schedule(o *runfile.Loop, l *plan.Loop) error {
	switch l.Schedule {
	case plan.Affine:
		o.Schedule = runfile.Affine
		if r.bind == "none" {
			return errors.New("affine chunks take threads that stay on their nodes, and they are not bound: use --bind compact")
		}
		return nil
	case plan.ByNodes:
		o.Schedule, o.Nodes = runfile.ByNodes, l.Nodes
	case plan.BlockExclusive:
		o.Schedule, o.Nodes, o.Sweep, o.Step = runfile.BlockExclusive, l.Nodes, uint64(l.Sweep), l.Step
	default:
		return nil
	}
	if n := len(r.res.Run.Nodes); n != r.plan.From.Nodes {
		return fmt.Errorf("its schedule is made for %d nodes, and there are %d: profile the program on this many", r.plan.From.Nodes, n)
	}
	if r.bind != "compact" {
		return fmt.Errorf("its schedule takes threads that fill one node after the other, and they are bound %q: use --bind compact", r.bind)
	}
	return nil
}

// site finds the call that fetches the bounds of a loop. A file that the program
// loads while it runs the runtime knows by its build id; guess is true where the file
// is the program itself under another name, or one that this one starts.
func (r *resolver) site(o *runfile.Loop, l *plan.Loop) (guess bool, err error) {
	file, how := r.files.find(l.Module)
	switch {
	case file == nil && !carried(l.Module.BuildID):
		return false, fmt.Errorf("%s is not among the program and its libraries, and has no build id", l.Module.Name)
	case file == nil:
		o.Module, o.Offset = r.module(l.Module.Name, l.Module.BuildID), l.Offset
		return false, r.verifiedLate(l)
	case how == verySame:
		o.Module, o.Offset = r.module(file.Path(), file.BuildID()), l.Offset
		return false, r.verified(file, l)
	}
	if o.Offset, err = r.rebuilt(file, l); err == nil {
		o.Module = r.module(file.Path(), file.BuildID())
		return false, nil
	}
	if how == guessed && carried(l.Module.BuildID) && !r.isItself(l.Module, file) {
		o.Module, o.Offset = r.module(l.Module.Name, l.Module.BuildID), l.Offset
		return true, r.verifiedLate(l)
	}
	return false, err
}

// verifiedLate is verified for a file that the program loads while it runs. It must be
// found, since a loop is permuted only if its code has been read.
func (r *resolver) verifiedLate(l *plan.Loop) error {
	if r.permutable == nil || l.Schedule == plan.Affine {
		return nil
	}
	if file := r.files.late(l.Module); file != nil {
		return r.verified(file, l)
	}
	return fmt.Errorf("%s is not among the program and its libraries, so it cannot be read whether its code depends on the thread number: if the program loads it while it runs, put its folder into LD_LIBRARY_PATH; if a script starts the program, apply the plan to the program itself", l.Module.Name)
}

// rebuilt finds a loop's call in a file that is not the profiled one, by the place
// in the source. The result is its return address.
func (r *resolver) rebuilt(file *symbol.Module, l *plan.Loop) (uint64, error) {
	name := filepath.Base(file.Path())
	c, err := r.callsOf(file.Path(), functionsOf(l))
	switch {
	case err != nil:
		return 0, err
	case len(c.returns) == 0 && c.defined != "":
		return 0, fmt.Errorf("%s has %s in itself and does not call that of an OpenMP library: link it with -fopenmp and without -static-openmp or a static %s", name, c.defined, l.Runtime)
	case len(c.returns) == 0:
		return 0, fmt.Errorf("%s was rebuilt and calls no %s, by which its loops would get their bounds from %s: build it with %s and -fopenmp, or profile it again",
			name, functionsOf(l)[0], l.Runtime, compilerOf(l.Runtime))
	case !file.HasDebug():
		return 0, fmt.Errorf("%s was rebuilt without debug information to find the loop by: build it with -g", name)
	case l.File == "" || l.Line == 0:
		return 0, fmt.Errorf("%s was rebuilt, and the profile had no lines to find the loop by: build it with -g and profile it again", name)
	}
	var at []uint64
	for _, ra := range c.returns {
		if sameLine(file.ReturnSite(ra), l) {
			at = append(at, ra)
		}
	}
	if len(at) != 1 {
		return 0, fmt.Errorf("%s was rebuilt, and has %d loops at %s: profile it again", name, len(at), place(ident.Location{Function: l.Function, File: l.File, Line: l.Line}))
	}
	if l.Schedule == plan.Affine {
		return at[0], nil // which thread runs what was never promised
	}
	return at[0], r.sound(file, l, c, at[0])
}

func compilerOf(runtime string) string {
	if runtime == "libgomp" {
		return "gcc or gfortran"
	}
	return "clang or flang"
}

// sameLine reports whether a call is at the place of a loop: in the same function
// of the same file, as many lines below its beginning.
func sameLine(c ident.Code, l *plan.Loop) bool {
	if len(c.Inlined) == 0 {
		return false
	}
	at := c.Inlined[0]
	if at.Function != l.Function || filepath.Base(at.File) != filepath.Base(l.File) {
		return false
	}
	if at.FunctionLine > 0 && l.FunctionLine > 0 {
		return at.Line-at.FunctionLine == l.Line-l.FunctionLine
	}
	return at.Line == l.Line
}

// sound says why a loop of a rebuilt file cannot be permuted although its call at
// ra was found: its function has loops of which the plan knows nothing, which may
// have to be permuted alike; or nobody can say that its code does not depend on
// which thread does which chunk.
func (r *resolver) sound(file *symbol.Module, l *plan.Loop, c calls, ra uint64) error {
	fn, ok := file.FunctionAt(ra - 1)
	if !ok {
		return fmt.Errorf("%s has no symbol for the function of the loop: do not strip it", filepath.Base(file.Path()))
	}
	for _, other := range c.returns {
		if fn.Lo < other && other <= fn.Hi && other != ra && !r.known(file.ReturnSite(other), l) {
			at := file.ReturnSite(other)
			return fmt.Errorf("%s was rebuilt, and its function has a loop beside it that the plan does not know (%s): profile it again",
				filepath.Base(file.Path()), symbol.Name(ident.Code{Module: -1, Symbol: at.Symbol, Inlined: at.Inlined}, nil))
		}
	}
	if r.permutable == nil {
		return fmt.Errorf("%s was rebuilt, and what its code does with the thread number is known of the profiled one alone: profile it again", filepath.Base(file.Path()))
	}
	return r.permutable(file.Path(), r.files.loaded(r.plan), ra)
}

// known reports whether a call is at a loop of the plan that is permuted as l is.
func (r *resolver) known(c ident.Code, l *plan.Loop) bool {
	for i := range r.plan.Loops {
		if o := &r.plan.Loops[i]; o.Group == l.Group && l.Group > 0 && sameLine(c, o) {
			return true
		}
	}
	return false
}

// callsOf is callsOf, once for each file.
func (r *resolver) callsOf(path string, names []string) (calls, error) {
	key := names[0] + " " + path
	if o, ok := r.bounds[key]; ok {
		return o.calls, o.err
	}
	c, err := callsOf(path, names)
	if r.bounds == nil {
		r.bounds = make(map[string]callsOutcome)
	}
	r.bounds[key] = callsOutcome{c, err}
	return c, err
}

type callsOutcome struct {
	calls calls
	err   error
}

// bindOf is how threads are bound: as the options say, else as the plan does.
func bindOf(p *plan.Plan, opt Options) string { return cmp.Or(opt.Bind, p.Threads.Bind) }
