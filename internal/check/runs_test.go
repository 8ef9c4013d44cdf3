package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/golden"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// of draws a profile for each percentage.
func of(pct ...float64) []*profile.Profile {
	var list []*profile.Profile
	for _, x := range pct {
		list = append(list, remote(int(100*x+0.5)))
	}
	return list
}

// twoObjects draws 10 000 accesses to u from the loop work and 5 000 to v from back, with
// u's pages first touched serially.
func twoObjects(remoteU, remoteV int) *profile.Profile {
	p := profiletest.Draw(2, 1, "u in a.c global: 0!1 1 1", "v heap: 0 0 0 / 1 1")
	p.Rows[1].Count, p.Rows[2].Count = uint64(10000-remoteU), uint64(remoteU)
	p.Rows[3].Count, p.Rows[4].Count = uint64(5000-remoteV), uint64(remoteV)
	p.Objects[0].Symbol = "u"
	return p
}

func TestNamedLimits(t *testing.T) {
	p := twoObjects(4000, 100)
	for _, c := range []struct {
		name  string
		limit float64
		pass  bool
		title string
	}{
		{"u", 39, false, "object u in a.c"},
		{"u in a.c", 41, true, "object u in a.c"},
		{"object:u", 39, false, "object u in a.c"},
		{"v", 1, false, "object v"},
		{"work", 41, true, "loop work"},
		{"work.c:20", 39, false, "loop work.c:20"},
		{"loop:work.c:30 (back)", 2, true, "loop work.c:30 (back)"},
		{"back+0 in work.c", 1, false, "loop back+0 in work.c"},
	} {
		r, err := judge1(p, nil, Limits{Metric: DRAM, Named: map[string]float64{c.name: c.limit}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Pass != c.pass || len(r.Parts) != 1 || r.Parts[0].title() != c.title || strings.Contains(r.Verdict, r.Parts[0].Name) == c.pass {
			t.Errorf("%s: %+v, %q", c.name, r.Parts[0], r.Verdict)
		}
	}
}

func TestUnknownAndAmbiguousNames(t *testing.T) {
	p := profiletest.Draw(2, 1, "u in a.c global: 0 999 999", "u in b.c global: 0 9 9", "work heap: 0 9 9")
	p.Objects[0].Symbol, p.Objects[1].Symbol = "u", "u"
	for name, want := range map[string]string{
		"u":      `"u" is not one object but u in a.c, u in b.c`,
		"work":   `"work" is an object and a loop: write object:work or loop:work`,
		"w":      `no object and no loop is called "w"; the profile has the objects u in a.c, u in b.c, work; the loops and functions work.c:20 (work)`,
		"loop:u": `no object and no loop is called "loop:u"`,
		"":       "no object and no loop",
	} {
		_, err := judge1(p, nil, Limits{Metric: DRAM, Named: map[string]float64{name: 5}})
		if err == nil || NoVerdict(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// A part with too few accesses has no verdict; the others have.
func TestTooFewOfAPart(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 5000 5000", "w heap: 0 400 400")
	limits := Limits{Metric: DRAM, Named: map[string]float64{"w": 5}}
	if _, err := judge1(p, nil, limits); !NoVerdict(err) {
		t.Errorf("nothing asked has a verdict: %v", err)
	}
	limits.MaxRemote = pct(60)
	r, err := judge1(p, nil, limits)
	if err != nil || !r.Pass || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "no verdict on the object w: too few DRAM accesses: 800") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRepeatedRuns(t *testing.T) {
	three := []float64{9, 9.2, 9.1}
	for _, c := range []struct {
		name     string
		base     []float64
		runs     []float64
		increase float64
		fails    string // part of the verdict; "" passes
		warns    string
	}{
		{"the same", three, three, 1, "", ""},
		{"more, but no more than allowed", three, []float64{9.9, 10, 10.1}, 1, "", ""},
		{"more", three, []float64{11, 11.2, 11.1}, 1, "above the baseline 9.10 % + 1 points", ""},
		{"less", three, []float64{2, 2, 2}, 1, "", ""},
		{"one run, the baseline's spread is small", three, []float64{11}, 1, "above the baseline", ""},
		{"one run, the baseline's spread is large", []float64{6, 12, 9}, []float64{13}, 1, "", "may be chance (p = 0.18)"},
		{"runs spread widely", three, []float64{9, 15, 10}, 1, "", "may be chance"},
		{"one against one, a point", []float64{9}, []float64{10.1}, 1, "", "may be chance (p = 0.013)"},
		{"one against one, more than a point", []float64{9}, []float64{10.2}, 1, "above the baseline", ""},
		{"the baseline is bimodal", []float64{5, 40, 5.1, 40.2}, []float64{23}, 1, "", "the baseline's runs are bimodal, 5.00 to 40.20 %"},
		{"a small change that is significant", three, []float64{9.9, 10, 10}, 0.5, "above the baseline", ""},
		{"alike by chance", []float64{9, 9}, []float64{9.3, 9.3}, 0, "", "may be chance"},
	} {
		base, err := baselineOf(of(c.base...)...)
		if err != nil {
			t.Fatal(err)
		}
		base.Objects, base.Loops = nil, nil
		r, err := judgeAll(of(c.runs...), nil, Limits{Metric: DRAM, Baseline: base, MaxIncrease: c.increase})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Pass != (c.fails == "") || !strings.Contains(r.Verdict, c.fails) || (len(r.Warnings) > 0) != (c.warns != "") ||
			c.warns != "" && !strings.Contains(r.Warnings[0], c.warns) {
			t.Errorf("%s: %q, warnings %q", c.name, r.Verdict, r.Warnings)
		}
	}
}

func TestBimodal(t *testing.T) {
	for _, c := range []struct {
		runs []float64
		want string
	}{
		{[]float64{5, 40, 5.2, 40.4, 5.1}, "the runs are bimodal: 5.10 % in the mean of 3 (run1, run3, run5); 40.20 % in the mean of 2 (run2, run4)"},
		{[]float64{5, 40}, "the runs differ by 35.00 points, from 5.00 % to 40.00 %: more of them would tell"},
		{[]float64{5, 5.4, 5.1, 5.2, 5.3}, ""},
		{[]float64{5, 12, 19, 26}, ""},
	} {
		r, err := judgeAll(of(c.runs...), nil, Limits{Metric: DRAM, MaxRemote: pct(99)})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Warnings, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q", c.runs, got)
		}
	}
}

// An object that gets worse is found where the program as a whole is not worse, and
// its name survives edits above it.
func TestBaselineOfParts(t *testing.T) {
	base, err := baselineOf(twoObjects(4000, 500))
	if err != nil {
		t.Fatal(err)
	}
	p := twoObjects(3500, 1000)
	for i := range p.Regions {
		p.Regions[i].Name = strings.ReplaceAll(p.Regions[i].Name, "0 (", "7 (")
		for k := range p.Regions[i].Code.Inlined {
			p.Regions[i].Code.Inlined[k].Line += 7
			p.Regions[i].Code.Inlined[k].FunctionLine += 7
		}
	}
	r, err := judge1(p, nil, Limits{Metric: DRAM, Baseline: base, MaxIncrease: 1})
	if err != nil {
		t.Fatal(err)
	}
	const want = "FAIL: 30.00 % of DRAM accesses are remote, within the baseline 30.00 % + 1 points; too many in v, work.c:37 (back)"
	if r.Verdict != want || len(r.Warnings) > 0 {
		t.Errorf("%s\nwant %s\nwarnings %q", r.Verdict, want, r.Warnings)
	}
}

// A small object that moves by as much as small objects do is no failure.
func TestSmallPartRepeats(t *testing.T) {
	base, err := baselineOf(profiletest.Draw(2, 1, "u heap: 0 50000 50000", "w heap: 0 1000 1000"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := judge1(profiletest.Draw(2, 1, "u heap: 0 50000 50000", "w heap: 0 940 1060"), nil, Limits{Metric: DRAM, Baseline: base, MaxIncrease: 1})
	if err != nil || !r.Pass || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "3.00 points above the baseline of w") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestPartsComeAndGo(t *testing.T) {
	base, err := baselineOf(twoObjects(4000, 500))
	if err != nil {
		t.Fatal(err)
	}
	p := twoObjects(4000, 500)
	p.Objects[1].Name = "new"
	r, err := judge1(p, nil, Limits{Metric: DRAM, Baseline: base, MaxIncrease: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`the baseline's object "v" is not in the profile: it is gone or has another name`,
		"the object new is not in the baseline: 10.00 % of its DRAM accesses are remote; --write-baseline takes it in",
	}
	if d := cmp.Diff(want, r.Warnings); d != "" || !r.Pass {
		t.Error(d)
	}
}

func TestNotComparable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*profile.Profile)
		want   string
	}{
		{"program", func(p *profile.Profile) { p.Run.Command[0] = "./other" }, `another program: "app", the profile's is "other"`},
		{"topology", func(p *profile.Profile) { p.Run.Topology.Nodes[0].CPUs = []int{0, 2} }, "another topology"},
	} {
		base, err := baselineOf(of(9)...)
		if err != nil {
			t.Fatal(err)
		}
		p := remote(900)
		c.change(p)
		if _, err := judge1(p, nil, Limits{Metric: DRAM, Baseline: base}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("baseline of another %s: %v", c.name, err)
		}
		if _, err := judgeAll([]*profile.Profile{remote(900), p}, nil, Limits{Metric: DRAM}); err == nil || !strings.Contains(err.Error(), "run1 and run2 are not runs of one program") {
			t.Errorf("runs of another %s: %v", c.name, err)
		}
	}
	p := remote(900)
	p.Run.Command[0] = "/elsewhere/app" // the same program
	if _, err := judgeAll([]*profile.Profile{remote(900), p}, nil, Limits{Metric: DRAM}); err != nil {
		t.Error(err)
	}
}

func TestVersion1(t *testing.T) {
	b, err := ReadBaseline("testdata/base-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := judge1(remote(1234), nil, Limits{Metric: DRAM, Baseline: b, MaxIncrease: 1})
	if err != nil || !r.Pass || len(r.Warnings) > 0 || *r.Baseline != 12.34 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The same runs in another order, and names of every kind, give the same bytes.
func TestBaselineIsStable(t *testing.T) {
	var texts [2][]byte
	for i, order := range [][]float64{{9, 9.5, 9.2}, {9.5, 9.2, 9}} {
		list := of(order...)
		for _, p := range list {
			p.Objects[0].Name = "größe<T>[1,\n2] = \"π\""
		}
		b, err := baselineOf(list...)
		if err != nil {
			t.Fatal(err)
		}
		if texts[i], err = b.text(); err != nil {
			t.Fatal(err)
		}
		back, err := parseBaseline(texts[i])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(b, back); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff(string(texts[0]), string(texts[1])); d != "" {
		t.Error(d)
	}
	golden.Compare(t, "testdata/three-runs.json", texts[0])
}

func TestSampledBaseline(t *testing.T) {
	p := remote(900)
	p.Run.Period = 5
	b, err := baselineOf(p)
	if err != nil || b.Program.Sampling < 0.5 || b.Program.Sampling > 0.8 {
		t.Fatalf("%+v, %v", b, err)
	}
	now := remote(1050)
	now.Run.Period = 5
	r, err := judge1(now, nil, Limits{Metric: DRAM, Baseline: b, MaxIncrease: 1})
	if err != nil || !r.Pass || !strings.Contains(strings.Join(r.Warnings, "\n"), "1.50 points above the baseline, but") {
		t.Errorf("1.5 points of a sampled profile: %+v, %v", r, err)
	}
}

func TestRelative(t *testing.T) {
	files := map[string]bool{"src/a.c": true, "a.c": true}
	exists := func(file string) bool { return files[file] }
	for file, want := range map[string]string{
		"/repo/src/a.c":        "src/a.c",
		"/build/1/src/a.c":     "src/a.c", // compiled elsewhere
		"src/a.c":              "src/a.c",
		"../a.c":               "a.c",
		"/usr/include/b.h":     "/usr/include/b.h",
		"/repo/../etc/b.c":     "/repo/../etc/b.c",
		"/repo/generated/x.c":  "/repo/generated/x.c",
		"":                     "",
		"/repo":                "/repo",
		"/elsewhere/../../a.c": "a.c",
	} {
		if got := relative(file, "/repo", exists); got != want {
			t.Errorf("%s: %s, want %s", file, got, want)
		}
	}
}

func TestPlaces(t *testing.T) {
	r, err := judge1(twoObjects(4000, 100), nil, Limits{Metric: DRAM, Named: map[string]float64{"u": 1, "v": 1}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Place{{Object: "u in a.c", File: "init.c", Line: 5, Function: "main", Serial: true, RemotePct: 100}}
	if d := cmp.Diff(want, r.Parts[0].Places); d != "" {
		t.Error(d)
	}
	// A page that only caches serve has places among all accesses.
	p := twoObjects(4000, 100)
	for i := range p.Rows[:3] {
		p.Rows[i].Level = profile.L2
	}
	for metric, places := range map[Metric]int{DRAM: 0, All: 1} {
		m, err := Measure("run", p, Scope{Named: []string{"u"}, Metric: metric})
		if err != nil || len(m.named["u"].places) != places {
			t.Errorf("%s: %+v, %v", metric, m, err)
		}
	}
	p = twoObjects(4000, 100)
	p.Pages[1].Place, p.Pages[1].Home = -1, topo.NodeID(0) // nobody knows: the allocation is what there is
	r, err = judge1(p, nil, Limits{Metric: DRAM, Named: map[string]float64{"v": 1}})
	if err != nil || len(r.Parts[0].Places) != 1 || !r.Parts[0].Places[0].Allocated || r.Parts[0].Places[0].Line != 3 {
		t.Errorf("%+v, %v", r.Parts, err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root writes everywhere: a folder that is not there stands for it")
	}
	b, err := baselineOf(remote(900))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "none", "base.json")
	if err := b.WriteFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
