package eventlog

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"numaopt/internal/arena"
)

// History is what a log tells, in addresses of the process.
type History struct {
	Objects []Object   // from number 1 on
	Sites   [][]uint64 // return addresses by site, innermost first; number 0 is unused
	Starts  []uint64   // start routines of threads; number 0 is none
	Loops   []Loop     // from number 1 on
	Notes   []arena.Note
	Small   []arena.SmallVote
	Parent  int    // process that this one was forked from; 0 is none
	Forked  uint64 // when
	Bound   bool   // the runtime put threads on CPUs

	// Tracker is the runtime's own code: what it accesses is not the program's.
	Tracker [2]uint64
	Path    string // of the log, which the process has mapped

	threads map[uint32]*Thread
	homes   []homes
	binds   []bind
	prefers bool // some thread had a memory policy
	bound   sync.Once
	// bindings is binds, to be searched
	bindings *bindings
	ended    map[uint64]uint64 // when what began at an address before the log ended
}

// Object is an allocation, a mapping or a stack, and when it was there: From <= t < To.
type Object struct {
	arena.Object
	From, To uint64
}

// Always is the end of what did not end.
const Always = math.MaxUint64

// Loop is a parallel region or a worksharing loop in it: arena.Loop, with Code and
// Site as addresses of the process, Site 0 for the region as a whole.
type Loop struct {
	Entry, Site uint64
	arena.Loop

	varies bool
	run    uint64 // instances of the row that goes on
}

// Thread is one thread of the process, by its system id.
type Thread struct {
	Rank   int
	Start  int // index in Starts
	Pinned bool

	policies []policy // by time

	times []uint64 // when the loop that it is in changed, ascending
	loops []int32  // to which
	// while the log is read:
	region uint64
	loop   int32
	row    int32
}

// policy is whether a thread has a memory policy of its own from a time on.
type policy struct {
	time uint64
	own  bool
}

type homes struct {
	time, first uint64 // first: page number
	nodes       []byte
}

// Read works the log out. The log may be closed after it.
func (l *Log) Read() (*History, error) {
	h := &History{Path: l.path, Objects: make([]Object, 1), Sites: make([][]uint64, 1), Starts: make([]uint64, 1), Loops: make([]Loop, 1), threads: map[uint32]*Thread{}}
	b := &builder{h: h, loops: map[[2]uint64]int32{}, starts: map[uint64]int{}, pinned: map[string]bool{}}
	if err := l.all(b.add); err != nil {
		return nil, err
	}
	var err error
	if h.Small, err = l.small(); err != nil {
		return nil, err
	}
	b.objects()
	b.settleRanks()
	slices.SortStableFunc(h.homes, func(x, y homes) int { return cmp.Compare(x.time, y.time) })
	for i := range h.Loops {
		h.Loops[i].settle()
	}
	for _, t := range h.threads {
		t.order()
	}
	return h, nil
}

// Thread is the thread of a system id; nil where the log does not know it.
func (h *History) Thread(tid uint32) *Thread { return h.threads[tid] }

// EachHome calls do for every page that the runtime asked the kernel for, in the
// order of time; node is an ordinal of the run file.
func (h *History) EachHome(do func(time, page uint64, node int)) {
	for _, q := range h.homes {
		for i, n := range q.nodes {
			if n != noNode {
				do(q.time, q.first+uint64(i), int(n))
			}
		}
	}
}

// Places reports whether the program itself chooses where memory is.
func (h *History) Places() bool { return len(h.binds) > 0 || h.prefers }

// Prefers reports whether a thread had a memory policy of its own (set_mempolicy,
// numactl) at any time from one to before another.
func (h *History) Prefers(tid uint32, from, to uint64) bool {
	t := h.threads[tid]
	if t == nil {
		return false
	}
	for i, p := range t.policies {
		if p.own && p.time < to && (i+1 == len(t.policies) || t.policies[i+1].time > from) {
			return true
		}
	}
	return false
}

// Placed reports whether the program itself chose where the page of this number is,
// from one time to before another.
func (h *History) Placed(page, from, to uint64) bool {
	h.bound.Do(func() { h.bindings = newBindings(h.binds) })
	return h.bindings.any(page, from, to)
}

