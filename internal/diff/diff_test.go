package diff

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"numaopt/internal/access"
	"numaopt/internal/golden"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// grid draws u, x-wise from both nodes, on the nodes that homes says: "0 1".
func grid(homes string, more ...string) *profile.Profile {
	h := strings.Fields(homes)
	return profiletest.Draw(2, 1, append([]string{"u global: " + h[0] + " 9000 | " + h[1] + " 0 9000", "v heap: 0 2000 | 1 0 2000"}, more...)...)
}

func run(t *testing.T, before, after *profile.Profile) *Result {
	t.Helper()
	r, err := Run(before, after, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said is what a test looks at: the verdict, and the entries that changed.
func said(r *Result) string {
	list := []string{string(r.RemoteDRAM.Word)}
	for _, e := range r.Objects {
		if m := e.mark(); m != "" {
			list = append(list, fmt.Sprintf("%s %s", e.Name, m))
		}
	}
	return strings.Join(list, "; ")
}

func TestRun(t *testing.T) {
	serial := profiletest.Draw(2, 1, "u global: 0!10 9000 | 0!10 0 9000", "v heap: 0 2000 | 1 0 2000")
	sampled := func(p *profile.Profile, period uint64) *profile.Profile { p.Run.Period = period; return p }
	for _, c := range []struct {
		name          string
		before, after *profile.Profile
		want          string
	}{
		{"equal", grid("0 1"), grid("0 1"), "same"},
		{"pages moved", grid("0 1"), grid("0 0"), "worse; u worse"},
		{"and back", grid("0 0"), grid("0 1"), "better; u better"},
		{"first touch", grid("0 1"), serial, "worse; u worse"},
		{"another object", grid("0 1"), grid("0 1", "w global: 0 0 900"), "worse; w new, worse"},
		{"one object less", grid("0 1", "w global: 0 0 900"), grid("0 1"), "better; w gone, better"},
		{"one better, one worse", grid("0 0", "w global: 1 0 9000"), grid("0 1", "w global: 0 0 9000"), "same; u better; w worse"},
		{"less than equal runs differ by", grid("0 1"), grid("0 1", "w global: 0 22000 150"), "same; w new"},
		{"too few samples to tell", sampled(grid("0 1"), 10), sampled(grid("0 1", "w global: 0 0 300"), 10), "same; w new"},
		{"samples enough", sampled(grid("0 1"), 10), sampled(grid("0 0"), 10), "worse; u worse"},
		{"one is sampled", grid("0 1"), sampled(grid("0 0"), 10), "worse; u worse"},
		{"one is sampled, too few to tell", grid("0 1"), sampled(grid("0 1", "w global: 0 0 300"), 10), "same; w new"},
		{"unsupported", grid("0 1"), sampled(grid("0 0"), 100), "same"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, c.before, c.after)
			if got := said(r); got != c.want {
				t.Errorf("%q, want %q\n%s", got, c.want, r.Verdict)
			}
			if worse := strings.Contains(c.want, "worse"); (len(r.Worsened) > 0) != worse {
				t.Errorf("worsened: %+v", r.Worsened)
			}
		})
	}
}

// TestWhy: the reasons are what changed, and nothing else.
func TestWhy(t *testing.T) {
	inMain := grid("0 1")
	for i := range inMain.Pages {
		inMain.Pages[i].Place = profiletest.Main
	}
	const homes, bySerial = "its pages are on node 0; before on both nodes alike", "by the main thread, outside any loop"
	for _, c := range []struct {
		name          string
		before, after *profile.Profile
		want          []string
	}{
		{"pages alone", grid("0 1"), grid("0 0"), []string{homes, "+40.9 points in work.c:20 (work)"}},
		{"another loop touches first", profiletest.Draw(2, 1, "u global: 0 9000 | 1 0 9000"), profiletest.Draw(2, 1, "u global: 0 0 0/9000 0 | 0 0 0/0 9000"), []string{
			"first touched at work.c:31 (back) by the threads of a team; before at work.c:21 (work) by the threads of a team", homes, "+50.0 points in work.c:30 (back), a new loop"}},
		{"serially in the same function", inMain, profiletest.Draw(2, 1, "u global: 0!10 9000 | 0!10 0 9000", "v heap: 0 2000 | 1 0 2000"), []string{
			"first touched at init.c:5 (main) " + bySerial + "; before at init.c:5 (main) by the threads of a team", homes, "+40.9 points in work.c:20 (work)"}},
		{"serial stores are not use", profiletest.Draw(2, 1, "u global: 0!9000 9000 | 1!9 0 9000"), profiletest.Draw(2, 1, "u global: 0!9 9000 | 0!9 0 9000"), []string{
			homes, "+50.0 points in work.c:20 (work)"}},
		{"used from elsewhere", profiletest.Draw(2, 1, "u global: 0 9000 | 0 9000"), profiletest.Draw(2, 1, "u global: 0 9000 | 0 0 9000"), []string{
			"parallel code uses it from both nodes alike; before from node 0", "+50.0 points in work.c:20 (work)"}},
		{"larger", profiletest.Draw(2, 1, "u global: 0 9000 1000"), profiletest.Draw(2, 1, "u global: 0 9000 2000 | 0 0"), []string{
			"its size is 8 KiB; before 4 KiB", "+8.2 points in work.c:20 (work)"}},
	} {
		r := run(t, c.before, c.after)
		if len(r.Worsened) != 1 {
			t.Errorf("%s: %+v", c.name, r.Worsened)
			continue
		}
		if d := cmp.Diff(c.want, r.Worsened[0].Why); d != "" {
			t.Errorf("%s:\n%s", c.name, d)
		}
	}
}

