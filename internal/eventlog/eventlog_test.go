package eventlog

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"numaopt/internal/arena"
	et "numaopt/internal/eventlog/eventlogtest"
)

func history(t *testing.T, w *et.Writer) *History {
	t.Helper()
	w.PID = 100
	prefix := filepath.Join(t.TempDir(), "log")
	w.File(t, prefix)
	l, err := Open(prefix, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestObjects pairs allocations with their ends, by time and not by the order in
// which threads' pieces lie in the file.
func TestObjects(t *testing.T) {
	w := &et.Writer{Small: []et.Vote{{Page: 7, Site: 2}}}
	w.Hello(100, 1)
	w.Alloc(101, 10, 0x10000, 8192, 1, 1, 0, 1)
	w.Free(100, 20, 0x10000) // by another thread
	w.Alloc(101, 30, 0x10000, 4096, 2, 1, 0, 1)
	w.Alloc(100, 40, 0x10000, 5000, 1, 0, 0, 1) // its end was not seen
	w.Free(101, 50, 0x90000)                    // never begun
	w.Site(100, 5, 2, 0xa, 0xb)
	h := history(t, w)
	want := []Object{{},
		{arena.Object{Addr: 0x10000, Bytes: 8192, Site: 1, Rank: 1, Kind: 1}, 10, 20},
		{arena.Object{Addr: 0x10000, Bytes: 4096, Site: 2, Rank: 1, Kind: 1}, 30, 40},
		{arena.Object{Addr: 0x10000, Bytes: 5000, Site: 1, Kind: 1}, 40, Always},
	}
	if d := cmp.Diff(want, h.Objects); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if d := cmp.Diff([][]uint64{nil, nil, {0xa, 0xb}}, h.Sites); d != "" {
		t.Errorf("sites (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]arena.SmallVote{{Page: 7, Site: 2}}, h.Small); d != "" {
		t.Errorf("small (-want +got):\n%s", d)
	}
}

// TestLoops follows threads through regions and loops, over several pieces of the
// file, and counts as the emulator's plugin does.
func TestLoops(t *testing.T) {
	w := &et.Writer{}
	w.Hello(100, 1)
	w.Thread(100, 2, 0, -1, 0, 0x7000, 0x9000)
	w.Thread(101, 3, 1, -1, 0x500, 0, 0)
	const f, g, s1, s2 = 0x400, 0x480, 0x410, 0x420
	now := uint64(1000)
	for range 30 { // two regions by turns, the first twice in a row
		for i := range uint64(2) {
			w.Region(100, now, f, true, i, 1)
			w.Region(101, now+1, f, false, i, 1)
			w.Loop(100, now+10, s1, 2|4, true, 0)
			w.Loop(100, now+20, 0, 0, false, 0)
			w.Loop(100, now+30, s2, 2|4, true, s1)
			w.Region(100, now+40, 0, false, 0, 0)
			w.Region(101, now+40, 0, false, 0, 0)
			now += 100
		}
		w.Region(100, now, g, true, 0, 2)
		w.Region(100, now+5, 0, false, 0, 0)
		now += 100
	}
	w.Op(100, now, 17, [5]uint64{g, 1})
	h := history(t, w)
	want := []Loop{{},
		{Entry: f, Loop: arena.Loop{Entries: 60, Sweep: 2}},
		{Entry: f, Site: s1, Loop: arena.Loop{Entries: 60, LibOMP: true, Static: true}},
		{Entry: f, Site: s2, Loop: arena.Loop{Entries: 60, LibOMP: true, Static: true, Joined: 2}},
		{Entry: g, Loop: arena.Loop{Entries: 30, Sweep: 1, Dynamic: true, DynamicLoops: true}},
	}
	if d := cmp.Diff(want, h.Loops, cmpopts.IgnoreUnexported(Loop{})); d != "" {
		t.Errorf("loops (-want +got):\n%s", d)
	}
	main, other := h.Thread(100), h.Thread(101)
	if main.Rank != 0 || other.Rank != 1 || h.Starts[other.Start] != 0x500 {
		t.Errorf("threads %+v %+v, starts %x", main, other, h.Starts)
	}
	near := 0
	for _, c := range []struct {
		thread *Thread
		time   uint64
		want   int
	}{{main, 999, 0}, {main, 1000, 1}, {main, 1009, 1}, {main, 1015, 2}, {main, 1025, 1}, {main, 1035, 3}, {main, 1040, 0}, {main, 1203, 4},
		{other, 1000, 0}, {other, 1001, 1}, {main, 1015, 2}, {main, now + 5, 0}, {main, 0, 0}} {
		if got := c.thread.At(c.time, &near); got != c.want {
			t.Errorf("loop at %d: %d, want %d", c.time, got, c.want)
		}
	}
	if o := h.Objects; len(o) != 2 || o[1].Kind != arena.KindStack || o[1].Bytes != 0x2000 {
		t.Errorf("objects %+v, want the main thread's stack", o)
	}
}

// TestPinned: threads are pinned by others whose records come first in the file, a rank
// has several threads by turns, and who pins is said once.
func TestPinned(t *testing.T) {
	w := &et.Writer{}
	w.Hello(100, 1)
	w.Op(100, 10, 15, [5]uint64{}, []byte("sched_setaffinity\x00")...)
	w.Op(100, 30, 16, [5]uint64{1, 2, 0, 1}) // rank 1, by then thread 102
	w.Op(100, 30, 16, [5]uint64{2, 2, 0, 1}) // never begun
	w.Thread(101, 5, 1, -1, 0, 0, 0)
	w.Op(101, 10, 15, [5]uint64{}, []byte("sched_setaffinity\x00")...)
	w.Thread(102, 20, 1, -1, 0, 0, 0)
	w.Thread(103, 40, 1, -1, 0, 0, 0)
	h := history(t, w)
	if h.Thread(101).Pinned || !h.Thread(102).Pinned || h.Thread(103).Pinned {
		t.Errorf("pinned: %v %v %v, want the second only", h.Thread(101).Pinned, h.Thread(102).Pinned, h.Thread(103).Pinned)
	}
	if d := cmp.Diff([]arena.Note{{Kind: arena.NotePinned, Text: "sched_setaffinity"}}, h.Notes); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}

// TestExec takes the latest program of a process only.
func TestExec(t *testing.T) {
	w := &et.Writer{}
	w.Hello(100, 1)
	for i := range uint64(200) { // several pieces
		w.Alloc(100, 2+i, 0x10000+i<<16, 4096, 1, 0, int(i), 1)
	}
	w.Alloc(101, 5, 0x10000, 4096, 1, 0, 0, 1)
	w.Hello(100, 1000)
	w.Alloc(100, 1001, 0x20000, 4096, 1, 0, 0, 1)
	if h := history(t, w); len(h.Objects) != 2 || h.Objects[1].From != 1001 {
		t.Errorf("%d objects, want the new program's one", len(h.Objects)-1)
	}
}

// TestPIDAgain: a forked child with the number of an ended process is not that one.
func TestPIDAgain(t *testing.T) {
	w := &et.Writer{}
	w.Hello(100, 1)
	w.Alloc(100, 2, 0x10000, 4096, 1, 0, 0, 1)
	w.Forked(100, 1000, 50, 0)
	w.Alloc(100, 1001, 0x20000, 4096, 1, 0, 0, 1)
	if h := history(t, w); len(h.Objects) != 2 || h.Objects[1].From != 1001 || h.Parent != 50 {
		t.Errorf("%d objects of a child of %d, want the child's one", len(h.Objects)-1, h.Parent)
	}
}

// TestFork: a child goes on with its parent's objects.
func TestFork(t *testing.T) {
	p := &et.Writer{Small: []et.Vote{{Page: 7, Site: 1}, {Page: 8, Site: 1}}}
	p.Hello(100, 1)
	p.Site(100, 2, 1, 0xa)
	p.Alloc(100, 10, 0x10000, 4096, 1, 0, 0, 1)
	p.Alloc(100, 11, 0x20000, 4096, 1, 0, 1, 1)
	p.Alloc(100, 12, 0x30000, 4096, 1, 0, 2, 1)
	p.Free(100, 15, 0x20000)
	p.Op(100, 20, 12, [5]uint64{0x10000, 4096, 0x10002, 1})
	p.Op(100, 80, 12, [5]uint64{0x30000, 4096, 0x10002, 1})
	p.Alloc(100, 90, 0x40000, 4096, 1, 0, 3, 1)
	c := &et.Writer{Small: []et.Vote{{Page: 8, Site: 2}}}
	c.Forked(200, 55, 100, 50)
	c.Free(200, 60, 0x30000)
	c.Alloc(200, 70, 0x30000, 8192, 1, 0, 3, 1)
	parent, child := history(t, p), history(t, c)
	child.Inherit(parent)
	if !child.Placed(0x10, 0, Always) || child.Placed(0x30, 0, Always) {
		t.Error("what the parent placed before the fork, and no more, is placed in the child")
	}
	type life struct{ addr, from, to uint64 }
	var got []life
	for _, o := range child.Objects[1:] {
		got = append(got, life{o.Addr, o.From, o.To})
	}
	if d := cmp.Diff([]life{{0x10000, 10, Always}, {0x30000, 12, 60}, {0x30000, 70, Always}}, got, cmp.AllowUnexported(life{})); d != "" {
		t.Errorf("objects of the child (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]arena.SmallVote{{Page: 8, Site: 2}, {Page: 7, Site: 1}}, child.Small); d != "" {
		t.Errorf("small allocations of the child (-want +got):\n%s", d)
	}
	if d := cmp.Diff([][]uint64{nil, {0xa}}, child.Sites); d != "" {
		t.Errorf("sites of the child (-want +got):\n%s", d)
	}
}

// TestCut: what a killed process had not finished ends its piece and nothing else.
func TestCut(t *testing.T) {
	w := &et.Writer{PID: 100}
	w.Hello(100, 1)
	w.Alloc(100, 2, 0x10000, 4096, 1, 0, 0, 1)
	w.Alloc(101, 3, 0x20000, 4096, 1, 1, 0, 1)
	b := w.Bytes()
	at := 4096 + 16*16 + 8 + 56
	le.PutUint32(b[at:], 0) // the first thread's second record
	l, err := parse("log", bytes.NewReader(b), uint64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if h, err := l.Read(); err != nil || len(h.Objects) != 2 || h.Objects[1].Addr != 0x20000 {
		t.Errorf("objects %+v, want the other thread's", h.Objects[1:])
	}
}

func TestBad(t *testing.T) {
	good := (&et.Writer{}).Bytes()
	old := append([]byte{}, good...)
	le.PutUint32(old[16:], 9)
	small := append([]byte{}, good...)
	le.PutUint32(small[56:], 1<<30)
	for _, c := range []struct {
		data []byte
		want string
	}{{good[:40], "ends in its head"}, {make([]byte, 5000), "no log"}, {old, "version 9"}, {small, "damaged"}} {
		if _, err := parse("log", bytes.NewReader(c.data), uint64(len(c.data))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// FuzzLog: no length in a log is trusted.
func FuzzLog(f *testing.F) {
	w := &et.Writer{PID: 1, Small: []et.Vote{{Page: 7, Site: 2}}}
	w.Hello(100, 1)
	w.Thread(100, 2, 0, 1, 5, 0x7000, 0x9000)
	w.Site(100, 3, 1, 0xa)
	w.Alloc(100, 4, 0x10000, 8192, 1, 0, 0, 1)
	w.Region(100, 5, 0x400, true, 0, 1)
	w.Loop(100, 6, 0x410, 6, true, 0)
	w.Homes(100, 7, 0x10000, 0, 1, 255)
	f.Add(w.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parse("log", bytes.NewReader(b), uint64(len(b)))
		if err != nil {
			return
		}
		h, err := l.Read()
		if err != nil {
			return
		}
		h.EachHome(func(uint64, uint64, int) {})
		for _, th := range h.threads {
			near := 0
			th.At(5, &near)
		}
	})
}