// Ranks is one more than the highest rank.
func (h *History) Ranks() int {
	n := 0
	for _, t := range h.threads {
		n = max(n, t.Rank+1)
	}
	return n
}

// Inherit gives a forked process what its parent had when it was made: objects live on
// at their addresses, and call stacks keep their numbers. A nil parent has nothing.
func (h *History) Inherit(parent *History) {
	if parent == nil || parent == h {
		return
	}
	for i, frames := range parent.Sites {
		if i >= len(h.Sites) {
			h.Sites = append(h.Sites, frames)
		} else if h.Sites[i] == nil {
			h.Sites[i] = frames
		}
	}
	if h.Tracker == [2]uint64{} {
		h.Tracker = parent.Tracker
	}
	for i := range h.Loops {
		for _, l := range parent.Loops {
			if l.Entry == h.Loops[i].Entry && l.Site == h.Loops[i].Site {
				h.Loops[i].Dynamic = h.Loops[i].Dynamic || l.Dynamic
				h.Loops[i].DynamicLoops = h.Loops[i].DynamicLoops || l.DynamicLoops
			}
		}
	}
	for _, b := range parent.binds {
		if b.time <= h.Forked {
			h.binds = append(h.binds, b)
		}
	}
	mine := h.Objects[1:]
	h.Objects = make([]Object, 1, 1+len(mine))
	for _, o := range parent.Objects[1:] {
		if o.From > h.Forked || o.To <= h.Forked || o.Kind == arena.KindStack {
			continue
		}
		if o.To = Always; h.ended[o.Addr] != 0 {
			o.To = h.ended[o.Addr]
		}
		h.Objects = append(h.Objects, o)
	}
	h.Objects = append(h.Objects, mine...)
	h.inheritSmall(parent)
}

// inheritSmall takes the parent's pages of small allocations that the child has no own
// vote of. The parent's later ones are among them: votes have no time.
func (h *History) inheritSmall(parent *History) {
	mine := make(map[uint64]bool, len(h.Small))
	for _, v := range h.Small {
		mine[v.Page] = true
	}
	for _, v := range parent.Small {
		if !mine[v.Page] {
			h.Small = append(h.Small, v)
		}
	}
}

// At is the loop that the thread was in at a time, 0 for none. *near is where the
// latest answer was found.
func (t *Thread) At(time uint64, near *int) int {
	i := *near
	if i >= len(t.times) || t.times[i] > time || i+1 < len(t.times) && t.times[i+1] <= time {
		i = t.search(time, i)
		*near = max(i, 0)
	}
	if i < 0 || i >= len(t.loops) {
		return 0
	}
	return int(t.loops[i])
}

// search finds the last change that is not after time; -1 for none. It looks near i
// first: samples mostly come in their order.
func (t *Thread) search(time uint64, i int) int {
	if i+2 < len(t.times) && t.times[i+1] <= time && time < t.times[i+2] {
		return i + 1
	}
	at, found := slices.BinarySearch(t.times, time)
	if !found {
		return at - 1
	}
	for at+1 < len(t.times) && t.times[at+1] == time {
		at++
	}
	return at
}

// order puts changes in the order of time: pieces of a system id that was used again
// may lie in any.
func (t *Thread) order() {
	slices.SortStableFunc(t.policies, func(a, b policy) int { return cmp.Compare(a.time, b.time) })
	if slices.IsSorted(t.times) {
		return
	}
	type change struct {
		time uint64
		loop int32
	}
	all := make([]change, len(t.times))
	for i := range all {
		all[i] = change{t.times[i], t.loops[i]}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.time, b.time) })
	for i, c := range all {
		t.times[i], t.loops[i] = c.time, c.loop
	}
}

// settle gives a region its sweep, see arena.Loop: the last row may still go on.
func (l *Loop) settle() {
	switch {
	case l.Sweep == 0:
		l.Sweep = l.run
	case l.varies || l.run != 0 && l.run != l.Sweep:
		l.Sweep = 0
	}
}
