package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/mattn/go-runewidth"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"numaopt/internal/golden"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// repeat draws n pages, page i with the picture that at returns.
func repeat(n int, at func(i int) string) string {
	var pages []string
	for i := range n {
		pages = append(pages, at(i))
	}
	return strings.Join(pages, " | ")
}

// counts draws thread's count c among zeros.
func counts(thread int, c string) string { return strings.Repeat("0 ", thread) + c }

// profiles are the questions that the goldens answer.
func profiles() map[string]*profile.Profile {
	const threads, pages = 8, 64
	owner := func(i int) int { return i * threads / pages }
	serial := profiletest.Draw(4, 2,
		"u in grid.c heap: "+repeat(pages, func(i int) string { return "0!64 " + counts(owner(i), "640") }),
		"stack stack: 0 5 5 5 5")
	parallel := profiletest.Draw(4, 2,
		"u in grid.c heap: "+repeat(pages, func(i int) string {
			return string(rune('0'+owner(i)/2)) + " " + counts(owner(i), "640")
		}))
	conflict := profiletest.Draw(4, 2,
		"a in adi.c global: "+repeat(pages, func(i int) string {
			return string(rune('0'+owner(i)/2)) + " " + counts(owner(i), "640") + " / " + counts((i%threads), "640")
		}))
	all := strings.TrimSpace(strings.Repeat("80 ", threads))
	even := profiletest.Draw(4, 2,
		"x in cg.c heap: "+repeat(pages, func(i int) string { return "0!64 " + all }),
		"node.c:7 (new_node) small: 0!3 50 | 0!3 0 0 50")
	oneNode := profiletest.Draw(1, 4, "u heap: 0!5 900 900")
	empty := profiletest.Draw(2, 1)
	few := profiletest.Draw(2, 1, "u heap: 0!5 9 9")
	killed := profiletest.Draw(2, 2, "u heap: 0!5 9000 0 9000 | ? 900 900 900")
	killed.Run.Complete, killed.Run.ExitStatus = false, 137
	killed.Run.Period, killed.Run.Processes, killed.Run.OtherAccesses = 10, 3, 123456789
	killed.Warnings = []string{"the disk was full"}
	killed.Run.Recording = &profile.Recording{Recorder: "perf 6.8.12", Kind: "Intel PEBS", Events: []string{"mem-loads"}, WishedFrequency: 4000, SystemWide: true, PID: 4711,
		Samples: 2000, Used: 1900, Lost: 12, Throttled: 3, Rate: 97.5, Notes: []string{"200000 samples a second are over the kernel's limit: 100000"}}
	killed.Run.Pinned = []string{"OMP_PROC_BIND=close"}
	killed.Objects = append(killed.Objects, profile.Object{Kind: profile.Unknown, Name: "?", Site: -1, Module: -1})
	killed.Pages = append(killed.Pages, profile.Page{Object: 1, Home: 1, Thread: -1, Region: -1, Place: -1})
	killed.Rows = append(killed.Rows, profile.Row{Page: 2, Thread: 1, Region: 1, Level: profile.DRAM, Count: 900})
	return map[string]*profile.Profile{
		"latencies": profiletest.WithCode(sampled()), "serial-initialisation": profiletest.WithCode(serial), "parallel-initialisation": parallel, "two-loops-disagree": conflict,
		"used-by-everybody": even, "one-node": oneNode, "empty": empty, "few": few, "killed": killed,
	}
}

