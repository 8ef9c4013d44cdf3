package sample

import (
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/units"
)

// parts divides the memory of a process that is no object's, page by page, so that each
// part becomes one object in the end: it begins anew wherever a module or a global
// variable begins or ends, and where pages of small allocations are another site's.
type parts struct {
	starts []uint64 // part i is from page starts[i] on; starts[0] is 0
	same   []int32  // the first part that becomes the object of part i; nil: each its own
}

// of is the part that a page is in, by its place; last is one that it may be in again.
func (p *parts) of(number uint64, last int32) int32 {
	if number >= p.starts[last] && (int(last)+1 == len(p.starts) || number < p.starts[last+1]) {
		return last
	}
	i, found := slices.BinarySearch(p.starts, number)
	if !found {
		i--
	}
	return int32(i)
}

// object stands for the object of part i.
func (p *parts) object(i int32) int32 {
	if p.same != nil {
		i = p.same[i]
	}
	return -i
}

// page is a page of the object that of gave.
func (p *parts) page(object int32) uint64 { return p.starts[-object] }

// part stands for the object of a page of the worker's process that is in none.
func (w *worker) part(number uint64) int32 {
	if w.parts == nil {
		w.parts, w.lastPart = w.r.partsOf(w.pid), 0
	}
	w.lastPart = w.parts.of(number, w.lastPart)
	return w.parts.object(w.lastPart)
}

// partsOf is the parts of a process, made when somebody asks.
func (r *reader) partsOf(pid uint32) *parts {
	r.partsLock.Lock()
	defer r.partsLock.Unlock()
	p, ok := r.parts[pid]
	if !ok {
		p = r.divide(r.spaces[pid])
		r.parts[pid] = p
	}
	return p
}

func (r *reader) divide(s *space) *parts {
	p := &parts{starts: []uint64{0}}
	if s == nil {
		return p
	}
	border := func(addr uint64) {
		p.starts = append(p.starts, addr/units.PageSize, (addr+units.PageSize-1)/units.PageSize)
	}
	for i := range s.modules {
		m := &s.modules[i]
		border(m.Lo)
		border(m.Hi)
		for _, v := range r.places.symbols.Globals(m.Path) {
			border(m.Base + v.VAddr)
			border(m.Base + v.VAddr + v.Size)
		}
	}
	sites := s.smallPages()
	for page := range sites {
		p.starts = append(p.starts, page, page+1)
	}
	slices.Sort(p.starts)
	p.starts = slices.Compact(p.starts)
	if len(sites) > 0 {
		p.join(sites)
	}
	return p
}

// smallPages is the sites of pages of small allocations, but of those in modules.
func (s *space) smallPages() map[uint64]int {
	out := map[uint64]int{}
	if s.log == nil {
		return out
	}
	for _, v := range s.log.Small {
		addr := v.Page * units.PageSize
		if !slices.ContainsFunc(s.modules, func(m arena.Module) bool { return addr >= m.Lo && addr < m.Hi }) {
			out[v.Page] = v.Site
		}
	}
	return out
}

// join makes all pages of a site one object.
func (p *parts) join(sites map[uint64]int) {
	first := map[int]int32{}
	p.same = make([]int32, len(p.starts))
	for i, page := range p.starts {
		p.same[i] = int32(i)
		site, ok := sites[page]
		if !ok {
			continue
		}
		if _, ok := first[site]; !ok {
			first[site] = int32(i)
		}
		p.same[i] = first[site]
	}
}