// TestUnknownTouch: nobody saw first touches, before, after or at all.
func TestUnknownTouch(t *testing.T) {
	unseen := func(p *profile.Profile) *profile.Profile {
		p.Places = nil
		for i := range p.Pages {
			x := &p.Pages[i]
			x.Thread, x.Region, x.Place, x.Serial = -1, -1, -1, false
		}
		return p
	}
	want := []string{"its pages are on node 0; before on both nodes alike", "+40.9 points in work.c:20 (work)"}
	for i, r := range []*Result{
		run(t, unseen(grid("0 1")), unseen(grid("0 0"))), run(t, grid("0 1"), unseen(grid("0 0"))), run(t, unseen(grid("0 1")), grid("0 0")),
	} {
		if len(r.Worsened) != 1 || !slices.Equal(r.Worsened[0].Why, want) {
			t.Errorf("%d: %+v, want %q", i, r.Worsened, want)
		}
	}
}

// TestContributions: what the objects and loops changed by is what the whole did.
func TestContributions(t *testing.T) {
	r := run(t, grid("0 1"), grid("0 0", "w heap: 1 77 3/9 0", "x global: ? 8"))
	for name, list := range map[string][]Entry{"objects": r.Objects, "loops": r.Loops} {
		sum := 0.0
		for _, e := range list {
			sum += float64(e.Contribution.Points)
		}
		if d := sum - float64(r.RemoteDRAM.Points); d > 1e-9 || d < -1e-9 {
			t.Errorf("%s: %v, the whole %v", name, sum, r.RemoteDRAM.Points)
		}
	}
}

// TestFail: the limit counts where it is more than chance.
func TestFail(t *testing.T) {
	for _, c := range []struct {
		limit float64
		want  bool
	}{{-1, false}, {0, true}, {5, true}, {40, true}, {41, false}} { // 9000 of 22000 more are 40.9 points
		opt := DefaultOptions()
		opt.Fail = c.limit
		r, err := Run(grid("0 1"), grid("0 0"), opt)
		if err != nil || r.Failed != c.want {
			t.Errorf("%v: %v, %v", c.limit, r.Failed, err)
		}
		if r, err = Run(grid("0 0"), grid("0 1"), opt); err != nil || r.Failed {
			t.Errorf("%v, the other way round: %v, %v", c.limit, r.Failed, err)
		}
	}
}

// TestChance: threads that do the same work and miss the cache more or less often make
// remote percentages of little worth.
func TestChance(t *testing.T) {
	noisy := func(dram uint64) *profile.Profile {
		p := grid("0 1", "w global: 0 0 9000")
		last := len(p.Rows) - 1
		hit := p.Rows[last]
		hit.Level, hit.Count = profile.L1, 100_000-dram
		p.Rows[last].Count = dram
		p.Rows = append(p.Rows, hit)
		return p
	}
	r := run(t, noisy(9000), noisy(12000))
	if r.RemoteDRAM.Word != Same || r.Repeat < 8.8 || r.Repeat > 8.9 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "8.8 %") {
		t.Errorf("%+v, repeats to %v, %q", r.RemoteDRAM, r.Repeat, r.Warnings)
	}
	if r := run(t, noisy(9000), noisy(9050)); r.Repeat != 1 || len(r.Warnings) != 0 {
		t.Errorf("repeats to %v, %q", r.Repeat, r.Warnings)
	}
}

