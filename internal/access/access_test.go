package access

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

func TestTotal(t *testing.T) {
	for _, c := range []struct {
		name, picture string
		want          Flow
		pct           float64
	}{
		{"local", "u heap: 0 9 0 | 1 0 7", Flow{Local: 16}, 0},
		{"remote", "u heap: 1 9 0 | 0 0 7", Flow{Remote: 16}, 100},
		{"half", "u heap: 0 6 2 | 0 2 6", Flow{Local: 8, Remote: 8}, 50},
		{"unknown home is not in the base", "u heap: 0 1 1 | ? 5 5", Flow{Local: 1, Remote: 1, Unknown: 10}, 50},
		{"serial stores count", "u heap: 0!3 0 1", Flow{Local: 3, Remote: 1}, 25},
		{"nothing", "u heap: ", Flow{}, math.NaN()},
		{"only unknown", "u heap: ? 1 1", Flow{Unknown: 2}, math.NaN()},
	} {
		got := Total(profiletest.Draw(2, 1, c.picture))
		if got.DRAM != c.want || got.All != c.want {
			t.Errorf("%s: DRAM %+v, all %+v, want %+v", c.name, got.DRAM, got.All, c.want)
		}
		if pct := got.DRAM.RemotePct(); pct != c.pct && !(math.IsNaN(pct) && math.IsNaN(c.pct)) {
			t.Errorf("%s: %v %% remote, want %v", c.name, pct, c.pct)
		}
	}
}

func TestLevels(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 4 4")
	p.Rows[0].Level = profile.L1
	got := Total(p)
	if got.All != (Flow{Local: 4, Remote: 4}) || got.DRAM != (Flow{Remote: 4}) {
		t.Errorf("all %+v, DRAM %+v", got.All, got.DRAM)
	}
}

func TestProjectionsAddUp(t *testing.T) {
	p := profiletest.Draw(2, 2,
		"u heap: 0!1 9 0 0 3 | 1 0 0 7 0/0 5 0 0 | ? 0 0 0 1",
		"stack stack: 0 5",
		"v global: 1!2 0 0 1 1")
	want := Total(p)
	for name, sums := range map[string][]Traffic{"object": ByObject(p), "region": ByRegion(p), "thread": ByThread(p)} {
		var got Traffic
		for _, s := range sums {
			got.Merge(s)
		}
		if got != want {
			t.Errorf("by %s: %+v, want %+v", name, got, want)
		}
	}
	if got := ByObject(p)[0].DRAM; got != (Flow{Local: 17, Remote: 8, Unknown: 1}) {
		t.Errorf("u: %+v", got)
	}
}

func TestNodeMatrix(t *testing.T) {
	p := profiletest.Draw(2, 2, "u heap: 0 1 2 3 4 | 1 5 0 0 6 | ? 0 0 8 0")
	m := NodeMatrix(p, true)
	if d := cmp.Diff(Matrix{Nodes: 2, Reach: []uint64{3, 5, 7, 6}, Unknown: []uint64{0, 8}}, m); d != "" {
		t.Error(d)
	}
	if got, want := m.Imbalance(), 11/10.5; got != want {
		t.Errorf("imbalance %v, want %v", got, want)
	}
	if !math.IsNaN(NodeMatrix(profiletest.Draw(2, 1), true).Imbalance()) {
		t.Error("an empty matrix has an imbalance")
	}
}

func TestMatchAndCoverage(t *testing.T) {
	p := profiletest.Draw(2, 1,
		"u heap: 0 6 0", "v global: 0 2 0", "m mapping: 0 1", "nobody unknown: 0 1",
		"stack stack: 0 50", "image image: ? 50", "w heap: 0!0")
	if got := MatchPct(p); got != 90 {
		t.Errorf("match rate %v, want 90", got)
	}
	p.Objects[2].Site = -1 // a mapping without a call stack is not matched
	if got := MatchPct(p); got != 80 {
		t.Errorf("match rate %v, want 80", got)
	}
	v := &p.Objects[1] // a stripped file: module and offset find it, nothing else does
	v.Symbol, v.File, v.Module, v.Offset = "", "", 0, 0x4000
	if got := MatchPct(p); got != 80 {
		t.Errorf("match rate with a nameless global %v, want 80", got)
	}
	if v.Module = -1; MatchPct(p) != 60 {
		t.Errorf("match rate with a global of no module %v, want 60", MatchPct(p))
	}
	if got, want := CoveragePct(p), 100*6.0/7; got != want {
		t.Errorf("coverage %v, want %v", got, want)
	}
}

