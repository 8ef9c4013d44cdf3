package planner

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// sizeFactor is how much larger or smaller than Entry.Bytes an allocation may
// be that an entry without instance still places.
const sizeFactor = 64

// group is one global, or all allocations of one call stack.
type group struct {
	objects []int // in profile.Objects, by rank and ordinal
	stack   []plan.Frame
	// mixed is true where several call stacks of the profile are one stack of the
	// plan, so that ordinals say nothing.
	mixed  bool
	cells  []cell // each object by itself
	chosen []unit // what the plan does; none: left to first touch
	// reason says why chosen is what it is, saving what it saves.
	reason string
}

// unit is some objects that one entry places.
type unit struct {
	objects  []int
	instance *plan.Instance
	cells    []cell
	pages    int // pages of the unit, for page maps
	place    plan.Distribution
	before   uint64 // remote accesses as profiled
	after    uint64 // and as predicted
	all      uint64 // accesses to pages with a known home
	gain     uint64 // what it saves by the figures it was chosen by
	// ranges is of a simplified page map how many the best one has, lost the accesses that
	// it makes remote, see ranges.go.
	ranges int
	lost   uint64
}

func (u *unit) saves() uint64 {
	if u.after > u.before {
		return 0
	}
	return u.before - u.after
}

// groups gathers the objects that can be placed, in the order of the profile.
func (d *demand) groups() []group {
	var list []group
	at := make(map[string]int)
	sites := make(map[string]int)
	for i := range d.p.Objects {
		o := &d.p.Objects[i]
		if !d.placeable(o) {
			continue
		}
		if o.Kind == profile.Global {
			list = append(list, group{objects: []int{i}})
			continue
		}
		stack := d.stacks[o.Site]
		key := stackKey(o.Kind, stack)
		k, ok := at[key]
		if !ok {
			k = len(list)
			at[key], sites[key] = k, o.Site
			list = append(list, group{stack: stack})
		}
		list[k].mixed = list[k].mixed || sites[key] != o.Site
		list[k].objects = append(list[k].objects, i)
	}
	for i := range list {
		g := &list[i]
		slices.SortStableFunc(g.objects, func(a, b int) int {
			x, y := &d.p.Objects[a], &d.p.Objects[b]
			return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Ordinal, y.Ordinal))
		})
		used := 0
		for _, o := range g.objects {
			used += len(d.byObject[o])
		}
		g.cells = make([]cell, 0, used)
		for _, o := range g.objects {
			g.cells = append(g.cells, d.cells(o)...)
		}
	}
	return list
}

// span is which pages of an object are its own, in the numbering of
// profile.Page.Index. A page on its border is where it covers more than half.
//
// This mirrors span_of in runtime-c/src/place.c.
type span struct {
	first, end int // own pages are [first, end)
	pages      int // all that it touches
	each       int // pages that it counts for as one of an array
}

func spanOf(o *profile.Object) span {
	const half = units.PageSize / 2
	bytes := units.Bytes(o.Bytes)
	s := span{pages: max(1, (units.Bytes(o.Head) + bytes).Pages()), each: max(1, int((bytes+half)/units.PageSize))}
	s.end = s.pages
	if o.Head >= half {
		s.first = 1
	}
	if units.Bytes(s.pages)*units.PageSize-bytes-units.Bytes(o.Head) >= half {
		s.end--
	}
	return s
}

// cells are the used pages of object o by itself.
func (d *demand) cells(o int) []cell {
	s := spanOf(&d.p.Objects[o])
	return d.own(o, s, func(index int) (page, pages int) { return index, s.pages })
}

// cellsOf are the used pages of object o as number k of an array of count.
func (d *demand) cellsOf(o, k, count int) []cell {
	s := spanOf(&d.p.Objects[o])
	return d.own(o, s, func(index int) (page, pages int) {
		pages = s.each * count
		return min(s.each*k+index-s.first, pages-1), pages
	})
}

func (d *demand) own(o int, s span, number func(index int) (page, pages int)) []cell {
	list := make([]cell, 0, len(d.byObject[o]))
	for _, i := range d.byObject[o] {
		pg := &d.p.Pages[i]
		if pg.Index < s.first || pg.Index >= s.end {
			continue
		}
		c := cell{profile: i, home: d.home[i], use: d.page(i), stay: d.stay[i], tossed: d.tossed[i] != nil}
		c.all = d.total(i, d.n)
		first, middle := unitOf(&d.p.Objects[o], s, pg.Index, d.unit)
		c.page, c.pages = number(middle)
		c.back = int32(middle - first)
		list = append(list, c)
	}
	return list
}

// stack is the call stack of a site as a plan names it: up to main, without the
// C library's frames below it, which differ between machines.
func (d *demand) stack(site int) []plan.Frame {
	var frames []plan.Frame
	for _, c := range d.p.Sites[site].Frames {
		name := moduleName(d.p, c.Module)
		if name == "" {
			break
		}
		frames = append(frames, d.frame(c, name))
		if f := frames[len(frames)-1]; f.Function == "main" || c.Symbol == "main" {
			return frames
		}
	}
	for n := len(frames); n > 1 && isLibc(frames[n-1].Module.Name); n-- {
		frames = frames[:n-1]
	}
	return frames
}

func (d *demand) frame(c ident.Code, module string) plan.Frame {
	f := plan.Frame{Module: plan.Module{Name: module, BuildID: d.p.Modules[c.Module].BuildID}, Offset: c.Offset, Function: c.Symbol}
	if len(c.Inlined) > 0 {
		l := c.Inlined[0]
		f.Function, f.File, f.Line, f.FunctionLine = l.Function, l.File, l.Line, l.FunctionLine
		for _, l := range c.Inlined[1:] {
			if !l.System() {
				f.InlinedAt = append(f.InlinedAt, plan.Place{Function: l.Function, File: l.File, Line: l.Line, FunctionLine: l.FunctionLine})
			}
		}
	}
	return f
}

func isLibc(module string) bool {
	return strings.HasPrefix(module, "libc.so") || strings.HasPrefix(module, "libc-") || strings.HasPrefix(module, "ld-linux")
}

func moduleName(p *profile.Profile, m int) string {
	if m < 0 || m >= len(p.Modules) || p.Modules[m].Path == "" {
		return ""
	}
	return path.Base(p.Modules[m].Path)
}

func stackKey(k profile.Kind, stack []plan.Frame) string {
	var b strings.Builder
	b.WriteString(string(k))
	for _, f := range stack {
		b.WriteString("|" + f.Module.Name + "|" + f.Module.BuildID + "|" + units.Bytes(f.Offset).Exact())
	}
	return b.String()
}
