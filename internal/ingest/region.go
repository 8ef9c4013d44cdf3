package ingest

import (
	"fmt"
	"path/filepath"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// regionKey is what tells regions apart for a reader.
type regionKey struct {
	kind   profile.RegionKind
	module int
	symbol string     // the function; empty where nobody knows it
	offset uint64     // of a parallel region
	site   arena.Code // of a worksharing loop
	thread string
}

// region returns the index in Regions of an arena's region.
func (b *builder) region(r arena.Region) int {
	if i, ok := b.regionOf[r]; ok {
		return i
	}
	var i int
	if n, ok := r.Loop(); ok {
		i = b.loop(n)
	} else {
		fn, start := r.Function()
		i = b.function(fn, start)
	}
	b.regionOf[r] = i
	return i
}

// add returns the index of the region of this key, made by fill if it is new.
func (b *builder) add(key regionKey, fill func() profile.Region) int {
	if i, ok := b.regionI[key]; ok {
		return i
	}
	i := len(b.p.Regions)
	b.regionI[key] = i
	b.p.Regions = append(b.p.Regions, fill())
	return i
}

func (b *builder) loop(n int) int {
	l := arena.Loop{Code: arena.Code{Module: -1}, Site: arena.Code{Module: -1}}
	if n < len(b.loops) {
		l = b.loops[n]
	}
	if l.Site.Module >= 0 {
		return b.worksharing(&l)
	}
	return b.parallel(&l)
}

// parallel is a parallel region, outside its worksharing loops.
func (b *builder) parallel(l *arena.Loop) int {
	code := b.code(l.Code)
	key := regionKey{kind: profile.Loop, module: code.Module, offset: code.Offset}
	return b.add(key, func() profile.Region {
		r := profile.Region{Kind: profile.Loop, Code: code, Site: ident.Code{Module: -1}, Entries: l.Entries, Sweep: l.Sweep, Dynamic: l.Dynamic, Name: symbol.Name(code, b.p.Modules)}
		if l.Module < 0 || l.Module >= len(b.elf) || b.elf[l.Module] == nil {
			return r
		}
		f, ok := b.elf[l.Module].FunctionAt(l.VAddr)
		if !ok {
			return r
		}
		s := b.elf[l.Module].Loop(f)
		r.Function, r.File, r.Line = s.Function, s.File, s.Line
		r.Name = placeName(r.File, r.Line, r.Function, r.Name)
		return r
	})
}

// worksharing is a worksharing loop. Its region is there, too: by its name one
// means the loops in it as well.
func (b *builder) worksharing(l *arena.Loop) int {
	site := b.code(arena.Code{VAddr: l.Site.VAddr - 1, Module: l.Site.Module})
	if site.Module < 0 {
		return b.parallel(l)
	}
	site.Offset = l.Site.VAddr
	whole := b.wholes[l.Code]
	region := b.p.Regions[b.parallel(&whole)]
	key := regionKey{kind: profile.Loop, module: region.Code.Module, offset: region.Code.Offset, site: arena.Code{VAddr: site.Offset, Module: site.Module}}
	return b.add(key, func() profile.Region {
		r := profile.Region{
			Kind: profile.Loop, Code: region.Code, Site: site, Runtime: "libgomp", Schedule: schedule(l), Dynamic: whole.DynamicLoops || l.Affine,
			Entries: l.Entries, Invocations: l.Entries, Sweep: whole.Sweep, Name: symbol.Name(site, b.p.Modules),
		}
		if l.LibOMP {
			r.Runtime = "libomp"
		}
		if n := len(site.Inlined); n > 0 {
			at := site.Inlined[0]
			r.Function, r.File, r.Line = at.Function, at.File, at.Line
		}
		if site.Symbol == region.Code.Symbol || r.Function == "" {
			r.Function = region.Function
		}
		r.Name = placeName(r.File, r.Line, r.Function, r.Name)
		return r
	})
}

// schedule is what is known of a loop's schedule. Whether the thread number that
// code of libgomp asks for reaches loop bounds alone, only its machine code tells.
func schedule(l *arena.Loop) string {
	if l.Affine {
		return profile.Affine
	}
	if l.Static {
		return "static"
	}
	return ""
}

// placeName is "file.c:88 (f)", with what is known of it; otherwise if that is nothing.
func placeName(file string, line int, function, otherwise string) string {
	switch {
	case file != "" && function != "":
		return fmt.Sprintf("%s:%d (%s)", filepath.Base(file), line, function)
	case file != "":
		return fmt.Sprintf("%s:%d", filepath.Base(file), line)
	}
	return otherwise
}

// worksharings makes the regions of all worksharing loops, with accesses or not,
// and numbers their groups.
func (b *builder) worksharings() error {
	for n := range b.loops {
		if l := &b.loops[n]; l.Site.Module < 0 && l.Site.VAddr == 0 {
			if _, ok := b.wholes[l.Code]; !ok {
				b.wholes[l.Code] = *l
			}
		}
	}
	of := map[int][]int{} // first loop of a group → regions
	var order []int
	for n := 1; n < len(b.loops); n++ {
		if b.loops[n].Site.Module < 0 {
			continue
		}
		first, i := b.first(n), b.region(arena.LoopRegion(n))
		if of[first] == nil {
			order = append(order, first)
		}
		if !slices.Contains(of[first], i) {
			of[first] = append(of[first], i)
		}
	}
	group := 0
	for _, first := range order {
		if len(of[first]) < 2 {
			continue
		}
		group++
		for _, i := range of[first] {
			b.p.Regions[i].Group = group
		}
	}
	return nil
}

// first follows the joined loops from n to their first.
func (b *builder) first(n int) int {
	for range b.loops {
		next := b.loops[n].Joined
		if next <= 0 || next >= len(b.loops) {
			break
		}
		n = next
	}
	return n
}

func (b *builder) function(fn, start int) int {
	var c arena.Code
	if c.Module = -1; fn > 0 && fn < len(b.funcs) {
		c = b.funcs[fn]
	}
	thread := ""
	if start > 0 && start < len(b.starts) {
		thread = functionName(b.code(b.starts[start]).Symbol)
	}
	code := b.code(c)
	if fn <= 0 || c.NoSymbol || code.Symbol == "" {
		return b.serial(code.Module, thread)
	}
	name := functionName(code.Symbol)
	return b.add(regionKey{kind: profile.Function, module: code.Module, symbol: name, thread: thread}, func() profile.Region {
		r := profile.Region{Kind: profile.Function, Name: name, Code: code, Site: ident.Code{Module: -1}, Function: name, Thread: thread}
		if n := len(code.Inlined); n > 0 {
			outer := code.Inlined[n-1]
			r.File, r.Line = outer.File, outer.FunctionLine
			if r.Line == 0 {
				r.Line = outer.Line
			}
		}
		return r
	})
}

// serial is code whose function is not known, one region for each module.
func (b *builder) serial(module int, thread string) int {
	return b.add(regionKey{kind: profile.Serial, module: module, thread: thread}, func() profile.Region {
		r := profile.Region{Kind: profile.Serial, Name: "serial", Site: ident.Code{Module: -1}, Thread: thread}
		if r.Code.Module = module; module >= 0 {
			r.Name = "serial in " + filepath.Base(b.p.Modules[module].Path)
		}
		return r
	})
}

func functionName(sym string) string {
	if sym == "" {
		return ""
	}
	return symbol.Demangle(sym)
}
