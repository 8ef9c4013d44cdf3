package eventlog

import (
	"cmp"
	"slices"
)

// bind is that the program placed the pages from lo to before hi.
type bind struct{ time, lo, hi uint64 }

// bindings is a tree of segments over the ends of binds: a program may make a hundred
// thousand of them, and each page is looked up.
type bindings struct {
	ends []uint64 // pages, ascending
	// times of the binds that cover all of a node, ascending. Node i is above 2i and
	// 2i+1; node len(ends)+i is the pages from ends[i] on.
	times [][]uint64
}

func newBindings(binds []bind) *bindings {
	t := &bindings{}
	for _, b := range binds {
		t.ends = append(t.ends, b.lo, b.hi)
	}
	slices.Sort(t.ends)
	t.ends = slices.Compact(t.ends)
	t.times = make([][]uint64, 2*len(t.ends))
	binds = slices.SortedFunc(slices.Values(binds), func(x, y bind) int { return cmp.Compare(x.time, y.time) })
	for _, b := range binds {
		t.add(b)
	}
	return t
}

// add puts the bind's time at the fewest nodes that cover it together.
func (t *bindings) add(b bind) {
	lo, _ := slices.BinarySearch(t.ends, b.lo)
	hi, _ := slices.BinarySearch(t.ends, b.hi)
	put := func(i int) { t.times[i] = append(t.times[i], b.time) }
	for lo, hi = lo+len(t.ends), hi+len(t.ends); lo < hi; lo, hi = lo/2, hi/2 {
		if lo%2 == 1 {
			put(lo)
			lo++
		}
		if hi%2 == 1 {
			hi--
			put(hi)
		}
	}
}

// any reports whether a page was placed from one time to before another.
func (t *bindings) any(page, from, to uint64) bool {
	i, found := slices.BinarySearch(t.ends, page)
	if !found {
		i--
	}
	if i < 0 {
		return false
	}
	for i += len(t.ends); i > 0; i /= 2 {
		times := t.times[i]
		if at, _ := slices.BinarySearch(times, from); at < len(times) && times[at] < to {
			return true
		}
	}
	return false
}
