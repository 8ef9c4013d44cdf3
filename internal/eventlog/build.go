package eventlog

import (
	"cmp"
	"slices"

	"numaopt/internal/arena"
)

// noNode in a payload of homes: no page is there.
const noNode = 255

// Flags of a loop and of a bind (wire.h).
const (
	aboutLibOMP = 2
	aboutStatic = 4
	aboutAffine = 8
	bindOwn     = 0x10000
)

// builder makes a History of records.
type builder struct {
	h      *History
	loops  map[[2]uint64]int32 // by entry and site
	starts map[uint64]int
	events []event
	ranks  []rankEvent
	pinned map[string]bool // notes that were said
}

// rankEvent is what is known of the thread of a rank from a time on: who it is, or,
// where another thread says so (tid 0), whether the program chose its CPU.
type rankEvent struct {
	time   uint64
	tid    uint32
	rank   int
	pinned bool
}

// event is a beginning or an end of an object.
type event struct {
	time   uint64
	object Object
	ends   bool // of what begins at object.Addr
}

// add takes one record. Records of one thread come in their order.
func (b *builder) add(tid uint32, r *record) {
	h, a := b.h, &r.args
	switch r.op {
	case opTracker:
		h.Tracker = [2]uint64{a[0], a[1]}
	case opForked:
		if h.Parent, h.Forked = int(a[0]), a[1]; h.Forked == 0 {
			h.Forked = r.time
		}
	case opThreadStart:
		b.start(tid, r)
	case opThreadEnd:
		b.thread(tid).enter(r.time, 0)
		b.prefer(tid, r.time, false)
	case opPrefer:
		b.prefer(tid, r.time, a[0] != 0)
	case opThreadMoved:
		b.ranks = append(b.ranks, rankEvent{time: r.time, rank: int(a[0]), pinned: a[3] != 0})
	case opRegion:
		b.region(b.thread(tid), r)
	case opLoop:
		b.loop(b.thread(tid), r)
	case opDynamic:
		l := &h.Loops[b.index(a[0], 0)]
		l.Dynamic = true
		l.DynamicLoops = l.DynamicLoops || a[1] != 0
	case opSite:
		b.site(int(a[0]), r.payload)
	case opAlloc:
		b.alloc(r)
	case opFree:
		b.events = append(b.events, event{time: r.time, object: Object{Object: arena.Object{Addr: a[0]}}, ends: true})
	case opBind:
		if mode := a[2]; mode&bindOwn != 0 && mode&0xffff != 0 {
			h.binds = append(h.binds, bind{r.time, a[0] / pageSize, (a[0] + a[1] + pageSize - 1) / pageSize})
		}
	case opMove:
		if first := a[0] / pageSize; int64(a[2]) >= 0 {
			h.binds = append(h.binds, bind{r.time, first, first + a[1]})
		}
	case opNote:
		h.Notes = append(h.Notes, arena.Note{Kind: arena.NoteWarning, Text: text(r.payload)})
	case opPinned:
		b.pin(text(r.payload))
	case opHomes:
		nodes := r.payload[:min(uint64(len(r.payload)), a[1])]
		h.homes = append(h.homes, homes{r.time, a[0] / pageSize, slices.Clone(nodes)})
	}
}

const pageSize = 4096

func (b *builder) thread(tid uint32) *Thread {
	t := b.h.threads[tid]
	if t == nil {
		t = &Thread{Rank: -1}
		b.h.threads[tid] = t
	}
	return t
}

// start reads a thread's beginning, or its move: struct nmo_thread follows.
func (b *builder) start(tid uint32, r *record) {
	t := b.thread(tid)
	b.h.Bound = b.h.Bound || int32(r.args[1]) >= 0
	rank := int(r.args[0])
	if len(r.payload) < 32 {
		b.ranks = append(b.ranks, rankEvent{time: r.time, tid: tid, rank: rank})
		return
	}
	b.ranks = append(b.ranks, rankEvent{r.time, tid, rank, le.Uint32(r.payload[24:]) != 0})
	if fn := le.Uint64(r.payload); fn != 0 {
		t.Start = b.startOf(fn)
	}
	lo, hi := le.Uint64(r.payload[8:]), le.Uint64(r.payload[16:])
	if lo == 0 || lo >= hi {
		return
	}
	b.events = append(b.events, event{time: r.time, object: Object{From: r.time, To: Always, Object: arena.Object{
		Addr: lo, Bytes: hi - lo, Rank: rank, Kind: arena.KindStack}}})
}

func (b *builder) startOf(fn uint64) int {
	if i, ok := b.starts[fn]; ok {
		return i
	}
	b.starts[fn] = len(b.h.Starts)
	b.h.Starts = append(b.h.Starts, fn)
	return b.starts[fn]
}

// prefer notes whether the thread has a memory policy from then on.
func (b *builder) prefer(tid uint32, time uint64, own bool) {
	if t := b.thread(tid); own || len(t.policies) > 0 {
		t.policies = append(t.policies, policy{time, own})
		b.h.prefers = true
	}
}

// pin notes who binds threads: once, though every thread says it.
func (b *builder) pin(who string) {
	if !b.pinned[who] {
		b.pinned[who] = true
		b.h.Notes = append(b.h.Notes, arena.Note{Kind: arena.NotePinned, Text: who})
	}
}

