package sample

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	et "numaopt/internal/eventlog/eventlogtest"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// TestLogged merges a recording with what the runtime wrote down: objects, ranks,
// loops and homes are the log's.
func TestLogged(t *testing.T) {
	w := recording()
	w.Mmap(100, 100, 3, 0x400000, 0x10000, 0, "/nowhere/app")
	log := &et.Writer{PID: 100, Small: []et.Vote{{Page: (heapA + 0x8000) >> 12, Site: 1}}}
	log.Hello(100, 5)
	log.Op(100, 5, 2, [5]uint64{0x700000, 0x701000})
	log.Thread(101, 6, 3, -1, 0x401800, 0, 0)
	log.Thread(100, 6, 0, -1, 0, 0, 0)
	log.Site(100, 7, 1, 0x401005)
	log.Alloc(100, 10, heapA+16, 8192, 1, 0, 0, 1)
	log.Region(101, 20, 0x401200, true, 0, 1)
	log.Loop(101, 25, 0x401234, 6, true, 0)
	log.Region(101, 40, 0, false, 0, 0)
	log.Homes(100, 45, heapA, 1, 0)
	log.Free(100, 50, heapA+16)
	log.Alloc(101, 60, heapA, 4096, 1, 3, 0, 1)
	prefix := filepath.Join(t.TempDir(), "log")
	log.File(t, prefix)
	w.Mmap(100, 100, 4, 0x7e0000000000, 0x10000, 0, prefix+".100")
	own := at(100, 0, 30, heapA, localRAM, 100)
	own.IP = 0x700010
	w.Add(pt.Variable{},
		at(100, 0, 12, heapA+64, hitL1, 5),
		at(101, 2, 21, heapA+4096, hitL1, 5),   // in the region
		at(101, 2, 26, heapA+4096, hitL1, 5),   // in its loop
		at(101, 2, 41, heapA+4096, hitL1, 5),   // after it
		at(101, 2, 61, heapA, hitL1, 5),        // of the second object there
		at(100, 0, 62, heapA+0x8000, hitL1, 5), // of no object
		own,
		at(100, 0, 63, 0x7e0000000010, hitL1, 5),
	)
	table, stats := read(t, w, Options{Log: prefix})
	if stats.Used != 6 || stats.Own != 2 || !table.Logged() {
		t.Errorf("stats %+v, want 6 used and 2 of the runtime", stats)
	}
	type row struct {
		object, home, rank int
		number             uint64
		loop, start        int
	}
	threads, _ := table.Threads()
	pages := map[int]arena.Page{}
	table.EachPage(func(i int, p arena.Page) { pages[i] = p }) //nolint:errcheck // memory
	var got []row
	table.EachBlock(func(b *arena.Block) { //nolint:errcheck // memory
		p := pages[b.Page]
		r := row{object: p.Object, home: p.Home, rank: threads[b.Thread].Rank, number: p.Number - heapA>>12}
		if n, ok := b.Region.Loop(); ok {
			r.loop = n
		} else {
			_, r.start = b.Region.Function()
		}
		got = append(got, r)
	})
	want := []row{
		{0, -1, 0, 8, 0, 0},
		{1, 1, 0, 0, 0, 0},
		{1, 0, 3, 1, 0, 1},
		{1, 0, 3, 1, 1, 0},
		{1, 0, 3, 1, 2, 0},
		{2, -1, 3, 0, 0, 1},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(row{})); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	loops, _ := table.Loops()
	wantLoops := []arena.Loop{{},
		{Code: arena.Code{VAddr: 0x1200}, Site: arena.Code{Module: -1}, Entries: 1, Sweep: 1},
		{Code: arena.Code{VAddr: 0x1200}, Site: arena.Code{VAddr: 0x1234}, Entries: 1, LibOMP: true, Static: true},
	}
	if d := cmp.Diff(wantLoops, loops); d != "" {
		t.Errorf("loops (-want +got):\n%s", d)
	}
	starts, _ := table.Starts()
	if d := cmp.Diff([]arena.Code{{}, {VAddr: 0x1800}}, starts); d != "" {
		t.Errorf("starts (-want +got):\n%s", d)
	}
	small := 0
	table.EachSmall(func(v arena.SmallVote) { small += v.Site }) //nolint:errcheck // memory
	if small != 1 {
		t.Errorf("votes of small allocations: sites add up to %d, want 1", small)
	}
}

