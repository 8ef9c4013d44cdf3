package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/perfdata"
)

const heap = "[heap]" // what brk gives: one mapping that grows

// fresh is the parts of a mapping that are new. The kernel joins memory without a
// file with such neighbours and tells of the whole: what it held before is still
// what it was. (Where all of that was given back first, a larger mapping in its
// place is taken for the old ones and a new one: perf tells of no munmap.)
func (s *space) fresh(m *perfdata.Mmap) []span {
	whole := span{lo: m.Addr, hi: m.Addr + m.Len, from: m.Time, module: -1}
	if m.Name != anonymous {
		return []span{whole}
	}
	var out []span
	at := whole.lo
	first, _ := s.known(whole.lo)
	for _, p := range s.anonymous[first:] {
		if p.lo >= whole.hi {
			break
		}
		if p.hi > whole.hi {
			continue
		}
		if p.lo > at {
			out = append(out, span{lo: at, hi: p.lo, from: m.Time, module: -1})
		}
		at = max(at, p.hi)
	}
	switch {
	case at == whole.lo, at >= whole.hi && len(out) == 0: // nothing was there; or mapped anew, as large as before
		out = []span{whole}
	case at < whole.hi:
		out = append(out, span{lo: at, hi: whole.hi, from: m.Time, module: -1})
	}
	s.remember(out)
	return out
}

// remember puts parts among the anonymous mappings, in the place of older ones that
// begin where they do.
func (s *space) remember(parts []span) {
	for _, p := range parts {
		at, there := s.known(p.lo)
		if there {
			s.anonymous[at] = p
			continue
		}
		s.anonymous = slices.Insert(s.anonymous, at, p)
	}
}

// known is where among the anonymous mappings one that begins at lo is, or would be.
func (s *space) known(lo uint64) (int, bool) {
	return slices.BinarySearchFunc(s.anonymous, lo, func(p span, lo uint64) int { return cmp.Compare(p.lo, lo) })
}

// grown is the heap's object, which brk made larger; 0 where there is none yet.
func (s *space) grown(m *perfdata.Mmap) int32 {
	if m.Name != heap {
		return 0
	}
	for i := range s.objects {
		if o := &s.objects[i]; o.Name == heap && o.Addr == m.Addr {
			o.Bytes = max(o.Bytes, m.Len)
			return int32(i)
		}
	}
	return 0
}
