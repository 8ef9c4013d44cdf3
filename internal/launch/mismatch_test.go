package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// TestSizes: an entry whose size is not the object's, or too small for its place, is
// placed and said so.
func TestSizes(t *testing.T) {
	app := sweep(t, "gcc -g -O1 -fopenmp", "65536", "1024")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes    units.Bytes
		buildID  string
		place    plan.Distribution
		warnings []string
	}{
		{8192, m.BuildID(), plan.Distribution{Policy: plan.Bind, Node: 3}, nil},
		{8192, m.BuildID(), plan.Distribution{Policy: plan.XWise}, []string{"u: x-wise gives each of 4 nodes a part of whole pages, and it has 2: only 2 nodes get one"}},
		{16384, m.BuildID(), plan.Distribution{Policy: plan.Bind}, []string{"u has 8 KiB, and 16 KiB in the plan, whose place is stretched to what it has; the file is the profiled one: was the plan edited?"}},
		{16384, "00", plan.Distribution{Policy: plan.Bind}, []string{"it was rebuilt: profile it again"}},
	} {
		p := &plan.Plan{From: plan.From{Command: []string{"app"}, Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
			Objects: []plan.Entry{{Name: "u", Kind: "global", Bytes: c.bytes, Symbol: "u", Module: plan.Module{Name: "app", BuildID: c.buildID}, Place: c.place}}}
		res := resolve(t, p, options(t, "4x2", app))
		if res.Placed != 1 || len(res.Warnings) != len(c.warnings) {
			t.Errorf("%v of %v: %d placed, %s", c.place, c.bytes, res.Placed, text(res.Warnings))
		}
		for _, want := range c.warnings {
			if !strings.Contains(text(res.Warnings), want) {
				t.Errorf("no %q in %s", want, text(res.Warnings))
			}
		}
	}
}

// TestOtherwise: pages that a plan places for its schedules go elsewhere where most
// of its loops keep OpenMP's.
func TestOtherwise(t *testing.T) {
	app := sweep(t, "clang -g -O2 -fopenmp")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	inverse := plan.Distribution{Policy: plan.Pages, Map: plan.Runs{{Node: 3, Count: 64}, {Node: 0, Count: 64}}}
	for _, c := range []struct {
		name      string
		topology  string
		otherwise *plan.Distribution
		want      runfile.Policy // "" is not placed
		warning   string
	}{
		{"loops permuted", "4x2", plan.FirstTouch(), runfile.Policy(plan.Pages), ""},
		{"other nodes", "2x4", &plan.Distribution{Policy: plan.XWise}, runfile.Policy(plan.XWise), "3 of the plan's 3 loops keep OpenMP's schedule, so 1 of its objects are placed as suits that"},
		{"other nodes, first touch", "2x4", plan.FirstTouch(), "", "so 1 are left to first touch"},
		{"the same place", "2x4", nil, runfile.Policy(plan.Pages), "the pages are placed for all of them"},
	} {
		p := loopPlan(t, app, "libomp")
		for i := range p.Loops {
			p.Loops[i].Schedule, p.Loops[i].Nodes = plan.ByNodes, []int{1, 2, 3, 0}
		}
		p.Objects = []plan.Entry{{Name: "u", Kind: "global", Bytes: 65536 * 8, Symbol: "u", Module: plan.Module{Name: "app", BuildID: m.BuildID()}, Place: inverse, Otherwise: c.otherwise}}
		res := resolve(t, p, options(t, c.topology, app))
		var got runfile.Policy
		if len(res.Run.Objects) > 0 {
			got = res.Run.Objects[0].Policy
		}
		if got != c.want || !strings.Contains(text(res.Warnings), c.warning) || c.warning == "" && len(res.Warnings) > 0 {
			t.Errorf("%s: %q, want %q; %s", c.name, got, c.want, text(res.Warnings))
		}
	}
}