// TestLifetimes compares the tree with a search through all objects.
func TestLifetimes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	objects := make([]eventlog.Object, 1)
	now := uint64(0)
	for range 5000 {
		now += rnd.Uint64N(10) * soon / 16
		o := eventlog.Object{From: now, To: now + 1 + rnd.Uint64N(40)*soon/8}
		o.Addr = rnd.Uint64N(64) * 1024
		o.Bytes = 4096 + rnd.Uint64N(40)*512
		overlaps := func(x eventlog.Object) bool {
			return x.To > o.From && x.Addr < o.Addr+o.Bytes && o.Addr < x.Addr+x.Bytes
		}
		if !slices.ContainsFunc(objects, overlaps) {
			objects = append(objects, o)
		}
	}
	l := newLifetimes(objects)
	f := finder{in: l}
	for range 20000 {
		addr, time := rnd.Uint64N(100*1024), rnd.Uint64N(now+now/10+1)
		if got, want := f.find(addr, time), slowly(objects, addr/4096, time); got != want {
			t.Fatalf("object at %#x at %d: %d, want %d", addr, time, got, want)
		}
	}
}

func slowly(objects []eventlog.Object, page, time uint64) int32 {
	best, next := int32(0), int32(0)
	for i := range objects[1:] {
		o, n := &objects[i+1], int32(i+1)
		switch {
		case o.Addr/4096 > page || (o.Addr+o.Bytes-1)/4096 < page:
		case o.From > time && o.From-time < soon && next == 0:
			next = n
		case o.From <= time && time < o.To && (best == 0 || cover(o, page) >= cover(&objects[best], page)):
			best = n
		}
	}
	if best == 0 {
		return next
	}
	return best
}

// TestInherit: a grandchild has what its grandparent had, in whatever order the logs are met.
func TestInherit(t *testing.T) {
	for range 20 {
		logs := map[uint32]*eventlog.History{}
		for pid := uint32(1); pid < 20; pid++ {
			h := &eventlog.History{Objects: make([]eventlog.Object, 1), Parent: int(pid - 1), Forked: uint64(pid-1) * 100}
			if pid == 1 {
				h.Objects = append(h.Objects, eventlog.Object{Object: arena.Object{Addr: heapA, Bytes: 4096, Kind: 1}, From: 5, To: eventlog.Always})
			}
			logs[pid] = h
		}
		inherit(logs)
		for pid, h := range logs {
			if len(h.Objects) != 2 {
				t.Fatalf("process %d has %d objects, want its ancestor's one", pid, len(h.Objects)-1)
			}
		}
	}
}

// TestPolicies: what threads with a memory policy touch is placed by the program.
func TestPolicies(t *testing.T) {
	w := recording()
	log := &et.Writer{PID: 100}
	log.Hello(100, 5)
	log.Thread(100, 6, 0, -1, 0, 0, 0)
	log.Thread(101, 6, 1, -1, 0, 0, 0)
	log.Alloc(100, 7, heapA, 4096, 1, 0, 0, 1)         // placed: the policy comes before it is touched
	log.Op(100, 10, 19, [5]uint64{3, 3})               // interleave
	log.Alloc(100, 12, heapA+0x1000, 4096, 1, 0, 1, 1) // placed
	log.Op(100, 20, 19, [5]uint64{})                   // default
	log.Alloc(100, 30, heapA+0x2000, 4096, 1, 0, 2, 1) // not
	log.Alloc(100, 15, heapA+0x3000, 4096, 1, 0, 3, 1) // not: most samples are another thread's
	prefix := filepath.Join(t.TempDir(), "log")
	log.File(t, prefix)
	w.Add(pt.Variable{},
		at(100, 0, 40, heapA, hitL1, 5), at(100, 0, 41, heapA+0x1000, hitL1, 5), at(100, 0, 42, heapA+0x2000, hitL1, 5),
		at(100, 0, 43, heapA+0x3000, hitL1, 5), at(101, 2, 43, heapA+0x3000, hitL1, 5), at(101, 2, 44, heapA+0x3000, hitL1, 5))
	table, _ := read(t, w, Options{Log: prefix})
	got := map[uint64]bool{}
	table.EachPage(func(_ int, p arena.Page) { got[p.Number-heapA>>12] = p.Placed }) //nolint:errcheck // memory
	if d := cmp.Diff(map[uint64]bool{0: true, 1: true, 2: false, 3: false}, got); d != "" {
		t.Errorf("pages that the program placed (-want +got):\n%s", d)
	}
}

