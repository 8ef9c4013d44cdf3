package sample

import (
	"slices"

	"numaopt/internal/units"
)

// parts divides the memory of a process that is no object's, page by page, so that each
// part becomes one object in the end: it begins anew wherever a module or a global
// variable begins or ends. Part i is from page parts[i] on; parts[0] is 0.
type parts []uint64

// of is the part that a page is in; last is one that the page may be in again.
func (p parts) of(number uint64, last int32) int32 {
	if number >= p[last] && (int(last)+1 == len(p) || number < p[last+1]) {
		return last
	}
	i, found := slices.BinarySearch(p, number)
	if !found {
		i--
	}
	return int32(i)
}

// part is the part of the worker's process that a page is in.
func (w *worker) part(number uint64) int32 {
	if w.parts == nil {
		w.parts, w.lastPart = w.r.partsOf(w.pid), 0
	}
	w.lastPart = w.parts.of(number, w.lastPart)
	return w.lastPart
}

// partsOf is the parts of a process, made when somebody asks.
func (r *reader) partsOf(pid uint32) parts {
	r.partsLock.Lock()
	defer r.partsLock.Unlock()
	p, ok := r.parts[pid]
	if !ok {
		p = r.divide(r.spaces[pid])
		r.parts[pid] = p
	}
	return p
}

func (r *reader) divide(s *space) parts {
	p := parts{0}
	if s == nil {
		return p
	}
	border := func(addr uint64) {
		p = append(p, addr/units.PageSize, (addr+units.PageSize-1)/units.PageSize)
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
	slices.Sort(p)
	return slices.Compact(p)
}