// sampled is a profile with latencies. Node 0's own memory takes 200 cycles, node 1's
// 250; v is used less than u, but it is all remote.
func sampled() *profile.Profile {
	p := profiletest.Draw(2, 2,
		"u in grid.c heap: 0 400000 300000 | 1 0 0 200000 300000",
		"v in grid.c heap: 1 150000 0 0 0/40000 | 0 0 0 0 60000",
		"lock global: 0 0 0 0 1000")
	p.Run.Source, p.Run.Period, p.Run.Bind = "pmu", 1000, "none"
	load := func(object, region int32, served profile.Served, from, to topo.NodeID, cycles, samples uint64) {
		p.Latencies = append(p.Latencies, profile.Latency{Object: object, Region: region, Served: served, From: from, To: to,
			Bucket: profile.LatencyBucket(cycles), Samples: samples, Accesses: 1000 * samples, Cycles: 1000 * samples * cycles})
	}
	for object := range int32(2) {
		load(object, profiletest.Work, profile.ServedL1, 0, topo.Unknown, 4, 1000)
		load(object, profiletest.Work, profile.ServedLFB, 1, topo.Unknown, 0, 200)
	}
	load(0, profiletest.Work, profile.ServedLocalDRAM, 0, 0, 200, 700)
	load(0, profiletest.Work, profile.ServedLocalDRAM, 1, 1, 250, 500)
	load(1, profiletest.Work, profile.ServedRemoteDRAM, 0, 1, 400, 150)
	load(1, profiletest.Back, profile.ServedRemoteDRAM, 0, 1, 500, 40)
	load(1, profiletest.Work, profile.ServedRemoteDRAM, 1, 0, 450, 60)
	load(2, profiletest.Work, profile.ServedRemoteHITM, 1, topo.Unknown, 600, 1)
	line := func(offset int64, node topo.NodeID, region, place int32, written, read, loads, stores, hitm uint64) {
		p.Lines = append(p.Lines, profile.LineUse{Object: 2, Offset: offset, Node: node, Region: region, Place: place, Written: written, Read: read, Loads: loads, Stores: stores, HITM: hitm})
	}
	line(0, 0, profiletest.Work, profiletest.Work, 1, 1, 20, 30, 12)
	line(0, 1, profiletest.Work, profiletest.Work, 1<<8, 1<<8, 10, 30, 9)
	line(0, 1, profiletest.Back, profiletest.Back, 0, 1<<8, 3, 0, 0)
	line(64, 0, profiletest.Work, -1, 1, 0, 0, 5, 0)
	line(64, 1, profiletest.Work, -1, 0, 1, 5, 0, 0)
	line(128, 0, profiletest.Main, profiletest.Main, 1, 0, 0, 1, 0)
	line(128, 1, profiletest.Work, profiletest.Work, 0, 1, 1, 0, 0)
	return p
}

func TestText(t *testing.T) {
	for name, p := range profiles() {
		var out bytes.Buffer
		if err := WriteText(&out, build(t, p), TextOptions{Top: 10}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name+".txt", out.Bytes())
		for i, line := range strings.Split(out.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > lineWidth {
				t.Errorf("%s: line %d is %d wide: %s", name, i+1, n, line)
			}
		}
	}
}

// TestFaults: a report of page faults says so throughout.
func TestFaults(t *testing.T) {
	for name, p := range profiles() {
		p.Run.Source, p.Run.Period, p.Latencies = "faults", 1, nil
		var out bytes.Buffer
		if err := WriteText(&out, build(t, p), TextOptions{Top: 10}); err != nil {
			t.Fatal(err)
		}
		if s := out.String(); strings.Contains(s, "DRAM") || !strings.Contains(s, "by page faults") && p.Rows != nil {
			t.Errorf("%s:\n%s", name, s)
		}
	}
}

func TestJSON(t *testing.T) {
	schema := strictSchema(t)
	for name, p := range profiles() {
		var out bytes.Buffer
		if err := WriteJSON(&out, build(t, p)); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name+".json", out.Bytes())
		doc, err := jsonschema.UnmarshalJSON(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// strictSchema is Schema without leave for fields that it does not describe.
func strictSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, closed(doc))
}

// closed takes the leave for fields that it does not describe from a schema.
func closed(doc any) any {
	walk(doc, func(x map[string]any) {
		if x["type"] == "object" {
			x["additionalProperties"] = false
		}
	})
	return doc
}

// walk visits every object of a JSON document.
func walk(x any, visit func(map[string]any)) {
	switch x := x.(type) {
	case map[string]any:
		visit(x)
		for _, v := range x {
			walk(v, visit)
		}
	case []any:
		for _, v := range x {
			walk(v, visit)
		}
	}
}

