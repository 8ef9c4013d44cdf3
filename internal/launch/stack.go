package launch

import (
	"fmt"
	"slices"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// sizeFactor is how much a heap object's size may differ from the profiled one,
// either way: relative distributions survive another problem size, but a buffer
// of a few bytes from the same call is not the grid.
const sizeFactor = 64

// heap resolves the call stack of a heap object or a mapping.
func (r *resolver) heap(o *runfile.Object, e *plan.Entry) error {
	bytes := uint64(max(1, e.Bytes))
	o.MinBytes = max(units.PageSize, bytes/sizeFactor)
	o.MaxBytes = max(bytes*sizeFactor, o.MinBytes)
	items, err := r.items(e.Stack)
	if err == nil {
		o.Frames, err = r.frames(items)
	}
	if err != nil && r.guessed(e.Stack) {
		// The program under another name, as was tried, or one that starts it.
		o.Frames, err = r.byBuildID(e.Stack), nil
		r.hoped[o.ID] = true
	}
	return err
}

// guessed reports whether nothing but a guess says which file a stack is of, while
// its build ids would do.
func (r *resolver) guessed(stack []plan.Frame) bool {
	guess := false
	for _, f := range stack {
		file, how := r.files.find(f.Module)
		guess = guess || how == guessed && !r.isItself(f.Module, file)
		if !carried(f.Module.BuildID) || f.Offset == 0 {
			return false
		}
	}
	return guess
}

// byBuildID leaves it to the runtime to know the files of a stack.
func (r *resolver) byBuildID(stack []plan.Frame) [][]runfile.Span {
	var out [][]runfile.Span
	for _, f := range stack {
		m := r.module(f.Module.Name, f.Module.BuildID)
		out = append(out, []runfile.Span{{Module: m, Lo: f.Offset - 1, Hi: f.Offset}})
	}
	return out
}

// item is one step of a call stack: an address, or a place in the source.
type item struct {
	span  *runfile.Span // where it is an address
	at    ident.Location
	file  *symbol.Module
	frame int // of the plan's stack
}

// items takes a call stack apart: frames in files that did not change are
// addresses; others are places, those that are inlined one by one.
func (r *resolver) items(stack []plan.Frame) ([]item, error) {
	var out []item
	for k, f := range stack {
		file, how := r.files.find(f.Module)
		switch {
		case f.Offset == 0:
			return nil, fmt.Errorf("frame %d has no address: profile the program again", k)
		case file == nil && !carried(f.Module.BuildID):
			return nil, fmt.Errorf("%s is not among the program and its libraries, and has no build id", f.Module.Name)
		case file == nil:
			// Loaded later, by dlopen or by a program that this one starts: the
			// runtime will know it by its build id.
			m := r.module(f.Module.Name, f.Module.BuildID)
			out = append(out, item{span: &runfile.Span{Module: m, Lo: f.Offset - 1, Hi: f.Offset}, frame: k})
		case how == verySame:
			m := r.module(file.Path(), file.BuildID())
			out = append(out, item{span: &runfile.Span{Module: m, Lo: f.Offset - 1, Hi: f.Offset}, frame: k})
		case f.File != "" && f.Line > 0:
			out = append(out, item{file: file, frame: k, at: ident.Location{Function: f.Function, File: f.File, Line: f.Line, FunctionLine: f.FunctionLine}})
			for _, p := range f.InlinedAt {
				out = append(out, item{file: file, frame: k, at: ident.Location{Function: p.Function, File: p.File, Line: p.Line, FunctionLine: p.FunctionLine}})
			}
		default:
			span, err := r.whole(file, f, k)
			if err != nil {
				return nil, err
			}
			out = append(out, item{span: span, frame: k})
		}
	}
	return out, nil
}

// whole is a frame without a line in a file that changed: anywhere in the function
// of that symbol. For the innermost frame of a program that says too little: all
// its allocations would match.
func (r *resolver) whole(file *symbol.Module, f plan.Frame, k int) (*runfile.Span, error) {
	if f.Function == "" {
		return nil, fmt.Errorf("%s was rebuilt since the profile, and frame %d has neither line nor symbol: build it with -g", f.Module.Name, k)
	}
	found := file.FunctionsNamed(f.Function)
	if len(found) != 1 {
		return nil, fmt.Errorf("%s was rebuilt since the profile, and has %d functions called %s", f.Module.Name, len(found), f.Function)
	}
	for _, p := range r.files.programs {
		if k == 0 && p == file.Path() {
			return nil, fmt.Errorf("%s was rebuilt since the profile without lines to find the allocation in %s by: build it with -g", f.Module.Name, f.Function)
		}
	}
	return &runfile.Span{Module: r.module(file.Path(), file.BuildID()), Lo: found[0].Lo, Hi: found[0].Hi}, nil
}

// frames groups items to the frames that the binaries now have: a compiler may
// inline other calls than it did when the profile was made.
func (r *resolver) frames(items []item) ([][]runfile.Span, error) {
	if len(items) == 0 {
		return nil, nil
	}
	first := items[0]
	if first.span != nil {
		rest, err := r.frames(items[1:])
		if err != nil {
			return nil, err
		}
		return append([][]runfile.Span{{*first.span}}, rest...), nil
	}
	var chain []ident.Location
	for _, it := range items {
		if it.span != nil || it.file != first.file {
			break
		}
		chain = append(chain, it.at)
	}
	spans := first.file.Spans(chain)
	if len(spans) == 0 {
		return nil, fmt.Errorf("%s was rebuilt, and %s is not found in it: %s", first.file.Path(), place(chain[0]), cure(first.file))
	}
	module := r.module(first.file.Path(), first.file.BuildID())
	var failure error
	for places := len(chain); places > 0; places-- {
		var alternatives []runfile.Span
		for _, s := range spans {
			if s.Places == places {
				alternatives = append(alternatives, runfile.Span{Module: module, Lo: s.Lo, Hi: s.Hi})
			}
		}
		if len(alternatives) == 0 {
			continue
		}
		rest, err := r.frames(items[places:])
		if err == nil {
			return append([][]runfile.Span{alternatives}, rest...), nil
		}
		failure = err
	}
	return nil, failure
}

// place is a location in a message.
func place(l ident.Location) string {
	return symbol.Name(ident.Code{Module: -1, Inlined: []ident.Location{l}}, nil)
}

// cure says what helps where a place is not found.
func cure(file *symbol.Module) string {
	if file.HasDebug() {
		return "the function was edited, so profile it again"
	}
	return "it has no debug information, so build it with -g"
}

// dropAmbiguous leaves out heap objects and mappings that the runtime could not
// tell apart.
func (r *resolver) dropAmbiguous() {
	objects := r.res.Run.Objects
	drop := make(map[int]bool)
	for i := range objects {
		for j := range objects[:i] {
			if a, b := &objects[i], &objects[j]; a.Kind != runfile.Global && a.Kind == b.Kind && overlap(a.Frames, b.Frames) && meet(a, b) {
				drop[i], drop[j] = true, true
			}
		}
	}
	kept := objects[:0]
	for i, o := range objects {
		if drop[i] {
			delete(r.hoped, o.ID)
			r.left(&r.plan.Objects[o.ID], "in the rebuilt program it cannot be told from another object of the plan: both may be allocated by the same line")
			continue
		}
		kept = append(kept, o)
	}
	r.res.Run.Objects = kept
}

// overlap reports whether a call stack can match both a and b. A stack may go on
// below the frames of an object, so a shorter object matches what a longer does.
func overlap(a, b [][]runfile.Span) bool {
	for k := range min(len(a), len(b)) {
		if !slices.ContainsFunc(a[k], func(x runfile.Span) bool {
			return slices.ContainsFunc(b[k], func(y runfile.Span) bool {
				return x.Module == y.Module && x.Lo < y.Hi && y.Lo < x.Hi
			})
		}) {
			return false
		}
	}
	return true
}

// meet reports whether an allocation can be an instance of both a and b.
func meet(a, b *runfile.Object) bool {
	if a.Rank < 0 || b.Rank < 0 {
		return true
	}
	return a.Rank == b.Rank && a.First < b.First+b.Count && b.First < a.First+a.Count
}
