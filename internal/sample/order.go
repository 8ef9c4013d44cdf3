package sample

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newCells is room for n cells. They are not on the heap: there are many, the collector
// has no business there, and large pages make many cheaper to get and to find. It
// panics where there is no memory, as make does.
func newCells(n int) []cell {
	if n == 0 {
		return nil
	}
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

// mapped is n cells that were mapped. Large pages are for so many that the last of them,
// of which little may be used, is a small part.
func mapped(at unsafe.Pointer, n int, err error) []cell {
	if err != nil {
		panic(fmt.Sprintf("memory for %d cells: %v", n, err))
	}
	if bytes := bytesOf(n); bytes >= 4<<20 {
		unix.Madvise(unsafe.Slice((*byte)(at), bytes), unix.MADV_HUGEPAGE) //nolint:errcheck // small pages do
	}
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
	object uint32
	at     uint32
}

// sorted is the cells in order, in memory of its own: they are put in the order of
// pages digit by digit, and those of a page are compared.
func sorted(all []cell) []cell {
	refs := make([]ref, len(all))
	for i := range all {
		refs[i] = ref{all[i].number, uint32(all[i].object), uint32(i)}
	}
	refs = inOrder(refs)
	out := newCells(len(all))[:len(all)]
	first := 0
	for i, r := range refs {
		out[i] = all[r.at]
		if i > 0 && (r.number != refs[i-1].number || r.object != refs[i-1].object) {
			sortPage(out[first:i])
			first = i
		}
	}
	sortPage(out[first:])
	return out
}

// inOrder sorts refs by object and number, and keeps the order of equal ones.
func inOrder(refs []ref) []ref {
	refs = radix(refs, func(r *ref) uint64 { return r.number })
	return radix(refs, func(r *ref) uint64 { return uint64(r.object) })
}

func sortPage(cells []cell) {
	slices.SortFunc(cells, func(a, b cell) int { return order(&a, &b) })
}

const (
	digitBits = 11
	digits    = 1 << digitBits
)

// radix sorts refs by a number, least digit first, and keeps the order of equal ones.
// Digits in which all agree cost nothing. It works in refs and in as much memory again,
// and returns the one with the result.
func radix(refs []ref, key func(*ref) uint64) []ref {
	if len(refs) == 0 {
		return refs
	}
	differ, first := uint64(0), key(&refs[0])
	for i := range refs {
		differ |= key(&refs[i]) ^ first
	}
	var spare []ref
	for shift := 0; differ>>shift != 0; shift += digitBits {
		if differ>>shift&(digits-1) == 0 {
			continue
		}
		if spare == nil {
			spare = make([]ref, len(refs))
		}
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
		refs, spare = spare, refs
	}
	return refs
}
