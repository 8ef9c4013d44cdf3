package ingest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/arena"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

func run(t testing.TB) profile.Run {
	t.Helper()
	machine, err := topo.Parse("2x1")
	if err != nil {
		t.Fatal(err)
	}
	return profile.Run{Topology: machine, Period: 1, Cache: topo.DefaultCaches()}
}

func fromBytes(data []byte, run profile.Run) (*profile.Profile, error) {
	a, err := arena.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return FromCounts(a, run, new(symbol.Table))
}

// example has a heap object of two pages, one of which changes its home, a stack, a page
// of small allocations, one of a library and one that nobody knows.
func example() *arena.Builder {
	b := arena.NewBuilder()
	m := b.Module("/nonexistent/libx.so.1", 0x10000, 0x20000)
	t0, t1 := b.Thread(0, 0, 0), b.Thread(1, 1, 1)
	fn := arena.Region(b.Func(m, 0x40))
	loop := b.Loop(m, 0x80, 3, 0)
	site := b.Site(0x10100, 0x10200)
	heap := b.Object(arena.KindHeap, site, 0, 2, 0x100010, 8000)
	stack := b.Object(arena.KindStack, 0, 1, 0, 0x200000, 0x8000)
	page := func(number uint64, object, home, thread int, r arena.Region) int {
		return b.Page(arena.Page{Number: number, Object: object, Home: home, Thread: thread, Region: r, Module: m, PC: 0x44, Serial: r == fn})
	}
	count := func(page, thread int, r arena.Region, loads, dram uint64) {
		b.Block(arena.Block{Page: page, Thread: thread, Region: r, Count: [4][2]uint64{{loads, 0}, {}, {}, {0, dram}}})
	}
	p := page(0x100, heap, 0, t0, fn)
	count(p, t0, fn, 10, 1)
	count(p, t1, loop, 20, 2)
	count(p, t1, loop, 5, 0) // the same cell once more
	count(page(0x100, heap, 1, t1, loop), t1, loop, 7, 0)
	count(page(0x101, heap, 1, t1, loop), t1, loop, 9, 0)
	count(page(0x202, stack, 1, t1, loop), t1, loop, 11, 0)
	b.Small(arena.SmallVote{Page: 0x300, Site: site})
	count(page(0x300, 0, 0, t0, fn), t0, fn, 13, 0)
	count(page(0x11, 0, -1, t0, fn), t0, fn, 17, 0)
	count(page(0x400, 0, 0, t0, fn), t0, fn, 19, 0)
	return b
}