func TestBest(t *testing.T) {
	for _, c := range []struct {
		picture   string
		prefer    topo.NodeID
		want      topo.NodeID
		most, all uint64
	}{
		{"9 3", 0, 0, 9, 12},
		{"3 9", 0, 1, 9, 12},
		{"5 5", 1, 1, 5, 10},
		{"5 5", 0, 0, 5, 10},
		{"5 5", topo.Unknown, 0, 5, 10},
		{"0 0", 1, topo.Unknown, 0, 0},
	} {
		use := PageUse(profiletest.Draw(2, 1, "u heap: 0!0 "+c.picture), nil)
		if best, most, all := use.Best(0, c.prefer); best != c.want || most != c.most || all != c.all {
			t.Errorf("%s: node %d with %d of %d, want %d with %d of %d", c.picture, best, most, all, c.want, c.most, c.all)
		}
	}
}

func TestSerialCode(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 1 1")
	worker := p.Regions[profiletest.Main]
	worker.Name, worker.Thread, worker.Code.Offset = "worker", "worker", 0x900
	alone := worker
	alone.Thread = "" // the main thread runs the workers' code, too
	p.Regions = append(p.Regions, worker, alone)
	if d := cmp.Diff([]bool{true, false, false, false, false}, SerialRegions(p)); d != "" {
		t.Error(d)
	}
	serial := SerialCode(p)
	if !serial(&profile.Row{Region: profiletest.Main}) || serial(&profile.Row{Region: profiletest.Main, Thread: 1}) {
		t.Error("serial code is the main thread's only")
	}
}

// TestOnlyWorksharing: a parallel region's name means the loops in it, too; a
// loop's own name means that loop.
func TestOnlyWorksharing(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	loop := &p.Regions[profiletest.Back]
	loop.Code, loop.Site = p.Regions[profiletest.Work].Code, ident.Code{Module: 0, Offset: 0x99}
	for name, total := range map[string]uint64{"work.c:20": 24, "work.c:20 (work)": 24, "back": 8, "work.c:30": 8, "main": 2} {
		q, err := Only(p, []string{name})
		if err != nil {
			t.Errorf("%q: %v", name, err)
		} else if got := Total(q).All.Total(); got != total {
			t.Errorf("%q: %d accesses, want %d", name, got, total)
		}
	}
}

