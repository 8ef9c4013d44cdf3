package ingest

import (
	"fmt"
	"path/filepath"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// regionKey is what tells regions apart for a reader.
type regionKey struct {
	kind   profile.RegionKind
	module int
	symbol string // the function; empty where nobody knows it
	offset uint64 // of a loop
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
	var l arena.Loop
	if n < len(b.loops) {
		l = b.loops[n]
	} else {
		l.Module = -1
	}
	code := b.code(l.Code)
	key := regionKey{kind: profile.Loop, module: code.Module, offset: code.Offset}
	return b.add(key, func() profile.Region {
		r := profile.Region{Kind: profile.Loop, Code: code, Entries: l.Entries, Dynamic: l.Dynamic, Name: symbol.Name(code, b.p.Modules)}
		if l.Module < 0 || l.Module >= len(b.elf) || b.elf[l.Module] == nil {
			return r
		}
		f, ok := b.elf[l.Module].FunctionAt(l.VAddr)
		if !ok {
			return r
		}
		s := b.elf[l.Module].Loop(f)
		r.Function, r.File, r.Line = s.Function, s.File, s.Line
		switch {
		case s.File != "" && s.Function != "":
			r.Name = fmt.Sprintf("%s:%d (%s)", filepath.Base(s.File), s.Line, s.Function)
		case s.File != "":
			r.Name = fmt.Sprintf("%s:%d", filepath.Base(s.File), s.Line)
		}
		return r
	})
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
		r := profile.Region{Kind: profile.Function, Name: name, Code: code, Function: name, Thread: thread}
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
		r := profile.Region{Kind: profile.Serial, Name: "serial", Thread: thread}
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
