package sample

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newCells is room for n cells, not 0. They are not on the heap: there are many, the collector
// has no business there, and large pages make many cheaper to get and to find. It
// panics where there is no memory, as make does.
func newCells(n int) []cell {
	at, err := unix.MmapPtr(-1, 0, nil, bytesOf(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return mapped(at, n, err)[:0]
}

// moreCells is the cells, with room for more: their pages go there, they are not copied.
func moreCells(c []cell) []cell {
	if cap(c) == 0 {
		return newCells(1 << 10)
	}
	n := 2 * cap(c)
	at, err := unix.MremapPtr(unsafe.Pointer(unsafe.SliceData(c)), bytesOf(cap(c)), nil, bytesOf(n), unix.MREMAP_MAYMOVE)
	return mapped(at, n, err)[:len(c)]
}

func bytesOf(cells int) uintptr { return uintptr(cells) * unsafe.Sizeof(cell{}) }

// mapped is n cells that were mapped, in large pages: the kernel joins neighbouring
// mappings, so that one may hold the cells of several shards.
func mapped(at unsafe.Pointer, n int, err error) []cell {
	if err != nil {
		panic(fmt.Sprintf("memory for %d cells: %v", n, err))
	}
	unix.Madvise(unsafe.Slice((*byte)(at), bytesOf(n)), unix.MADV_HUGEPAGE) //nolint:errcheck // small pages do
	return unsafe.Slice((*cell)(at), n)
}

// freeCells gives cells of newCells back, which nobody may use any more.
func freeCells(c []cell) {
	if cap(c) > 0 {
		unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(c)), bytesOf(cap(c))) //nolint:errcheck // it was mapped
	}
}

// ref stands for a cell, or a page, while they are sorted.
type ref struct {
	number uint64
	who    uint64 // of a cell: thread and CPU
	what   uint64 // of a cell: region, and how
	object uint32
	at     uint32
}

// sorter sorts cells and pages; it keeps its memory from one to the next.
type sorter struct{ refs, spare []ref }

// of is room for n refs.
func (s *sorter) of(n int) []ref {
	if cap(s.refs) < n {
		s.refs, s.spare = make([]ref, n), make([]ref, n)
	}
	return s.refs[:n]
}

// sort puts cells of one process in the order of objects, pages, threads, CPUs and code:
// digit by digit in that of pages, then those of a page are compared, and at last each
// cell is moved once.
func (s *sorter) sort(all []cell) {
	refs := s.of(len(all))
	for i := range all {
		c := &all[i]
		refs[i] = ref{c.number, uint64(c.tid)<<32 | uint64(c.how.cpu()), uint64(c.region)<<32 | uint64(c.how), uint32(c.object), uint32(i)}
	}
	refs = s.inOrder(refs)
	for first := 0; first < len(refs); {
		end := first + 1
		for end < len(refs) && refs[end].number == refs[first].number && refs[end].object == refs[first].object {
			end++
		}
		slices.SortFunc(refs[first:end], func(a, b ref) int {
			switch {
			case a.who != b.who:
				return cmp.Compare(a.who, b.who)
			case a.what != b.what:
				return cmp.Compare(a.what, b.what)
			}
			return cmp.Compare(all[a.at].late, all[b.at].late)
		})
		first = end
	}
	move(all, refs)
}

// move puts cell refs[i].at at place i, and leaves refs in no order.
func move(all []cell, refs []ref) {
	for i := range refs {
		if int(refs[i].at) == i {
			continue
		}
		to, moved := i, all[i]
		for int(refs[to].at) != i {
			from := int(refs[to].at)
			all[to] = all[from]
			refs[to].at = uint32(to)
			to = from
		}
		all[to] = moved
		refs[to].at = uint32(to)
	}
}

// inOrder sorts refs, which are the sorter's, by object and number.
func (s *sorter) inOrder(refs []ref) []ref {
	refs = s.radix(refs, func(r *ref) uint64 { return r.number })
	return s.radix(refs, func(r *ref) uint64 { return uint64(r.object) })
}

const (
	digitBits = 11
	digits    = 1 << digitBits
)

// radix sorts refs by a number, least digit first, and keeps the order of equal ones.
// Digits in which all agree cost nothing. It works in refs and in the sorter's spare
// ones, and returns those with the result.
func (s *sorter) radix(refs []ref, key func(*ref) uint64) []ref {
	if len(refs) == 0 {
		return refs
	}
	differ, first := uint64(0), key(&refs[0])
	for i := range refs {
		differ |= key(&refs[i]) ^ first
	}
	for shift := 0; differ>>shift != 0; shift += digitBits {
		if differ>>shift&(digits-1) == 0 {
			continue
		}
		spare := s.spare[:len(refs)]
		var at [digits]uint32
		for i := range refs {
			at[key(&refs[i])>>shift&(digits-1)]++
		}
		sum := uint32(0)
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for i := range refs {
			d := &at[key(&refs[i])>>shift&(digits-1)]
			spare[*d] = refs[i]
			*d++
		}
		s.refs, s.spare = s.spare, s.refs
		refs = spare
	}
	return refs
}
