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
	// of which process each is; another's are not in a table
	ofFunc, ofLoop []uint32
}

// logged takes the loops that a process's log tells of, in its order, and returns
// what is to be added to their numbers.
func (p *places) logged(pid uint32, s *space) int {
	first := len(p.loops) - 1
	for _, l := range s.log.Loops[1:] {
		out := l.Loop
		out.Code, out.Site = s.codeAt(l.Entry), arena.Code{Module: -1}
		if l.Site != 0 {
			out.Site = s.codeAt(l.Site)
		} else if out.Module >= 0 {
			p.known[placeKey{pid, int32(out.Module), out.VAddr}] = arena.LoopRegion(len(p.loops))
		}
		if out.Joined != 0 {
			out.Joined += first
		}
		p.loops, p.ofLoop = append(p.loops, out), append(p.ofLoop, pid)
	}
	return first
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
	return &places{symbols: symbols, known: map[placeKey]arena.Region{}, funcs: make([]arena.Code, 1), loops: make([]arena.Loop, 1),
		ofFunc: make([]uint32, 1), ofLoop: make([]uint32, 1)}
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
		p.loops, p.ofLoop = append(p.loops, arena.Loop{Code: code, Site: arena.Code{Module: -1}}), append(p.ofLoop, pid)
		r = arena.LoopRegion(len(p.loops) - 1)
	case len(p.funcs) < maxFuncs:
		p.funcs, p.ofFunc = append(p.funcs, code), append(p.ofFunc, pid)
		r = arena.Region(len(p.funcs) - 1)
	}
	p.known[key] = r
	return r
}

// settle numbers functions and loops of a process anew, in the order of modules and
// addresses, whoever met them first, and leaves out those of others. It returns the
// new number of each old region.
func (p *places) settle(pid uint32) func(arena.Region) arena.Region {
	byCode := func(a, b arena.Code) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.VAddr, b.VAddr))
	}
	funcs := renumber(p.ofFunc, pid, func(i, k int) int { return byCode(p.funcs[i], p.funcs[k]) })
	loops := renumber(p.ofLoop, pid, func(i, k int) int {
		return cmp.Or(byCode(p.loops[i].Code, p.loops[k].Code), byCode(p.loops[i].Site, p.loops[k].Site))
	})
	p.funcs = permuted(p.funcs, funcs)
	p.loops = permuted(p.loops, loops)
	toFunc, toLoop := inverse(funcs, len(p.ofFunc)), inverse(loops, len(p.ofLoop))
	p.rejoin(toLoop)
	return func(r arena.Region) arena.Region {
		if n, loop := r.Loop(); loop {
			return arena.LoopRegion(toLoop[n])
		}
		fn, start := r.Function()
		return arena.Region(toFunc[fn]).Of(start)
	}
}

// rejoin puts new numbers to joined loops: the first of a group is now the one with
// the lowest.
func (p *places) rejoin(to []int) {
	root := func(n int) int {
		for p.loops[n].Joined != 0 {
			n = to[p.loops[n].Joined]
		}
		return n
	}
	roots := make([]int, len(p.loops))
	lowest := map[int]int{}
	for n := len(p.loops) - 1; n > 0; n-- {
		roots[n] = root(n)
		lowest[roots[n]] = n
	}
	for n := 1; n < len(p.loops); n++ {
		p.loops[n].Joined = 0
		if first := lowest[roots[n]]; first != n {
			p.loops[n].Joined = first
		}
	}
}

// renumber is the numbers of a process's things, in order, behind number 0.
func renumber(of []uint32, pid uint32, order func(i, k int) int) []int {
	out := []int{0}
	for i := 1; i < len(of); i++ {
		if of[i] == pid {
			out = append(out, i)
		}
	}
	slices.SortFunc(out[1:], order)
	return out
}

// permuted is list in the order from, in which it may be shorter.
func permuted[T any](list []T, from []int) []T {
	out := make([]T, len(from))
	for to, i := range from {
		out[to] = list[i]
	}
	return out
}

// inverse is where each of n old numbers went; 0 for those that are left out.
func inverse(from []int, n int) []int {
	out := make([]int, n)
	for to, i := range from {
		out[i] = to
	}
	return out
}