// TestOnlySampled: latencies, uses of code and intervals are of the regions asked for; a cache line is there with all
// its parties.
func TestOnlySampled(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 9")
	p.Latencies = []profile.Latency{{Region: profiletest.Work}, {Region: profiletest.Back}}
	p.Lines = []profile.LineUse{
		{Offset: 0, Region: profiletest.Work}, {Offset: 0, Region: profiletest.Back, Node: 1},
		{Offset: 64, Region: profiletest.Back},
	}
	p = profiletest.WithCode(p)
	q, err := Only(p, []string{"work"})
	if err != nil || len(q.CodeUses) != 1 || q.CodeUses[0].Total() != 18 || len(q.Intervals) != 2 {
		t.Fatalf("%v, %+v, %+v", err, q.CodeUses, q.Intervals)
	}
	if len(q.Latencies) != 1 || q.Latencies[0].Region != profiletest.Work {
		t.Errorf("%+v", q.Latencies)
	}
	if d := cmp.Diff(p.Lines[:2], q.Lines); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestOnlyFortran: case means nothing in Fortran, but in names of files.
func TestOnlyFortran(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	r := &p.Regions[profiletest.Work]
	r.Name, r.Function, r.File, r.Line = "Flow.F90:20 (flow::X_Sweep)", "flow::X_Sweep", "/src/Flow.F90", 20
	for name, found := range map[string]bool{"x_sweep": true, "X_SWEEP": true, "FLOW::x_sweep": true, "Flow.F90:20": true, "flow.f90:20": false,
		"Flow.F90:20 (FLOW::X_SWEEP)": true, "BACK": false, "back": true} {
		if _, err := Only(p, []string{name}); (err == nil) != found {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestOnly(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	p.Regions[profiletest.Back].Function = "solver::(anonymous namespace)::back(double*, int) const"
	p.Regions[profiletest.Work].File = "/home/u/src/work.c"
	p.Regions[profiletest.Work].Thread = "start"
	for _, c := range []struct {
		names string
		pages int
		total uint64
		ok    bool
	}{
		{"main", 2, 2, true},
		{"work", 2, 16, true},
		{"work._omp_fn.0", 2, 16, true},
		{"work.c:20 (work)", 2, 16, true},
		{"work.c:20", 2, 16, true},
		{"src/work.c:20", 2, 16, true},
		{"./src/work.c:20", 2, 16, true},
		{"start", 2, 16, true},
		{"ork.c:20", 0, 0, false},
		{"work.c:21", 0, 0, false},
		{"back", 2, 8, true},
		{"work.c:30", 2, 8, true},
		{"solver::(anonymous namespace)::back", 2, 8, true},
		{"back,work", 3, 24, true},
		{"work,nothing", 0, 0, false},
		{"", 0, 0, false},
		{":20", 0, 0, false},
	} {
		q, err := Only(p, strings.Split(c.names, ","))
		if !c.ok {
			if err == nil || !strings.Contains(err.Error(), "work.c:20 (work), work.c:30 (back), main") {
				t.Errorf("%q: %v, want an error that lists the names", c.names, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.names, err)
			continue
		}
		if err := q.Check(); err != nil {
			t.Errorf("%q: %v", c.names, err)
		}
		if got := Total(q).All.Total(); len(q.Pages) != c.pages || got != c.total {
			t.Errorf("%q: %d pages, %d accesses, want %d, %d", c.names, len(q.Pages), got, c.pages, c.total)
		}
	}
	if q, err := Only(p, nil); q != p || err != nil {
		t.Error("without names it is another profile")
	}
	if len(p.Pages) != 4 || len(p.Rows) != 6 {
		t.Error("Only changed its argument")
	}
}

func TestWithoutArguments(t *testing.T) {
	for in, want := range map[string]string{
		"f":                                "f",
		"f(int)":                           "f",
		"f(void (*)(int), int) const":      "f",
		"a::b(int)":                        "a::b",
		"(anonymous namespace)::f":         "(anonymous namespace)::f",
		"(anonymous namespace)::f(int)":    "(anonymous namespace)::f",
		"a::operator()(int)":               "a::operator()",
		"main::{lambda(int)#1}::f(int)":    "main::{lambda(int)#1}::f",
		"void f<(anonymous namespace)::T>": "void f<(anonymous namespace)::T>",
		")":                                ")", "(": "(", "": "", "())": "())",
	} {
		if got := WithoutArguments(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSupport(t *testing.T) {
	for _, c := range []struct {
		name, draw string
		period     uint64
		want       string
	}{
		{"enough", "u heap: 0 600 400", 1, ""},
		{"few", "u heap: 0 600 399", 1, "larger than the LLC (512 KiB a node"},
		{"unknown homes do not count", "u heap: ? 6000 600", 1, "0 with a known home"},
		{"sampled, enough", "u heap: 0 60000 40000", 100, ""},
		{"sampled, few", "u heap: 0 60000 30000", 100, "--period 90 or less"},
		{"sampled, hopeless", "u heap: 0 60 30", 100, "without --period"},
	} {
		p := profiletest.Draw(2, 1, c.draw)
		p.Run.Period = c.period
		err := Support(p)
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, ErrTooFew) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestRemoteInterval(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 5000 5000")
	if lo, hi := RemoteInterval(p, Total(p).DRAM); lo != 50 || hi != 50 {
		t.Errorf("full trace: [%v, %v]", lo, hi)
	}
	p.Run.Period = 100
	if lo, hi := RemoteInterval(p, Total(p).DRAM); math.Abs(lo-40.38) > 0.01 || math.Abs(hi-59.62) > 0.01 {
		t.Errorf("100 samples: [%v, %v]", lo, hi)
	}
	p.Run.Recording = &profile.Recording{DRAMPeriod: 50, EvenPeriod: 400} // of Run.Period they are none
	if lo, hi := RemoteInterval(p, Total(p).DRAM); math.Abs(lo-31.75) > 0.05 || math.Abs(lo+hi-100) > 1e-6 {
		t.Errorf("as much as 25 samples: [%v, %v]", lo, hi)
	}
	if n := Samples(p, 10000); n != 200 {
		t.Errorf("%d samples, want 200", n)
	}
	p.Run.Source, p.Run.Period = "faults", 1
	if lo, hi := RemoteInterval(p, Total(p).DRAM); math.Abs(lo-31.75) > 0.05 || math.Abs(lo+hi-100) > 1e-6 {
		t.Errorf("of page faults: %v to %v", lo, hi)
	}
	if lo, _ := RemoteInterval(p, Flow{}); !math.IsNaN(lo) {
		t.Errorf("nothing: %v", lo)
	}
}

// TestLives: a page read before its first write is one page.
func TestLives(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: ? 5 5 | 0 9 | 1 0 9", "v heap: ? 3 | ? 2")
	p.Pages[1].Index = 0 // the same page, with its home
	p.Pages[2].Index = 0 // and with another one, later
	if d := cmp.Diff([]int{1, 1, 2, 3, 4}, Lives(p)); d != "" {
		t.Error(d)
	}
	u := PageUse(p, nil)
	if d := cmp.Diff([]uint64{0, 0, 14, 5, 0, 9, 3, 0, 2, 0}, u.Merged(Lives(p)).DRAM); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(PageUse(p, nil), u); d != "" {
		t.Errorf("Merged changed what it was given: %s", d)
	}
	if got := CoveragePct(p); got != 100 {
		t.Errorf("coverage %v", got)
	}
}

// TestSampledLives: a page of samples is one page, on whatever homes it was.
func TestSampledLives(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: ? 5 5 | 0 9 | 1 0 9 | 0 1", "v heap: 0 3")
	p.Pages[1].Index, p.Pages[2].Index = 0, 0
	p.Run.Source = "faults"
	if d := cmp.Diff([]int{1, 1, 1, 3, 4}, Lives(p)); d != "" {
		t.Error(d)
	}
}

// TestSelect: a part of a profile by loop, object and thread.
func TestSelect(t *testing.T) {
	p := profiletest.WithCode(profiletest.Draw(2, 1, "u in a.f90 heap: 0!1 9 4 | 1 0 7/5 0", "v heap: 0 2 3"))
	p.Objects[0].Symbol, p.Objects[0].File = "M::U", "a.f90"
	p.Latencies = []profile.Latency{{Object: 0, Region: profiletest.Work}, {Object: 1, Region: profiletest.Work}}
	p.Lines = []profile.LineUse{{Object: 0, Region: profiletest.Work}, {Object: 1, Region: profiletest.Back}}
	variable := func(o int) string { return []string{"", "w"}[o] }
	for _, c := range []struct {
		name             string
		s                Selection
		total            uint64
		pages, latencies int
		intervals        bool
		err              string
	}{
		{"object", Selection{Objects: []string{"u"}}, 26, 2, 1, false, ""},
		{"object in Fortran", Selection{Objects: []string{"m::u"}}, 26, 2, 1, false, ""},
		{"variable", Selection{Objects: []string{"w"}, Variable: variable}, 5, 1, 1, false, ""},
		{"thread", Selection{Threads: []int{1}}, 14, 3, 0, true, ""},
		{"both", Selection{Threads: []int{1}, Objects: []string{"v"}}, 3, 1, 0, false, ""},
		{"loop and object", Selection{Loops: []string{"back"}, Objects: []string{"u"}}, 5, 1, 0, false, ""},
		{"two objects", Selection{Objects: []string{"u", "v"}}, 31, 3, 2, false, ""},
		{"no such object", Selection{Objects: []string{"x"}}, 0, 0, 0, false, "u in a.f90, v"},
		{"no such thread", Selection{Threads: []int{2}}, 0, 0, 0, false, "0-1"},
		{"no such loop", Selection{Loops: []string{"x"}, Threads: []int{0}}, 0, 0, 0, false, "work.c:20 (work)"},
	} {
		q, err := Select(p, c.s)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want an error that lists %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || q.Check() != nil {
			t.Errorf("%s: %v, %v", c.name, err, q.Check())
			continue
		}
		if got := Total(q).All.Total(); got != c.total || len(q.Pages) != c.pages || len(q.Latencies) != c.latencies || len(q.Intervals) > 0 != c.intervals {
			t.Errorf("%s: %d accesses to %d pages, %d latencies, %d intervals", c.name, got, len(q.Pages), len(q.Latencies), len(q.Intervals))
		}
		var code uint64
		for _, u := range q.CodeUses {
			code += u.Total()
		}
		if len(c.s.Threads) > 0 && code != 0 || len(c.s.Threads) == 0 && code != c.total {
			t.Errorf("%s: code of %d accesses", c.name, code)
		}
	}
}
