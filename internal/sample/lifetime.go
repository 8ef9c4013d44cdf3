package sample

import (
	"slices"

	"numaopt/internal/eventlog"
	"numaopt/internal/units"
)

// lifetimes finds the object that a page belonged to at a time. Objects come and go
// at the same addresses, so each lies in the nodes of a tree over addresses that
// make up its pages, at most two in each level; the objects of a node cover all of it
// and follow each other in time.
type lifetimes struct {
	objects []eventlog.Object
	ends    []uint64  // page numbers at which an object begins or ends, ascending
	nodes   [][]int32 // node 1 is the root, i has 2i and 2i+1, a leaf is a piece between ends; by From
}

// soon is how much later than a touch an object may begin that is taken for its
// owner: realloc and calloc write before the runtime sees what they return.
const soon = 100_000_000 // ns

func newLifetimes(objects []eventlog.Object) *lifetimes {
	l := &lifetimes{objects: objects}
	for i := range objects {
		lo, hi := pagesOf(&objects[i])
		l.ends = append(l.ends, lo, hi)
	}
	slices.Sort(l.ends)
	l.ends = slices.Compact(l.ends)
	l.nodes = make([][]int32, 2*len(l.ends))
	for i := range objects { // they are in the order of From
		l.insert(int32(i))
	}
	return l
}

// pagesOf is the pages [lo, hi) that an object covers more than half of, or the first
// half.
func pagesOf(o *eventlog.Object) (lo, hi uint64) {
	const half = units.PageSize / 2
	return (o.Addr + half) / units.PageSize, (o.Addr + o.Bytes + half) / units.PageSize
}

func (l *lifetimes) insert(i int32) {
	from, to := pagesOf(&l.objects[i])
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
// several objects it is the latest.
func (l *lifetimes) at(page, time uint64) (object int32, until uint64) {
	until = eventlog.Always
	leaf, found := slices.BinarySearch(l.ends, page)
	if !found {
		leaf--
	}
	if leaf < 0 || leaf >= len(l.ends)-1 {
		return 0, until
	}
	var best, next int32
	for n := leaf + len(l.ends); n > 0; n /= 2 {
		i, after := l.latest(l.nodes[n], time)
		if i != 0 && (best == 0 || l.objects[i].From > l.objects[best].From) {
			best = i
		}
		if after != 0 && l.objects[after].From < until {
			next, until = after, l.objects[after].From
		}
	}
	switch {
	case best != 0:
		return best, min(until, l.objects[best].To)
	case next != 0 && until-time < soon:
		return next, until
	case next != 0:
		return 0, until - soon
	}
	return 0, until
}

// nested is how many objects may have come and gone inside another.
const nested = 16

// latest is the last of a node's objects that began by time and had not ended, and
// the first that begins after it; 0 for none.
func (l *lifetimes) latest(list []int32, time uint64) (at, after int32) {
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
		if l.objects[list[k]].To > time {
			return list[k], after
		}
	}
	return 0, after
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