func TestRefusals(t *testing.T) {
	one, two, three := profiletest.Draw(1, 2, "u heap: 0 9"), grid("0 1"), profiletest.Draw(3, 1, "u heap: 0 9")
	faults := grid("0 1")
	faults.Run.Source = "faults"
	for _, c := range []struct {
		name          string
		before, after *profile.Profile
		want          error
	}{
		{"one node", one, one, topo.ErrOneNode}, {"one and two nodes", one, two, ErrCompare},
		{"two and three", two, three, ErrCompare}, {"page faults", two, faults, ErrCompare},
	} {
		if _, err := Run(c.before, c.after, DefaultOptions()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*profile.Profile)
		want   string
	}{
		{"threads", func(p *profile.Profile) {
			p.Threads = append(p.Threads, profile.Thread{Rank: 2, CPU: 1, Node: 1})
			p.Rows = append(p.Rows, profile.Row{Page: 1, Thread: 2, Region: 1, Level: profile.DRAM, Count: 1})
		}, "other threads: 3; before 2"},
		{"topology", func(p *profile.Profile) { p.Run.Topology.Nodes[1].CPUs = []int{1, 2} }, "another topology"},
		{"binding", func(p *profile.Profile) { p.Run.Pinned = []string{"OMP_PROC_BIND=spread"} }, "threads bound otherwise: compact OMP_PROC_BIND=spread; before compact"},
		{"arguments", func(p *profile.Profile) { p.Run.Command = []string{"./other", "200"} }, "other arguments: 200; before 100"},
		{"plan", func(p *profile.Profile) { p.Run.Plan = "app.plan.yaml" }, "another plan: app.plan.yaml; before none"},
		{"source", func(p *profile.Profile) { p.Run.Source = "pmu" }, "another source"},
		{"cache", func(p *profile.Profile) { p.Run.Cache.LLC.Bytes *= 2 }, "LLC 1 MiB; before 512 KiB"},
		{"cut short", func(p *profile.Profile) { p.Run.Complete = false }, "the profile after: the recording is not complete"},
		{"unknown homes", func(p *profile.Profile) { p.Pages[0].Home = topo.Unknown }, "home is not known"},
		{"another program", func(p *profile.Profile) {
			for i := range p.Objects {
				p.Objects[i].Symbol += "x"
			}
		}, "are the profiles of one program?"},
	} {
		after := grid("0 1")
		c.change(after)
		r := run(t, grid("0 1"), after)
		if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, c.want) }) {
			t.Errorf("%s: %q, want %q", c.name, r.Warnings, c.want)
		}
		if r := run(t, after, after); c.name != "unknown homes" && c.name != "cut short" && len(r.Warnings) != 0 {
			t.Errorf("%s, in both: %q", c.name, r.Warnings)
		}
	}
}

// shifted is p with every line that many further down, as after an edit at the head of
// the files, and another build.
func shifted(p *profile.Profile, lines int) *profile.Profile {
	move := func(c *ident.Code) {
		c.Offset += 0x40
		c.Inlined = slices.Clone(c.Inlined)
		for i := range c.Inlined {
			c.Inlined[i].Line += lines
			c.Inlined[i].FunctionLine += lines
		}
	}
	for i := range p.Places {
		move(&p.Places[i])
	}
	for i := range p.Sites {
		for k := range p.Sites[i].Frames {
			move(&p.Sites[i].Frames[k])
		}
	}
	for i := range p.Regions {
		move(&p.Regions[i].Code)
		p.Regions[i].Line += lines
		p.Regions[i].Name = fmt.Sprintf("work.c:%d", p.Regions[i].Line)
	}
	for i := range p.Objects {
		p.Objects[i].Line += lines
		p.Objects[i].Name += " moved"
	}
	p.Modules[0].BuildID = "ef01"
	return p
}

// TestMovedLines: names that have lines in them change, and everything is found.
func TestMovedLines(t *testing.T) {
	r := run(t, grid("0 1"), shifted(grid("0 1"), 7))
	if got := said(r); got != "same" || len(r.Warnings) != 0 || len(r.Objects) != 2 || r.Objects[0].Before == "" || r.Loops[0].Before != "work.c:20 (work)" {
		t.Errorf("%q, %q\n%+v\n%+v", got, r.Warnings, r.Objects, r.Loops)
	}
}