// settleRanks gives threads their ranks and whether they are pinned, in the order of
// time: a thread may be moved by one whose records lie before its own.
func (b *builder) settleRanks() {
	slices.SortStableFunc(b.ranks, func(x, y rankEvent) int { return cmp.Compare(x.time, y.time) })
	holds := map[int]*Thread{}
	for _, e := range b.ranks {
		if e.tid != 0 {
			holds[e.rank] = b.thread(e.tid)
			holds[e.rank].Rank = e.rank
		}
		if t := holds[e.rank]; t != nil {
			t.Pinned = e.pinned
		}
	}
}

// index is the number of the loop at site of the region entry; site 0 is the region
// as a whole.
func (b *builder) index(entry, site uint64) int32 {
	key := [2]uint64{entry, site}
	if i, ok := b.loops[key]; ok {
		return i
	}
	i := int32(len(b.h.Loops))
	b.loops[key] = i
	b.h.Loops = append(b.h.Loops, Loop{Entry: entry, Site: site})
	return i
}

// region: the thread is now in a parallel region, or in none. The master counts.
func (b *builder) region(t *Thread, r *record) {
	entry, master, instance, row := r.args[0], r.args[1] != 0, r.args[2], r.args[3]
	t.region = entry
	if entry == 0 {
		t.enter(r.time, 0)
		return
	}
	i := b.index(entry, 0)
	if master {
		b.h.Loops[i].Entries++
		if row != 0 {
			b.row(t, i, instance)
		}
	}
	t.enter(r.time, i)
}

// row counts an instance of a region: the one before it may have had the last of its
// row.
func (b *builder) row(t *Thread, i int32, instance uint64) {
	if l := &b.h.Loops[t.row]; instance == 0 && t.row != 0 {
		if l.Sweep == 0 {
			l.Sweep = l.run
		} else if l.Sweep != l.run {
			l.varies = true
		}
		l.run = 0
	}
	t.row = i
	b.h.Loops[i].run = instance + 1
}

// loop: the thread is now in the worksharing loop of a site, or in none.
func (b *builder) loop(t *Thread, r *record) {
	site, about, master, last := r.args[0], r.args[1], r.args[2] != 0, r.args[3]
	if t.region == 0 {
		return
	}
	i := b.index(t.region, site)
	if site != 0 && about != 0 {
		if last != 0 && last != site {
			b.join(b.index(t.region, last), i)
		}
		l := &b.h.Loops[i]
		l.LibOMP, l.Static, l.Affine = about&aboutLibOMP != 0, about&aboutStatic != 0, about&aboutAffine != 0
		if master {
			l.Entries++
		}
	}
	t.enter(r.time, i)
}

// join notes that no barrier parts two loops.
func (b *builder) join(x, y int32) {
	x, y = b.root(x), b.root(y)
	if x != y {
		b.h.Loops[max(x, y)].Joined = int(min(x, y))
	}
}

func (b *builder) root(i int32) int32 {
	for b.h.Loops[i].Joined != 0 {
		i = int32(b.h.Loops[i].Joined)
	}
	return i
}

// enter notes that the thread is in a loop from then on.
func (t *Thread) enter(time uint64, loop int32) {
	if loop == t.loop {
		return
	}
	t.loop = loop
	t.times, t.loops = append(t.times, time), append(t.loops, loop)
}

// maxSites bounds what a damaged number of a site can ask for.
const maxSites = 1 << 22

func (b *builder) site(id int, payload []byte) {
	if id <= 0 || id >= maxSites {
		return
	}
	for len(b.h.Sites) <= id {
		b.h.Sites = append(b.h.Sites, nil)
	}
	frames := make([]uint64, len(payload)/8)
	for i := range frames {
		frames[i] = le.Uint64(payload[8*i:])
	}
	b.h.Sites[id] = frames
}

// alloc reads an object's beginning: struct nmo_alloc follows.
func (b *builder) alloc(r *record) {
	p := r.payload
	addr, bytes := r.args[0], r.args[1]
	if len(p) < 16 || addr == 0 || bytes == 0 || addr+bytes < addr {
		return
	}
	b.events = append(b.events, event{time: r.time, object: Object{From: r.time, To: Always, Object: arena.Object{
		Addr: addr, Bytes: bytes, Site: int(le.Uint32(p)), Rank: int(le.Uint32(p[4:])), Ordinal: int(le.Uint32(p[8:])), Kind: p[12], Overlaps: p[13] != 0}}})
}

// objects pairs beginnings and ends, in the order of time.
func (b *builder) objects() {
	slices.SortStableFunc(b.events, func(x, y event) int { return cmp.Compare(x.time, y.time) })
	live := map[uint64]int{}
	b.h.ended = map[uint64]uint64{}
	for i := range b.events {
		e := &b.events[i]
		old, ok := live[e.object.Addr]
		if ok && !e.ends && sameStack(&b.h.Objects[old], &e.object) {
			continue
		}
		if ok {
			b.h.Objects[old].To = e.time
			delete(live, e.object.Addr)
		} else if e.ends && b.h.ended[e.object.Addr] == 0 {
			b.h.ended[e.object.Addr] = e.time
		}
		if !e.ends {
			live[e.object.Addr] = len(b.h.Objects)
			b.h.Objects = append(b.h.Objects, e.object)
		}
	}
	b.events = nil
}

// sameStack: the same stack under the same rank is one object.
func sameStack(x, y *Object) bool {
	return x.Kind == arena.KindStack && y.Kind == arena.KindStack && x.Rank == y.Rank && x.Bytes == y.Bytes
}
