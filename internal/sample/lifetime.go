package sample

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	"numaopt/internal/units"
)

// lifetimes finds the object that a page belonged to at a time: of those that were
// there, the one that covers most of it, as in emulation. Objects come and go at the
// same addresses, so each lies in the nodes of a tree over addresses that make up the
// pages that it covers wholly, at most two in each level; the objects of a node follow
// each other in time. Pages that it shares have lists of their own.
type lifetimes struct {
	objects []eventlog.Object
	ends    []uint64           // page numbers at which an object's whole pages begin or end, ascending
	nodes   [][]int32          // node 1 is the root, i has 2i and 2i+1, a leaf is a piece between ends; by From
	edges   map[uint64][]int32 // of a page, the objects that cover a part of it; by From
}

// soon is how much later than a touch an object may begin that is taken for its
// owner: realloc and calloc write before the runtime sees what they return. A stack is
// written to before its thread runs, however long that takes: by who makes it.
const soon = 100_000_000 // ns

func newLifetimes(objects []eventlog.Object) *lifetimes {
	l := &lifetimes{objects: objects, edges: map[uint64][]int32{}}
	for i := range objects {
		if lo, hi := wholePages(&objects[i]); lo < hi {
			l.ends = append(l.ends, lo, hi)
		}
	}
	slices.Sort(l.ends)
	l.ends = slices.Compact(l.ends)
	l.nodes = make([][]int32, 2*len(l.ends))
	for i := range objects { // they are in the order of From
		l.insert(int32(i))
	}
	return l
}

// wholePages is the pages [lo, hi) that an object covers wholly; there may be none.
func wholePages(o *eventlog.Object) (lo, hi uint64) {
	return (o.Addr + units.PageSize - 1) / units.PageSize, (o.Addr + o.Bytes) / units.PageSize
}

// cover is how many bytes of a page an object has.
func cover(o *eventlog.Object, page uint64) uint64 {
	lo, hi := max(o.Addr, page*units.PageSize), min(o.Addr+o.Bytes, (page+1)*units.PageSize)
	return hi - min(lo, hi)
}

func (l *lifetimes) insert(i int32) {
	o := &l.objects[i]
	if o.Bytes == 0 {
		return
	}
	first, last := o.Addr/units.PageSize, (o.Addr+o.Bytes-1)/units.PageSize
	if cover(o, first) < units.PageSize {
		l.edges[first] = append(l.edges[first], i)
	}
	if last != first && cover(o, last) < units.PageSize {
		l.edges[last] = append(l.edges[last], i)
	}
	from, to := wholePages(o)
	if from >= to {
		return
	}
	lo, _ := slices.BinarySearch(l.ends, from)
	hi, _ := slices.BinarySearch(l.ends, to)
	for lo, hi = lo+len(l.ends), hi+len(l.ends); lo < hi; lo, hi = lo/2, hi/2 {
		if lo&1 == 1 {
			l.nodes[lo] = append(l.nodes[lo], i)
			lo++
		}
		if hi&1 == 1 {
			hi--
			l.nodes[hi] = append(l.nodes[hi], i)
		}
	}
}

// at finds the object of a page at a time, 0 for none, and until when that holds. Of
// several objects that cover as much it is the latest.
func (l *lifetimes) at(page, time uint64) (object int32, until uint64) {
	var best, next int32
	look := func(list []int32) {
		i, after := l.latest(list, page, time)
		if i != 0 && (best == 0 || l.before(best, i, page)) {
			best = i
		}
		if after != 0 && (next == 0 || l.objects[after].From < l.objects[next].From) {
			next = after
		}
	}
	look(l.edges[page])
	leaf, found := slices.BinarySearch(l.ends, page)
	if !found {
		leaf--
	}
	if leaf >= 0 && leaf < len(l.ends)-1 {
		for n := leaf + len(l.ends); n > 0; n /= 2 {
			look(l.nodes[n])
		}
	}
	until = eventlog.Always
	if next != 0 {
		until = l.objects[next].From
	}
	switch {
	case best != 0:
		return best, min(until, l.objects[best].To)
	case next != 0 && (until-time < soon || l.objects[next].Kind == arena.KindStack):
		return next, until
	case next != 0:
		return 0, until - soon
	}
	return 0, until
}

// before reports whether a page is rather b's than a's.
func (l *lifetimes) before(a, b int32, page uint64) bool {
	x, y := &l.objects[a], &l.objects[b]
	return cmp.Or(cmp.Compare(cover(x, page), cover(y, page)), cmp.Compare(x.From, y.From)) < 0
}

// nested is how many objects may have come and gone inside another, or beside it in
// its page.
const nested = 64

// latest is the object of a list that has the page at a time, and the first that
// begins after it; 0 for none.
func (l *lifetimes) latest(list []int32, page, time uint64) (at, after int32) {
	n, _ := slices.BinarySearchFunc(list, time, func(i int32, time uint64) int {
		if l.objects[i].From <= time {
			return -1
		}
		return 1
	})
	if n < len(list) {
		after = list[n]
	}
	for k := n - 1; k >= 0 && k >= n-nested; k-- {
		if i := list[k]; l.objects[i].To > time && (at == 0 || l.before(at, i, page)) {
			at = i
		}
	}
	return at, after
}

// finder looks objects up for one worker, whose samples are often close to each
// other.
type finder struct {
	in    *lifetimes
	known [1 << 10]struct {
		page, from, until uint64
		object            int32
	}
}

// find is at, of an address.
func (f *finder) find(addr, time uint64) int32 {
	page := addr / units.PageSize
	k := &f.known[(page^page>>10)%uint64(len(f.known))]
	if k.page != page || time < k.from || time >= k.until {
		k.page, k.from = page, time
		k.object, k.until = f.in.at(page, time)
	}
	return k.object
}