func TestFromCounts(t *testing.T) {
	p, err := fromBytes(example().Bytes(), run(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Rows {
		g := p.Pages[r.Page]
		o := p.Objects[g.Object]
		got = append(got, fmt.Sprintf("%s %q page %d home %d, thread %d in %s %q: op %d level %d: %d",
			o.Kind, o.Name, g.Index, g.Home, p.Threads[r.Thread].Rank, p.Regions[r.Region].Kind, p.Regions[r.Region].Name, r.Op, r.Level, r.Count))
	}
	want := `heap "libx.so.1+0x100" page 0 home 0, thread 0 in serial "serial in libx.so.1": op 0 level 0: 10
heap "libx.so.1+0x100" page 0 home 0, thread 0 in serial "serial in libx.so.1": op 1 level 3: 1
heap "libx.so.1+0x100" page 0 home 0, thread 1 in loop "libx.so.1+0x80": op 0 level 0: 25
heap "libx.so.1+0x100" page 0 home 0, thread 1 in loop "libx.so.1+0x80": op 1 level 3: 2
heap "libx.so.1+0x100" page 0 home 1, thread 1 in loop "libx.so.1+0x80": op 0 level 0: 7
heap "libx.so.1+0x100" page 1 home 1, thread 1 in loop "libx.so.1+0x80": op 0 level 0: 9
stack "stack of thread 1" page 2 home 1, thread 1 in loop "libx.so.1+0x80": op 0 level 0: 11
small "small objects of libx.so.1+0x100" page 0 home 0, thread 0 in serial "serial in libx.so.1": op 0 level 0: 13
image "libx.so.1" page 1 home -1, thread 0 in serial "serial in libx.so.1": op 0 level 0: 17
unknown "memory that nobody asked numaopt for" page 1024 home 0, thread 0 in serial "serial in libx.so.1": op 0 level 0: 19`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	if o := p.Objects[0]; o.Ordinal != 2 || o.Head != 16 || o.Bytes != 8000 || o.Site != 0 {
		t.Errorf("object %+v", o)
	}
}

// TestWorksharing has two regions; in the first one, loops 1 and 3 and 3 and 4
// follow one another without a barrier.
func TestWorksharing(t *testing.T) {
	b := arena.NewBuilder()
	m := b.Module("/nonexistent/app", 0x10000, 0x20000)
	thread := b.Thread(0, 0, 0)
	b.Loop(m, 0x80, 3, 8)
	one := b.WorkLoop(m, 0x80, 0x91, 12, 0)
	b.WorkLoop(m, 0x80, 0x92, 3, 0)
	three := b.WorkLoop(m, 0x80, 0x93, 12, one)
	b.WorkLoop(m, 0x80, 0x94, 12, three)
	b.Loop(m, 0x200, 7, 1)
	b.WorkLoop(m, 0x200, 0x91, 5, 0)
	b.Block(arena.Block{Page: b.Page(arena.Page{Number: 0x11, Module: m, Region: one}), Thread: thread, Region: one, Count: [4][2]uint64{{1}}, First: 4095})
	b.Block(arena.Block{Page: 1, Thread: thread, Region: one, Count: [4][2]uint64{{}, {}, {}, {7}}, First: 3, Last: 4})
	b.Block(arena.Block{Page: 1, Thread: thread, Region: one, Count: [4][2]uint64{{}, {}, {}, {2}}, First: 2, Last: 2})
	p, err := fromBytes(b.Bytes(), run(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range p.Regions {
		got = append(got, fmt.Sprintf("%s: %x %x %v %s %q group %d, %d in sweeps of %d", r.Name, r.Code.Offset, r.Site.Offset, r.Worksharing(), r.Runtime, r.Schedule, r.Group, r.Invocations, r.Sweep))
	}
	want := `app+0x80: 80 0 false  "" group 0, 0 in sweeps of 8
app+0x91: 80 91 true libomp "static" group 1, 12 in sweeps of 8
app+0x92: 80 92 true libomp "static" group 0, 3 in sweeps of 8
app+0x93: 80 93 true libomp "static" group 1, 12 in sweeps of 8
app+0x94: 80 94 true libomp "static" group 1, 12 in sweeps of 8
app+0x200: 200 0 false  "" group 0, 0 in sweeps of 1
app+0x91: 200 91 true libomp "static" group 0, 5 in sweeps of 1`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
	if len(p.Rows) != 2 || p.Regions[p.Rows[0].Region].Site.Offset != 0x91 || p.Rows[1].Count != 9 || p.Rows[1].First != 60 || p.Rows[1].Last != 120 {
		t.Errorf("rows %+v", p.Rows)
	}
}

func TestSiteNames(t *testing.T) {
	modules := []ident.Module{{Path: "/bin/app"}, {Path: "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}}
	in := func(locations ...string) ident.Code { // "file:function", innermost first
		c := ident.Code{Offset: 0x10}
		for _, l := range locations {
			file, fn, _ := strings.Cut(l, ":")
			c.Inlined = append(c.Inlined, ident.Location{File: file, Function: fn, Line: 7})
		}
		return c
	}
	for _, c := range []struct {
		want   string
		frames []ident.Code
	}{
		{"a.c:7 (init)", []ident.Code{in("a.c:init")}},
		{"a.c:7 (init)", []ident.Code{in("mem.c:xmalloc"), in("a.c:init")}},
		{"a.c:7 (init)", []ident.Code{in("mem.c:my_calloc"), in("mem.c:safe_alloc", "a.c:init")}},
		{"a.c:7 (alloc_grid)", []ident.Code{in("a.c:alloc_grid")}},
		{"v.cpp:7 (main)", []ident.Code{{Module: 1, Symbol: "_Znwm"}, in("/usr/include/c++/12/bits/new_allocator.h:std::allocator::allocate", "/usr/include/c++/12/bits/stl_vector.h:std::vector<double>::vector", "v.cpp:main")}},
		{"app+0x10 (grid)", []ident.Code{{Offset: 0x10, Symbol: "grid"}}},
		{"app+0x10 (user)", []ident.Code{{Offset: 0x20, Symbol: "xmalloc"}, {Offset: 0x10, Symbol: "user"}}},
		{"mem.c:7 (xmalloc)", []ident.Code{in("mem.c:xmalloc")}},
		{"unknown site", nil},
	} {
		if got := siteName(profile.Site{Frames: c.frames}, modules); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	twice := []profile.Site{{Frames: []ident.Code{in("a.c:init")}}, {Frames: []ident.Code{in("a.c:init"), in("b.c:f")}}}
	if got := siteNames(twice, modules); got[0] != "a.c:7 (init)" || got[1] != "a.c:7 (init) #2" {
		t.Errorf("names %q", got)
	}
}

func FuzzFromCounts(f *testing.F) {
	f.Add(example().Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := fromBytes(data, run(t))
		if err == nil {
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}