// TestBuilds: in the same build code is the same whatever else speaks for it; in another
// one two allocations in one function, of which one is new, are told apart by use or
// said to be in doubt.
func TestBuilds(t *testing.T) {
	two := func(more ...string) *profile.Profile {
		return profiletest.Draw(2, 1, append(more, "a heap: 0 9000 | 1 0 9000", "b heap: 0 0 0/800 0 | 1 0 0/0 800")...)
	}
	loops := profiletest.Draw(2, 1, "a heap: 0 800 | 1 0 800", "b heap: 0 0 0/800 0 | 1 0 0/0 800")
	for _, c := range []struct {
		name          string
		before, after *profile.Profile
		want          string
	}{
		{"used otherwise", two(), shifted(two("c heap: 0 300"), 3), "same; c moved new"},
		{"only loops differ", loops, shifted(profiletest.Draw(2, 1, "c heap: 0 0 0/800 0 | 1 0 0/0 800", "a heap: 0 800 | 1 0 800", "b heap: 0 0 0/800 0 | 1 0 0/0 800"), 3), "same; c moved new"},
		{"alike", two(), shifted(two("c heap: 0 9000 | 1 0 9000"), 3), "same; c moved ?; a moved new"},
		{"the same build", two(), profiletest.Draw(2, 1, "a heap: 0 0 0/800 0 | 1 0 0/0 800", "b heap: 0 9000 | 1 0 9000", "c heap: 0 300"), "same; c new"},
	} {
		if got := said(run(t, c.before, c.after)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestRegrouped: a loop that the compiler split in two made nothing worse; one that was
// added to the function did.
func TestRegrouped(t *testing.T) {
	split := func(more string) *profile.Profile {
		p := grid("0 0", "w global: 0 0 0/0 "+more)
		p.Regions[profiletest.Back].Function = "work"
		p.Regions[profiletest.Back].Line = 25
		p.Regions[profiletest.Back].Code.Inlined[0].Function = "work"
		return p
	}
	one := grid("0 0", "w global: 0 0 4000")
	one.Regions = one.Regions[:2]
	for more, want := range map[string]Word{"4000": Same, "9000": Worse} {
		r := run(t, one, split(more))
		i := slices.IndexFunc(r.Loops, func(e Entry) bool { return e.New })
		if i < 0 || r.Loops[i].Contribution.Word != want {
			t.Errorf("%s accesses by a new loop: %+v", more, r.Loops)
		}
	}
}

// TestNames: what survives a rebuild is of one family, and nothing else is.
func TestNames(t *testing.T) {
	family := func(symbol, file string) string {
		p := profiletest.Draw(2, 1, "x global: 0 1")
		p.Objects[0].Symbol, p.Objects[0].File = symbol, file
		groups, _ := access.Groups(p)
		return objectItem(p, &groups[0]).families[0]
	}
	for _, c := range []struct {
		symbol, file, other, otherFile string
		same                           bool
	}{
		{"u", "/a/bt.c", "u", "/b/bt.c", true},
		{"u", "bt.c", "u", "sp.c", false},
		{"u", "bt.c", "v", "bt.c", false},
		{"buffer.1", "bt.c", "buffer.7", "bt.c", true},
		{"_ZN4grid1uE", "g.cc", "_ZN4grid1uE", "g.cc", true},
		{"_ZN4grid1uE", "g.cc", "_ZN4mesh1uE", "g.cc", false},
		{"__mesh_MOD_u", "g.f90", "_QMmeshEu", "g.f90", true}, // gfortran and flang
	} {
		if a, b := family(c.symbol, c.file), family(c.other, c.otherFile); (a == b) != c.same {
			t.Errorf("%q and %q, want the same: %v", a, b, c.same)
		}
	}
}

// timed is a profile with latencies: remote loads take that long.
func timed(cycles uint64) *profile.Profile {
	p := grid("0 0")
	p.Run.Source, p.Run.Period = "pmu", 10
	for _, l := range []profile.Latency{
		{Served: profile.ServedLocalDRAM, Cycles: 200 * 900}, {Served: profile.ServedRemoteDRAM, From: 1, Cycles: cycles * 900},
	} {
		l.Region, l.Samples, l.Accesses, l.Bucket = profiletest.Work, 90, 900, profile.LatencyBucket(l.Cycles/900)
		p.Latencies = append(p.Latencies, l)
	}
	return p
}

// TestLatency: what remote loads cost is part of the figures.
func TestLatency(t *testing.T) {
	r := run(t, timed(300), timed(400))
	if m := r.LoadLatency; m == nil || m.Before != 250 || m.After != 300 {
		t.Errorf("mean latency %+v", m)
	}
	if c := r.LatencyCost; c == nil || c.Before != 20 || math.Abs(float64(c.After)-100.0/3) > 0.01 {
		t.Errorf("cost %+v", c)
	}
	if c := r.Objects[0].Cost; c == nil || c.Before != 20 {
		t.Errorf("cost of %s: %+v", r.Objects[0].Name, c)
	}
}

// strictSchema is Schema without leave for fields that it does not describe.
func strictSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.ReplaceAll(Schema, `"type": "object",`, `"type": "object", "additionalProperties": false,`)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("diff.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("diff.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBadInput: odd profiles are compared, in text and JSON that are whole.
func TestBadInput(t *testing.T) {
	schema := strictSchema(t)
	many := func() *profile.Profile {
		lines := make([]string, 0, 10_000)
		for i := range 10_000 {
			lines = append(lines, fmt.Sprintf("o%d heap: %d 9 3", i, i%2))
		}
		return profiletest.Draw(2, 1, lines...)
	}
	long := grid("0 0")
	long.Objects[0].Name = strings.Repeat("größe<script>alert(1)</script>", 40)
	long.Regions[1].Name = strings.Repeat("a_long_namespace::", 60) + "f"
	broken := grid("0 1")
	broken.Objects[0].Name, broken.Run.Command = "\xff\x00", nil
	for _, c := range []struct {
		name          string
		before, after *profile.Profile
	}{
		{"empty", profiletest.Draw(2, 1), profiletest.Draw(2, 1)},
		{"empty before", profiletest.Draw(2, 1), grid("0 1")},
		{"empty after", grid("0 1"), profiletest.Draw(2, 1)},
		{"one page", profiletest.Draw(2, 1, "u heap: 0 1"), profiletest.Draw(2, 1, "u heap: 1 1")},
		{"one thread", profiletest.Draw(2, 1, "u heap: 0 5000"), grid("0 1")},
		{"512 threads", profiletest.Draw(2, 256, "u heap: 0"+strings.Repeat(" 30", 512)), profiletest.Draw(2, 256, "u heap: 1"+strings.Repeat(" 30", 512))},
		{"10,000 objects", many(), many()},
		{"10,000 objects and one", many(), shifted(grid("0 1"), 1)},
		{"names", grid("0 1"), long}, {"bytes", broken, grid("0 0")}, {"latencies", timed(300), timed(400)},
	} {
		start := time.Now()
		r := run(t, c.before, c.after)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", c.name, took)
		}
		var text, js bytes.Buffer
		if err := errors.Join(r.WriteText(&text, 10), r.WriteJSON(&js)); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(&js)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, line := range strings.Split(text.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > lineWidth && !strings.Contains(line, "script") && !strings.Contains(line, "namespace") {
				t.Errorf("%s: %d wide: %s", c.name, n, line)
			}
		}
	}
}

// TestNastyNames: names begin no line of their own, and command no terminal.
func TestNastyNames(t *testing.T) {
	const nasty = "u\n\x1b[31mall is well\r\u202e"
	before, after := grid("0 1"), grid("0 0")
	for _, p := range []*profile.Profile{before, after} {
		p.Objects[0].Name, p.Objects[0].Symbol = nasty, nasty
		for i := range p.Regions {
			p.Regions[i].Name, p.Regions[i].Function = nasty, nasty
		}
	}
	after.Run.Command = []string{"./app", nasty}
	var out bytes.Buffer
	if err := run(t, before, after).WriteText(&out, 0); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if i := strings.IndexFunc(line, func(c rune) bool { return c != utf8.RuneError && !unicode.IsPrint(c) }); i >= 0 || strings.HasPrefix(line, "all is well") {
			t.Errorf("%q", line)
		}
	}
	if n := strings.Count(out.String(), "all is well"); n < 4 { // object, loop, reason and arguments
		t.Errorf("named %d times:\n%s", n, out.String())
	}
}

func TestText(t *testing.T) {
	before := profiletest.Draw(4, 2, "u in grid.c heap: "+strings.Repeat("0 640 0 | 1 0 0 640 | 2 0 0 0 0 640 | 3 0 0 0 0 0 0 640 | ", 7)+"0 640", "old global: 0 100")
	after := profiletest.Draw(4, 2, "u in grid.c heap: "+strings.Repeat("0!8 640 0 | 0!8 0 0 640 | 0!8 0 0 0 0 640 | 0!8 0 0 0 0 0 0 640 | ", 7)+"0!8 640", "fresh global: 1 0 0 0 0 0 0 0 900/3000")
	after.Run.Command = []string{"./app", "200"}
	after.Regions[profiletest.Back].Schedule = "static"
	var out bytes.Buffer
	if err := run(t, before, after).WriteText(&out, 10); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/worse.txt", out.Bytes())
	out.Reset()
	if err := run(t, before, before).WriteText(&out, 10); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/same.txt", out.Bytes())
	out.Reset()
	if err := run(t, after, before).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/better.json", out.Bytes())
}