// TestUnlogged: a forked child that only computes has no log, but its parent's objects; one
// that became a program without the runtime has neither.
func TestUnlogged(t *testing.T) {
	log := func(pid int) *eventlog.History { return eventlog.Heir(pid, 0) }
	r := &reader{born: map[thread]uint64{{2, 2}: 10, {3, 3}: 20, {5, 5}: 30}}
	logs := map[uint32]*eventlog.History{1: log(0)}
	logs[1].Objects = append(logs[1].Objects,
		eventlog.Object{Object: arena.Object{Addr: heapA, Bytes: 4096, Kind: 1}, From: 5, To: eventlog.Always},
		eventlog.Object{Object: arena.Object{Addr: heapB, Bytes: 4096, Kind: 1}, From: 15, To: eventlog.Always})
	r.unlogged(logs, map[uint32]uint32{2: 1, 3: 2, 5: 4})
	inherit(logs)
	for pid, want := range map[uint32]int{2: 1, 3: 1} {
		if h := logs[pid]; h == nil || len(h.Objects)-1 != want {
			t.Errorf("process %d: %+v, want %d objects", pid, h, want)
		}
	}
	if logs[5] != nil || logs[4] != nil {
		t.Error("a process of another program has a history")
	}
}

// TestNoLog: a log that could not be written is said to be missing, and the runtime's own
// accesses are left out all the same.
func TestNoLog(t *testing.T) {
	w := recording()
	w.Mmap(100, 100, 3, 0x700000, 0x10000, 0, "/lib/numaopt/libnumaopt.so")
	own := at(100, 0, 30, heapA, localRAM, 100)
	own.IP = 0x700010
	w.Add(pt.Variable{}, own, at(100, 0, 12, heapA+64, hitL1, 5))
	_, stats := read(t, w, Options{Log: filepath.Join(t.TempDir(), "log")})
	if stats.Own != 1 || !strings.Contains(stats.NoLog, "could not be written") {
		t.Errorf("%d of the runtime, %q, want 1 and the reason", stats.Own, stats.NoLog)
	}
	if _, stats = read(t, w, Options{}); stats.NoLog != "" {
		t.Errorf("without a log to read: %q", stats.NoLog)
	}
}

// TestStackBefore: who makes a thread writes to its stack long before it runs; what lies
// where an object will be much later is none of it.
func TestStackBefore(t *testing.T) {
	stack := eventlog.Object{From: 10 * soon, To: eventlog.Always, Object: arena.Object{Addr: 1 << 20, Bytes: 1 << 13, Kind: arena.KindStack}}
	heap := stack
	heap.Addr, heap.Kind = 2<<20, arena.KindHeap
	l := newLifetimes([]eventlog.Object{{}, stack, heap})
	for _, c := range []struct {
		addr uint64
		want int32
	}{{stack.Addr, 1}, {heap.Addr, 0}} {
		if got, _ := l.at(c.addr>>12, soon); got != c.want {
			t.Errorf("at %#x is object %d, want %d", c.addr, got, c.want)
		}
	}
}