// TestOtherMap: the runtime gets another page map where all schedules can end while the
// program runs, which are those of block-exclusive loops.
func TestOtherMap(t *testing.T) {
	app := sweep(t, "clang -g -O2 -fopenmp")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	sweeps := plan.Loop{Schedule: plan.BlockExclusive, Nodes: []int{0, 1, 2, 3}, Sweep: 4, Step: 1}
	inverse := plan.Loop{Schedule: plan.StaticInverse}
	xwise, nowhere := []runfile.Pages{{Node: 0, Count: 32}, {Node: 1, Count: 32}, {Node: 2, Count: 32}, {Node: 3, Count: 32}}, []runfile.Pages{{Node: -1, Count: 1}}
	for _, c := range []struct {
		name         string
		first, other plan.Loop
		otherwise    *plan.Distribution
		want         []runfile.Pages
	}{
		{"all block-exclusive", sweeps, sweeps, &plan.Distribution{Policy: plan.XWise}, xwise},
		{"first touch", sweeps, sweeps, plan.FirstTouch(), nowhere},
		{"interleaved", sweeps, sweeps, &plan.Distribution{Policy: plan.Interleave}, nil},
		{"another schedule stays", sweeps, inverse, &plan.Distribution{Policy: plan.XWise}, nil},
		{"no sweeps", inverse, inverse, &plan.Distribution{Policy: plan.XWise}, nil},
		{"the same place", sweeps, sweeps, nil, nil},
	} {
		p := loopPlan(t, app, "libomp")
		for i := range p.Loops {
			as := c.other
			if i == 0 {
				as = c.first
			}
			l := &p.Loops[i]
			l.Schedule, l.Nodes, l.Sweep, l.Step, l.Group = as.Schedule, as.Nodes, as.Sweep, as.Step, 0
		}
		p.Objects = []plan.Entry{{Name: "u", Kind: "global", Bytes: 65536 * 8, Symbol: "u", Module: plan.Module{Name: "app", BuildID: m.BuildID()}, Place: plan.Distribution{Policy: plan.Bind}, Otherwise: c.otherwise}}
		res := resolve(t, p, options(t, "4x2", app))
		if len(res.Run.Objects) != 1 || len(res.Run.Loops) == 0 {
			t.Errorf("%s: %d objects, %d loops; %s", c.name, len(res.Run.Objects), len(res.Run.Loops), text(res.Warnings))
			continue
		}
		if got := res.Run.Objects[0].Otherwise; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v; %s", c.name, got, c.want, text(res.Warnings))
		}
	}
}

// TestMayEnd: Entry.Otherwise has affine loops as they are.
func TestMayEnd(t *testing.T) {
	sweeps, affine, inverse := runfile.Loop{Schedule: runfile.BlockExclusive, Sweep: 4}, runfile.Loop{Schedule: runfile.Affine}, runfile.Loop{Schedule: runfile.Inverse}
	for _, c := range []struct {
		loops []runfile.Loop
		want  bool
	}{
		{[]runfile.Loop{sweeps}, true},
		{[]runfile.Loop{affine, sweeps, affine}, true},
		{[]runfile.Loop{sweeps, inverse}, false},
		{[]runfile.Loop{affine}, false},
		{nil, false},
	} {
		r := resolver{res: &Result{Run: runfile.Run{Loops: c.loops}}}
		if got := r.mayEnd(); got != c.want {
			t.Errorf("%+v: %v", c.loops, got)
		}
	}
}

// A loop that only the profiled build has is named, where other parts of the plan show
// that the program is that one rebuilt under another name.
func TestRebuiltUnderAnotherName(t *testing.T) {
	app := sweep(t, "clang -g -O2 -fopenmp")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	p := loopPlan(t, app, "libomp")
	p.Objects = []plan.Entry{{Name: "u", Kind: "global", Bytes: 65536 * 8, Symbol: "u", Module: plan.Module{Name: "app", BuildID: m.BuildID()},
		Place: plan.Distribution{Policy: plan.Pages, Map: plan.Runs{{Node: 3, Count: 64}, {Node: 0, Count: 64}}}, Otherwise: &plan.Distribution{Policy: plan.XWise}}}
	gcc := sweep(t, "gcc -g -O2 -fopenmp")
	other := filepath.Join(filepath.Dir(app), "other") // beside the profiled one, which is found there
	if err := os.Rename(gcc, other); err != nil {
		t.Fatal(err)
	}
	res := resolve(t, p, options(t, "4x2", other))
	got := text(res.Warnings)
	if len(res.Run.Loops) != 0 || len(res.Run.Objects) != 1 || strings.Count(got, "keeps OpenMP's schedule: other") != 3 || !strings.Contains(got, "1 of its objects are placed as suits that") {
		t.Errorf("%+v\n%s", res.Run.Loops, got)
	}
}
