package ingest

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/arena"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// marks are the lines of a source file by the comment at their end.
func marks(t *testing.T, file string) map[int]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[int]string{}
	for n, scan := 1, bufio.NewScanner(f); scan.Scan(); n++ {
		if _, mark, ok := strings.Cut(scan.Text(), "; // "); ok {
			list[n] = mark
		}
	}
	return list
}

// use is what a line does to an object.
type use struct{ line, object string }

// TestLines holds a program's lines to arithmetic, and all of them to the rows.
func TestLines(t *testing.T) {
	r := emulate(t, emulator(t), nil, compile(t, "lines", "-fopenmp"))
	mark := marks(t, filepath.Join("testdata", "lines.c"))
	got := map[use]profile.CodeUse{}
	for _, u := range r.CodeUses {
		if in := r.Codes[u.Code].Inlined; len(in) > 0 && mark[in[0].Line] != "" && u.Total() > 1000 {
			k := use{mark[in[0].Line], string(r.Objects[u.Object].Kind)}
			x := got[k]
			got[k] = profile.CodeUse{Op: u.Op, Local: x.Local + u.Local, Remote: x.Remote + u.Remote, Unknown: x.Unknown + u.Unknown}
		}
	}
	const lines = 65536
	want := map[use]profile.CodeUse{
		{"library", "heap"}:       {Op: profile.Store, Local: lines},
		{"first touch", "global"}: {Op: profile.Store, Local: lines},
		{"serial", "heap"}:        {Local: lines},
		{"parallel", "heap"}:      {Local: lines / 4, Remote: lines * 3 / 4},
		{"parallel", "global"}:    {Local: lines / 4, Remote: lines * 3 / 4},
	}
	near := cmp.Comparer(func(x, y uint64) bool { return max(x, y)-min(x, y) <= lines/200 })
	if d := cmp.Diff(want, got, near); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	codeAddsUp(t, r.Profile)
}

// codeAddsUp holds lines and parts to the rows: every DRAM access is in each of them.
func codeAddsUp(t *testing.T, p *profile.Profile) {
	t.Helper()
	type key struct {
		region int32
		what   string
	}
	sums := map[key]int64{}
	for _, r := range p.Rows {
		if r.Level != profile.DRAM {
			continue
		}
		g := &p.Pages[r.Page]
		sums[key{r.Region, fmt.Sprint("operation ", r.Op)}] += int64(r.Count)
		sums[key{r.Region, fmt.Sprint("thread ", r.Thread)}] += int64(r.Count)
		sums[key{-1, p.Objects[g.Object].Name}] += int64(r.Count)
	}
	for _, u := range p.CodeUses {
		sums[key{u.Region, fmt.Sprint("operation ", u.Op)}] -= int64(u.Total())
		sums[key{-1, p.Objects[u.Object].Name}] -= int64(u.Total())
	}
	for _, v := range p.Intervals {
		sums[key{v.Region, fmt.Sprint("thread ", v.Thread)}] -= int64(v.Count)
	}
	for k, n := range sums {
		if n != 0 {
			t.Errorf("region %d, %s: %d accesses more in the rows", k.region, k.what, n)
		}
	}
}