func compile(t *testing.T, doc any) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func build(t *testing.T, p *profile.Profile, only ...string) *Report {
	t.Helper()
	p.Run.Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r, err := Build(p, Options{Only: only})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestClosed: what must add up to 100 does.
func TestClosed(t *testing.T) {
	for name, p := range profiles() {
		r := build(t, p)
		for what, parts := range map[string][]Pct{
			"DRAM":    {r.DRAM.LocalPct, r.DRAM.RemotePct, r.DRAM.UnknownPct},
			"all":     {r.All.LocalPct, r.All.RemotePct, r.All.UnknownPct},
			"sharing": {r.Sharing.Private, r.Sharing.NonShared, r.Sharing.UniformlyShared},
			"pages":   {r.Sharing.Accesses.Private, r.Sharing.Accesses.NonShared, r.Sharing.Accesses.UniformlyShared},
		} {
			var s Pct
			for _, x := range parts {
				s += x
			}
			if math.Abs(float64(s)-100) > 1e-9 && !math.IsNaN(float64(s)) {
				t.Errorf("%s: %s adds up to %v", name, what, s)
			}
		}
		var objects, loops, threads uint64
		for _, o := range r.Objects {
			objects += o.Accesses
		}
		for _, l := range r.Loops {
			loops += l.Accesses
		}
		for _, x := range r.Threads {
			threads += x.Accesses
		}
		if objects != r.Accesses || loops != r.Accesses || threads != r.Accesses {
			t.Errorf("%s: %d accesses; objects %d, loops %d, threads %d", name, r.Accesses, objects, loops, threads)
		}
	}
}

func TestOnly(t *testing.T) {
	p := profiles()["serial-initialisation"]
	whole, work := build(t, p), build(t, p, "work")
	if got := float64(whole.RemoteDRAM); math.Abs(got-68.18) > 0.1 {
		t.Errorf("whole run: %v %% remote", got)
	}
	if got := float64(work.RemoteDRAM); math.Abs(got-75) > 0.1 {
		t.Errorf("the loop: %v %% remote", got)
	}
	if whole.Sharing.UniformlyShared < 70 || work.Sharing.UniformlyShared != 0 {
		t.Errorf("shared: %v, in the loop %v", whole.Sharing.UniformlyShared, work.Sharing.UniformlyShared)
	}
	if len(work.SerialInit) != 1 {
		t.Errorf("the loop's own cost of serial initialisation: %+v", work.SerialInit)
	}
	if _, err := Build(p, Options{Only: []string{"nothing"}}); err == nil {
		t.Error("an unknown name is no error")
	}
}

// TestWidth: the longest names, in wide characters too, and figures keep to the line, and
// nothing in a name reaches the terminal as a command.
func TestWidth(t *testing.T) {
	for what, long := range map[string]string{
		"C++": strings.Repeat("a_long_namespace::", 60) + "and_a_function", "wide": strings.Repeat("格子", 500), "accents": strings.Repeat("ü̈", 1000),
		"words": strings.Repeat("many words ", 100), "HTML": strings.Repeat("<script>", 130), "escapes": strings.Repeat("\x1b[31m\n\t\u202e", 200),
	} {
		p := profiletest.WithCode(profiletest.Draw(10, 3, "u heap: 0!70 "+strings.Repeat("99999999 ", 30)+"| 1 "+strings.Repeat("99999999 ", 30), "v heap: 3 1"))
		for i := range p.Objects {
			p.Objects[i].Name = "file.cpp:12345 (" + long + ")"
		}
		for i := range p.Regions {
			p.Regions[i].Name, p.Regions[i].Thread = long, long
			p.Regions[i].Entries = math.MaxUint64
		}
		p.Places[0].Inlined[0].Function = long
		p.Run.Command, p.Warnings = []string{"./" + long, long}, []string{"no line is known of " + long}
		var out bytes.Buffer
		if err := WriteText(&out, build(t, p), TextOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if n := runewidth.StringWidth(line); n > lineWidth {
				t.Errorf("%s: %d wide: %s", what, n, line)
			}
			if i := strings.IndexFunc(line, func(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s: %q", what, line[i:])
			}
		}
	}
}

// TestColor: emphasis is nothing but escape sequences around the same words.
func TestColor(t *testing.T) {
	r := build(t, profiles()["killed"])
	var plain, colored bytes.Buffer
	if err := errors.Join(WriteText(&plain, r, TextOptions{Top: 10}), WriteText(&colored, r, TextOptions{Top: 10, Color: true})); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colored.String(), bold+"Sharing of") || !strings.Contains(colored.String(), yellow+"warning: ") {
		t.Errorf("plain:\n%q\ncolored:\n%q", plain.String(), colored.String())
	}
	if got := text.StripEscape(colored.String()); got != plain.String() {
		t.Errorf("the words differ:\n%s", got)
	}
}

func TestSort(t *testing.T) {
	p := profiletest.Draw(2, 1, "b heap: 1 90 0/0 5 | 1 | 0", "a heap: 0 80 10/2 0", "c global: 0 100 0")
	for key, want := range map[string]string{
		"cost": "c b a, work.c:20 (work) work.c:30 (back)", "dram": "c b a, work.c:20 (work) work.c:30 (back)", "remote": "b a c, work.c:20 (work) work.c:30 (back)",
		"name": "a b c, work.c:20 (work) work.c:30 (back)", "size": "b c a, work.c:20 (work) work.c:30 (back)", "accesses": "c b a, work.c:20 (work) work.c:30 (back)",
	} {
		r, err := Build(p, Options{Sort: key})
		if err != nil {
			t.Fatal(err)
		}
		var names, loops []string
		for _, o := range r.Objects {
			names = append(names, o.Name)
		}
		for _, l := range r.Loops {
			loops = append(loops, l.Name)
		}
		if got := strings.Join(names, " ") + ", " + strings.Join(loops, " "); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	if _, err := Build(p, Options{Sort: "colour"}); err == nil || !strings.Contains(err.Error(), "cost, dram, remote") {
		t.Errorf("%v", err)
	}
}

// TestPatternRows: where a few patterns are enough no others are looked for, and the text
// says so.
func TestPatternRows(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("u%d heap: %s", i, repeat(8, func(p int) string { return "0 " + counts(p/2, "90") })))
	}
	r, err := Build(profiletest.Draw(4, 1, lines...), Options{PatternRows: 5})
	if err != nil {
		t.Fatal(err)
	}
	some := 0
	for _, o := range r.Objects {
		some += len(o.Patterns)
	}
	var out bytes.Buffer
	if err := WriteText(&out, r, TextOptions{Top: 5}); err != nil {
		t.Fatal(err)
	}
	if some < 5 || some >= 40 || !strings.Contains(out.String(), fmt.Sprintf("  and those of %d more objects: --top 0 prints all", 40-some)) {
		t.Errorf("%d patterns:\n%s", some, out.String())
	}
}

