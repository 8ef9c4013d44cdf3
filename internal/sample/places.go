package sample

import (
	"cmp"
	"slices"
	"sync"

	"numaopt/internal/arena"
	"numaopt/internal/symbol"
)

// places numbers functions and loops for all workers, as regions of an arena.
type places struct {
	symbols *symbol.Table

	mu    sync.Mutex
	known map[placeKey]arena.Region
	funcs []arena.Code // number 0 is not known
	loops []arena.Loop // number 0 is unused
}

type placeKey struct {
	pid    uint32
	module int32
	entry  uint64
}

func newPlaces(symbols *symbol.Table) *places {
	if symbols == nil {
		symbols = new(symbol.Table)
	}
	return &places{symbols: symbols, known: map[placeKey]arena.Region{}, funcs: make([]arena.Code, 1), loops: make([]arena.Loop, 1)}
}

// maxFuncs is how many functions a region has numbers for.
const maxFuncs = 1<<16 - 1

// region is the function or the parallel loop that an address of a module is in.
func (p *places) region(pid uint32, s *space, module int32, pc uint64) arena.Region {
	if module < 0 {
		return 0
	}
	m := &s.modules[module]
	vaddr := pc - m.Base
	key := placeKey{pid, module, 0}
	file, err := p.symbols.Open(m.Path)
	name := ""
	if err == nil {
		if f, ok := file.FunctionAt(vaddr); ok {
			key.entry, name = f.Lo, f.Symbol
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.known[key]; ok {
		return r
	}
	code := arena.Code{VAddr: key.entry, Module: int(module), NoSymbol: name == ""}
	var r arena.Region
	switch {
	case symbol.IsLoop(name):
		p.loops = append(p.loops, arena.Loop{Code: code, Site: arena.Code{Module: -1}})
		r = arena.LoopRegion(len(p.loops) - 1)
	case len(p.funcs) < maxFuncs:
		p.funcs = append(p.funcs, code)
		r = arena.Region(len(p.funcs) - 1)
	}
	p.known[key] = r
	return r
}

// settle numbers functions and loops anew, in the order of modules and addresses,
// whoever met them first, and returns the new region of each old one.
func (p *places) settle() map[arena.Region]arena.Region {
	out := map[arena.Region]arena.Region{0: 0}
	byCode := func(a, b arena.Code) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.VAddr, b.VAddr))
	}
	funcs := renumber(len(p.funcs), func(i, k int) int { return byCode(p.funcs[i], p.funcs[k]) })
	loops := renumber(len(p.loops), func(i, k int) int { return byCode(p.loops[i].Code, p.loops[k].Code) })
	oldFuncs, oldLoops := slices.Clone(p.funcs), slices.Clone(p.loops)
	for to, from := range funcs {
		p.funcs[to] = oldFuncs[from]
		out[arena.Region(from)] = arena.Region(to)
	}
	for to, from := range loops {
		p.loops[to] = oldLoops[from]
		out[arena.LoopRegion(from)] = arena.LoopRegion(to)
	}
	return out
}

// renumber is the numbers 0 to n-1, those from 1 on in order.
func renumber(n int, order func(i, k int) int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out[1:], order)
	return out
}