// TestLinesInTime: the parallel loop over u comes before the serial one over v, in which all
// but the main thread wait, and the parallel one over v comes last.
func TestLinesInTime(t *testing.T) {
	r := emulate(t, emulator(t), nil, compile(t, "lines", "-fopenmp"))
	one := -1
	for i := range r.Regions {
		if r.Regions[i].Function == "one" {
			one = i
		}
	}
	if one < 0 || r.Run.IntervalClock != profile.Accesses {
		t.Fatalf("clock %q, region %d", r.Run.IntervalClock, one)
	}
	const none = profile.MostIntervals
	first, last, work := int32(none), int32(-1), uint64(0)
	for _, v := range r.Intervals {
		if int(v.Region) == one && v.Count > 100 {
			first, last = min(first, v.At), max(last, v.At)
		}
		work += v.Work
	}
	if first == none || last-first < 5 {
		t.Fatalf("the serial loop is from part %d to %d", first, last)
	}
	before, after := map[int32]bool{}, map[int32]bool{}
	for _, v := range r.Intervals {
		if r.Threads[v.Thread].Rank == 0 || r.Regions[v.Region].Kind != profile.Loop || v.Count == 0 {
			continue
		}
		switch {
		case v.At < first+1:
			before[v.Thread] = true
		case v.At > last-1:
			after[v.Thread] = true
		default:
			t.Errorf("thread %d has %d accesses in part %d, in which it waits", v.Thread, v.Count, v.At)
		}
	}
	if len(before) != 7 || len(after) != 7 {
		t.Errorf("threads before the serial loop %v, after it %v", before, after)
	}
	all := uint64(0)
	for _, row := range r.Rows {
		all += row.Count
	}
	if work > all || work < all*99/100 {
		t.Errorf("%d accesses in all parts, %d in the rows", work, all)
	}
}

// TestCodeOfArena: owners of all kinds; instructions of a module that cannot be read are
// one line for each function; parts become as long as the longest.
func TestCodeOfArena(t *testing.T) {
	b := arena.NewBuilder()
	b.Thread(0, 0, 0)
	m := b.Module("/nowhere/app", 0x1000, 0x9000)
	site := b.Site(0x1100)
	heap := b.Object(arena.KindHeap, site, 0, 0, 0x100000, 4096)
	page := b.Page(arena.Page{Number: 0x100, Object: heap, Home: 1, Module: -1})
	other := b.Page(arena.Page{Number: 0x999, Home: 0, Module: -1})
	b.Block(arena.Block{Page: page, Count: [4][2]uint64{3: {9, 0}}})
	at := func(vaddr uint64) arena.Code { return arena.Code{VAddr: vaddr, Module: m} }
	b.Use(arena.Use{Code: at(0x48), Owner: arena.Owner(heap), Remote: 4})
	b.Use(arena.Use{Code: at(0x40), Owner: arena.Owner(heap), Remote: 3})
	b.Use(arena.Use{Code: at(0x40), Owner: arena.PageOwner(other), Local: 2, Op: 1})
	b.Use(arena.Use{Code: arena.Code{VAddr: 0x77, Module: -1}, Owner: arena.SiteOwner(site), Unknown: 5})
	b.Use(arena.Use{Code: at(0x40), Owner: arena.PageOwner(77), Local: 1}) // of no record
	b.Interval(arena.Interval{Part: 5, Shift: 10, Work: 7, Count: []uint64{0, 2, 0}})
	b.Interval(arena.Interval{Part: 1, Shift: 12, Work: 1, Count: []uint64{0, 3, 4}})
	b.Interval(arena.Interval{Part: 1, Shift: 12, Thread: 9, Count: []uint64{1, 1, 1}})
	b.Interval(arena.Interval{Part: profile.MostIntervals, Shift: 60, Count: []uint64{1, 1, 1}})
	p, err := fromBytes(b.Bytes(), run(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range p.CodeUses {
		got = append(got, fmt.Sprintf("%d+%#x %s %d %d/%d/%d", p.Codes[u.Code].Module, p.Codes[u.Code].Offset, p.Objects[u.Object].Kind, u.Op, u.Local, u.Remote, u.Unknown))
	}
	if d := cmp.Diff([]string{"-1+0x0 small 0 0/0/5", "0+0x40 heap 0 0/7/0", "0+0x40 unknown 1 2/0/0"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]profile.Interval{{At: 1, Home: topo.Unknown, Count: 4, Work: 8}, {At: 1, Home: 1, Count: 5}}, p.Intervals); d != "" || p.Run.IntervalWidth != 4096 {
		t.Errorf("width %d, %s", p.Run.IntervalWidth, d)
	}
}