// TestSelection: the report of an object or a thread says so.
func TestSelection(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0 900 90", "v heap: 1 900 0")
	r, err := Build(p, Options{Objects: []string{"v"}, Threads: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteText(&out, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(r.Objects) != 1 || r.RemoteDRAM != 100 || r.DRAMAccesses != 900 || !strings.Contains(out.String(), "only: object v, thread 0\n") {
		t.Errorf("%s", out.String())
	}
}

// TestVerdict: one sentence, which says what is known and no more.
func TestVerdict(t *testing.T) {
	four := func(names ...string) (lines []string) {
		for _, n := range names {
			lines = append(lines, n+" heap: 0!1 0 90 | 0!1 0 90")
		}
		return lines
	}
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{four("u"), "98.9 % of 182 DRAM accesses are remote; all of them to u, first touched by the main thread at init.c:5 (main); placing pages removes up to 97.8 points without a source change."},
		{four("a", "b", "c", "d"), "98.9 % of 728 DRAM accesses are remote; 75.0 % of them are to a, b and c, first touched by the main thread at init.c:5 (main); placing"},
		{four("a", "b", "c", "d", "e", "f"), "98.9 % of 1,092 DRAM accesses are remote; they go to 6 objects, at most 16.7 % of them to one; placing"},
		{[]string{"u heap: 0!1 0 900", "v heap: 1 900"}, "99.9 % of 1,801 DRAM accesses are remote; all of them to u and v, first touched by the main thread at init.c:5 (main) and work.c:21 (work); placing"},
		{[]string{"u heap: 0 5000 | 0 5000 90"}, "Placement is good: 0.9 % of 10,090 DRAM accesses are remote."},
	} {
		r := build(t, profiletest.Draw(2, 1, c.lines...))
		r.Quality.Enough = true
		if got := verdict(r); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q:\n%s, want\n%s", c.lines, got, c.want)
		}
	}
}

type brokenPipe struct{ left int }

var errBroken = errors.New("broken pipe")

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriteErrors(t *testing.T) {
	r := build(t, profiles()["killed"])
	for _, left := range []int{0, 100, 1000} {
		if err := WriteText(&brokenPipe{left}, r, TextOptions{}); !errors.Is(err, errBroken) {
			t.Errorf("text, after %d bytes: %v", left, err)
		}
	}
	if err := WriteJSON(&brokenPipe{}, r); !errors.Is(err, errBroken) {
		t.Errorf("JSON: %v", err)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1e6: "1.00 million", 12345678: "12.3 million",
		123456789: "123 million", 999999999: "1000 million", 5e9: "5.00 billion", math.MaxInt64: "9223372 trillion",
	} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestHomes(t *testing.T) {
	for _, c := range []struct {
		pages []int
		all   int
		want  string
	}{
		{[]int{4, 0, 0, 0}, 4, "0"},
		{[]int{0, 0, 4, 0}, 4, "2"},
		{[]int{4, 4, 4, 5}, 17, "even"},
		{[]int{3, 1, 0, 0}, 4, "0:75 1:25"},
		{[]int{0, 0}, 4, "unknown"},
		{[]int{1, 0}, 4, "0:25"},
	} {
		if got := homes(c.pages, c.all); got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.pages, c.all, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcdefghij", 7, "abcd…ij"}, {"(anonymous namespace)::f", 3, "f"}, {"äöüäöüäöü", 4, "äö…ü"}} {
		if got := short(c.s, c.n); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

// FuzzFinite would find a figure that JSON cannot hold; the pictures of Draw are
// the seeds' language, here a profile is made from bytes.
func FuzzBuild(f *testing.F) {
	f.Add([]byte{2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		next := func(n int) int {
			if len(b) == 0 {
				return 0
			}
			v := int(b[0]) % n
			b = b[1:]
			return v
		}
		nodes := next(4) + 1
		p := profiletest.Draw(nodes, 1+next(2), "u heap: 0!1 1", "v global: 0 5", "s stack: 0 1", "t small: ? 1")
		p.Run.Period = uint64(next(3)) + 1
		for len(b) > 0 {
			p.Pages = append(p.Pages, profile.Page{Object: next(4), Home: topo.NodeID(next(nodes+1) - 1), Thread: next(len(p.Threads)+1) - 1, Region: next(4) - 1, Place: next(4) - 1, Serial: next(2) > 0})
			p.Rows = append(p.Rows, profile.Row{Page: int32(next(len(p.Pages))), Thread: int32(next(len(p.Threads))), Region: int32(next(3)), Level: profile.Level(next(4)), Op: profile.Op(next(2)), Count: uint64(next(256))})
		}
		if p.Check() != nil {
			t.Skip()
		}
		r, err := Build(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteJSON(&out, r); err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatal(err)
		}
		if err := WriteText(&out, r, TextOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkBuild is on a million rows.
func BenchmarkBuild(b *testing.B) {
	p := profiletest.Draw(4, 2, "u heap: 0 1", "v heap: 1 2")
	p.Objects[0].Bytes = 4096 << 20
	for i := range 250_000 {
		p.Pages = append(p.Pages, profile.Page{Index: i, Home: topo.NodeID(i % 4), Thread: i % 8, Region: 1, Place: 1})
		for j := range 4 {
			p.Rows = append(p.Rows, profile.Row{Page: int32(i), Thread: int32((i + j) % 8), Region: int32(1 + j%2), Level: profile.DRAM, Count: uint64(i%64 + 1)})
		}
	}
	for b.Loop() {
		if _, err := Build(p, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(p.Rows)), "ns/row")
}

// TestMerged: the text says which loops stand behind one that gcc merged.
func TestMerged(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!1 9 0 | 0!1 | 1 0 7/5 0 | 0 0 0/0 3")
	r, err := Build(p, Options{Merged: map[int][]int{profiletest.Work: {5, 8}}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteText(&b, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, "gcc merged 2 loops into this one, those of lines 5, 8,") {
		t.Error(b.String())
	}
}

// TestLongLines: names of any length keep to the width.
func TestLongLines(t *testing.T) {
	p := profiletest.WithCode(profiletest.Draw(2, 1, strings.Repeat("ü", 1000)+" heap: 0 1 9999", "v"+strings.Repeat("<b>", 300)+" heap: 0 1 9999", "w heap: 0 1 9999"))
	p.Codes[profiletest.Work].Inlined[0].File = strings.Repeat("long/", 200) + strings.Repeat("x", 1000) + ".c"
	var out bytes.Buffer
	if err := WriteText(&out, build(t, p), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(out.String(), "Lines of source")
	if !found {
		t.Fatal(out.String())
	}
	for line := range strings.Lines(table) {
		if n := utf8.RuneCountInString(line); n > lineWidth+len("\n") {
			t.Errorf("%d wide: %s", n, line)
		}
	}
}
