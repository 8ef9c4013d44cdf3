package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/programs"
	"numaopt/internal/symbol"
)

// planCase writes a drawn profile and runs numaopt plan on it.
func planCase(t *testing.T, p *profile.Profile, args ...string) (code int, out, err string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.nprof")
	if e := profile.WriteFile(path, p); e != nil {
		t.Fatal(e)
	}
	var o, e bytes.Buffer
	code = run(context.Background(), &stdio{in: strings.NewReader(""), out: &o, err: &e}, append([]string{"plan", path}, args...))
	return code, o.String(), e.String()
}

func serialInit() *profile.Profile {
	half := func(s string) string { return strings.Repeat(s+" | ", 7) + s }
	return profiletest.Draw(2, 1, "u heap: "+half("0!1 900 0")+" | "+half("0!1 0 900"), "v global: "+half("0!1 0 900"))
}

// TestPlanLatency: what doctor --latency measured weighs nodes; a file of another machine
// is refused.
func TestPlanLatency(t *testing.T) {
	file := filepath.Join(t.TempDir(), "latency.json")
	for pairs, want := range map[string]string{
		`{"cpu_node":0,"memory_node":0,"latency_ns":80},{"cpu_node":0,"memory_node":1,"latency_ns":144},{"cpu_node":1,"memory_node":0,"latency_ns":144},{"cpu_node":1,"memory_node":1,"latency_ns":80}`: "the latencies of --latency: loads from other nodes' memory take 1.8 times",
		`{"cpu_node":0,"memory_node":0,"latency_ns":80}`: "is not of the profile's machine: no latency of node 0 to memory of node 1",
	} {
		if err := os.WriteFile(file, []byte(`{"pairs":[`+pairs+`]}`), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, out, errs := planCase(t, serialInit(), "--latency", file); !strings.Contains(out+errs, want) {
			t.Errorf("%s\n%s\nwant %s", out, errs, want)
		}
	}
}

func TestPlanCommand(t *testing.T) {
	code, out, errs := planCase(t, serialInit())
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	p, err := plan.Read(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(p.Objects) != 2 || p.Objects[0].Place.Policy != plan.XWise || p.Objects[1].Place.Policy != plan.Bind {
		t.Errorf("planned %+v", p.Objects)
	}
	for _, want := range []string{"remote DRAM accesses 66.6 % -> 0.1 % predicted", "next: numaopt apply FILE -- ./app 100", "numaopt lab --topology 2x1 --plan FILE -- ./app 100"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr has no %q:\n%s", want, errs)
		}
	}
}

func TestPlanToFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.plan.yaml")
	code, out, errs := planCase(t, serialInit(), "-o", path, "--explain")
	if code != 0 || out != "" {
		t.Fatalf("exit status %d, stdout %q, stderr %s", code, out, errs)
	}
	if _, err := plan.ReadFile(path); err != nil {
		t.Error(err)
	}
	if !strings.Contains(errs, "apply "+path) || !strings.Contains(errs, "because") {
		t.Errorf("stderr:\n%s", errs)
	}
	if code, _, _ := planCase(t, serialInit(), "-o", filepath.Join(path, "no", "such")); code != exitUsage {
		t.Errorf("a folder that is none: exit status %d", code)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// twoWays is u swept up and down by two loops, of a program that clang made.
func twoWays(t *testing.T) *profile.Profile {
	t.Helper()
	m, sites := compiledLoops(t, "clang", "__kmpc_for_static_init_4", `
	double u[4096];
	void loops(void) {
	#pragma omp parallel for
		for (int i = 0; i < 4096; i++) u[i] += 1;
	#pragma omp parallel for
		for (int i = 0; i < 4096; i++) u[4095 - i] *= 2;
	}
	int main(void) { loops(); }`)
	half := func(s string) string { return strings.Repeat(s+" | ", 7) + s }
	p := profiletest.Draw(2, 1, "u heap: "+half("0 900 0 / 0 800")+" | "+half("1 0 900 / 800 0"))
	p.Modules = append(p.Modules, m)
	for n, i := range []int{profiletest.Work, profiletest.Back} {
		r := &p.Regions[i]
		r.Site, r.Runtime, r.Schedule = r.Code, "libomp", "static"
		r.Site.Module, r.Site.Offset = len(p.Modules)-1, sites[n]
	}
	return p
}

func TestPlanSchedules(t *testing.T) {
	code, out, errs := planCase(t, twoWays(t), "--explain")
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, errs)
	}
	p, err := plan.Read(strings.NewReader(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(p.Loops) != 1 || p.Loops[0].Name != "work.c:30 (back)" || p.Loops[0].Schedule != plan.StaticInverse {
		t.Errorf("planned %+v", p.Loops)
	}
	for _, want := range []string{"static-inverse leaves 0.00 points of all accesses remote", "remote_dram_pct_pages_only: 47.06"} {
		if !strings.Contains(strings.ToLower(strings.ReplaceAll(out, "\n# ", " ")), want) {
			t.Errorf("the plan has no %q:\n%s", want, out)
		}
	}
	for _, want := range []string{"47.1 % -> 0.0 % predicted (47.1 % with pages alone, 0.0 % with every page on its best node)", "0 entries, 1 loop\n", "next: numaopt apply",
		"work.c:30 (back)  47.1 %  100.0 %  0.0 %  static-inverse  static-inverse leaves 0.00 points",
		"leaves 0.00 points of all accesses remote, static 47.06; most in it are to u", "with the loops' schedules first touch places it right",
		"work.c:20 (work)  52.9 %    0.0 %  0.0 %  static          nothing is better: static leaves 0.00"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr has no %q:\n%s", want, errs)
		}
	}
	_, out, errs = planCase(t, twoWays(t), "--no-schedules")
	if strings.Contains(out, "loops:") || !strings.Contains(errs, "47.1 % -> 47.1 % predicted") {
		t.Errorf("without schedules:\n%s%s", out, errs)
	}
	p2 := twoWays(t)
	p2.Regions[profiletest.Back].Code = p2.Regions[profiletest.Work].Code
	if _, out, errs = planCase(t, p2); strings.Contains(out, "loops:") {
		t.Errorf("loops of one region are told apart:\n%s", out)
	}
	for _, want := range []string{"plan --across-barriers would leave 0.0 % remote, not 47.1 %", "data of its own", "work.c:20 (work), work.c:30 (back) ("} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr has no %q:\n%s", want, errs)
		}
	}
	if _, out, _ = planCase(t, p2, "--across-barriers"); !strings.Contains(out, "loops:") {
		t.Errorf("across barriers:\n%s", out)
	}
}

// TestPlanAdvice: advice goes to stdout, and the plan only to a file.
func TestPlanAdvice(t *testing.T) {
	table := func() *profile.Profile {
		return profiletest.Draw(2, 1, "table heap: "+strings.Repeat("0!64 900 900 | ", 7)+"0!64 900 900")
	}
	code, out, errs := planCase(t, table(), "--advice", "--explain")
	if code != 0 || !strings.HasPrefix(out, "The plan alone leaves 48.3 %") || !strings.Contains(out, "A copy a node of table") || strings.Contains(out, "numaopt-plan") {
		t.Errorf("exit status %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"with the source changed as plan --advice prints: 6.4 % predicted\n", "change of the source  remote  saves  for", "replicate"} {
		if !strings.Contains(errs, want) {
			t.Errorf("stderr has no %q:\n%s", want, errs)
		}
	}
	if _, out, _ = planCase(t, table()); !strings.Contains(out, "numaopt-plan: 1") {
		t.Errorf("the plan:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "app.plan.yaml")
	_, out, _ = planCase(t, table(), "--advice", "--format", "json", "-o", file)
	var a struct {
		Automatic float64 `json:"remote_dram_pct_automatic"`
		Source    float64 `json:"remote_dram_pct_source_change"`
		Advice    []struct{ Kind string }
		Notes     []string
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Automatic < 48 || a.Source > 7 || len(a.Advice) != 1 || a.Advice[0].Kind != "replicate" || a.Notes == nil {
		t.Errorf("%v, %+v in\n%s", err, a, out)
	}
	if _, err := plan.ReadFile(file); err != nil {
		t.Error(err)
	}
	if _, out, _ = planCase(t, serialInit(), "--advice"); !strings.HasPrefix(out, "No change of the source that is known here would save a point beyond the plan") {
		t.Errorf("a program that a plan serves:\n%s", out)
	}
	for _, args := range [][]string{{"--format", "json"}, {"--advice", "--format", "xml"}, {"--shape", "nobody=3:8"}, {"--shape", "table"}} {
		if code, _, errs := planCase(t, table(), args...); code != exitUsage || !strings.Contains(errs, args[len(args)-2]) {
			t.Errorf("%v: exit status %d, %s", args, code, errs)
		}
	}
}

// What the code does with a thread number, and with data of the thread's own, decides
// whether its loops are permuted, as long as the file is the one that was profiled.
func TestPlanRefuses(t *testing.T) {
	const plain = `
	double u[4096], of[64];
	void back(void) {
	#pragma omp parallel for
		for (int i = 0; i < 4096; i++) u[4095 - i] *= 2;
	}
	int main(void) { back(); }`
	own := strings.Replace(strings.Replace(plain, "parallel for", "parallel\n{ of[omp_get_thread_num()] = 1;\n#pragma omp for", 1), "*= 2;", "*= 2; }", 1)
	private := strings.Replace(own, "of[64]", "of;\n#pragma omp threadprivate(of)\nint x[64]", 1)
	private = strings.Replace(private, "of[omp_get_thread_num()]", "of", 1)
	type built struct{ compiler, callee, runtime, schedule string }
	gcc := built{"gcc", "omp_get_thread_num", "libgomp", ""}
	clang := built{"clang", "__kmpc_for_static_init_4", "libomp", "static"}
	for _, c := range []struct {
		built
		name, source string
		edit         func(*ident.Module)
		want         string // reason why it stays static, empty if it does not
	}{
		{gcc, "bounds alone", plain, nil, ""},
		{gcc, "an index, too", "#include <omp.h>\n" + own, nil, "the thread number is used as an index of an array"},
		{gcc, "rebuilt", plain, func(m *ident.Module) { m.BuildID = "beef" }, "was rebuilt since the profile"},
		{gcc, "not known", plain, func(m *ident.Module) { m.BuildID = "" }, "nobody knows whether"},
		{gcc, "gone", plain, func(m *ident.Module) { m.Path += ".old" }, "cannot be read: "},
		{gcc, "threadprivate", private, nil, "each thread has its own copy of"},
		{clang, "clean, clang", plain, nil, ""},
		{clang, "an index, clang", "#include <omp.h>\n" + own, nil, "the program asks for the thread's number itself (omp_get_thread_num) at "},
		{clang, "threadprivate, clang", private, nil, "each thread has its own copy of"},
		{clang, "rebuilt, clang", plain, func(m *ident.Module) { m.BuildID = "beef" }, "was rebuilt since the profile"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, sites := compiledLoops(t, c.compiler, c.callee, c.source)
			if c.edit != nil {
				c.edit(&m)
			}
			p := twoWays(t)
			p.Modules = append(p.Modules, m)
			r := &p.Regions[profiletest.Back]
			r.Site.Module, r.Site.Offset, r.Runtime, r.Schedule = len(p.Modules)-1, sites[0], c.runtime, c.schedule
			w := &p.Regions[profiletest.Work]
			w.Schedule = "" // else it is permuted instead
			code, out, errs := planCase(t, p, "--explain")
			if code != 0 {
				t.Fatalf("exit status %d: %s", code, errs)
			}
			if strings.Contains(out, "loops:") != (c.want == "") || !strings.Contains(errs, c.want) {
				t.Errorf("want %q:\n%s%s", c.want, out, errs)
			}
		})
	}
}

// compiledLoops compiles source and returns the file, and where its calls of callee
// return to, by address.
func compiledLoops(t *testing.T, compiler, callee, source string) (m ident.Module, sites []uint64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app")
	cmd := exec.Command(compiler, "-O2", "-g", "-fopenmp", "-xc", "-", "-o", path)
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, after := range strings.Split(string(text), "<"+callee+"@plt>\n")[1:] {
		var site uint64
		if _, err := fmt.Sscanf(strings.TrimSpace(after), "%x:", &site); err != nil {
			t.Fatal(err)
		}
		sites = append(sites, site)
	}
	if len(sites) == 0 {
		t.Fatalf("%s calls no %s", compiler, callee)
	}
	return ident.Module{Path: path, BuildID: file.BuildID()}, sites
}

// TestPlanSchema holds a real plan against the schema that the command prints.
func TestPlanSchema(t *testing.T) {
	var schema, errs bytes.Buffer
	if code := run(context.Background(), &stdio{out: &schema, err: &errs}, []string{"plan", "--schema"}); code != 0 {
		t.Fatalf("exit status %d: %s", code, errs.String())
	}
	doc, err := jsonschema.UnmarshalJSON(&schema)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("plan.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("plan.json")
	if err != nil {
		t.Fatal(err)
	}
	_, out, _ := planCase(t, serialInit())
	js, err := yaml.YAMLToJSON([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(js))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
}

func TestPlanErrors(t *testing.T) {
	oneNode := profiletest.Draw(1, 2, "u heap: 0 9 9")
	for _, c := range []struct {
		name string
		p    *profile.Profile
		args []string
		code int
		want string
	}{
		{"one node", oneNode, nil, exitCannot, "one NUMA node"},
		{"unknown loop", serialInit(), []string{"--only", "nonsense"}, exitUsage, "nonsense"},
		{"min-gain", serialInit(), []string{"--min-gain", "-1"}, exitUsage, "not from 0 to 100"},
		{"a further profile that is none", serialInit(), []string{"another"}, exitUsage, "another"},
		{"schema of a profile", serialInit(), []string{"--schema"}, exitUsage, "takes no profile"},
	} {
		code, out, errs := planCase(t, c.p, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || out != "" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q", c.name, code, out, errs)
		}
	}
	path := filepath.Join(t.TempDir(), "cut.nprof")
	if err := os.WriteFile(path, []byte("numaopt-profile\n\x01"), 0o666); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if code := run(context.Background(), &stdio{out: new(bytes.Buffer), err: &errs}, []string{"plan", path}); code != exitUsage || !strings.Contains(errs.String(), path) {
		t.Errorf("a cut profile: exit status %d, %s", code, errs.String())
	}
}

// TestPlanAgain: a further profile of the same command is compared and recorded,
// the same one and one of another command are refused by name.
func TestPlanAgain(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again.nprof")
	for _, c := range []struct {
		change func(*profile.Run)
		code   int
		want   string
	}{
		{func(r *profile.Run) { r.Start = time.Unix(1e9, 0) }, 0, "66.6 % -> 0.1 % predicted"},
		{func(*profile.Run) {}, exitUsage, again + ": it is of the same run"},
		{func(r *profile.Run) { r.Command = []string{"./other"} }, exitUsage, again + ": it is of"},
	} {
		p := serialInit()
		c.change(&p.Run)
		if err := profile.WriteFile(again, p); err != nil {
			t.Fatal(err)
		}
		code, out, errs := planCase(t, serialInit(), again)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit status %d, stderr %q", c.want, code, errs)
		}
		if code != 0 {
			continue
		}
		_, sum, _ := profile.ReadFileSum(again)
		if got, err := plan.Read(strings.NewReader(out)); err != nil || len(got.From.Again) != 1 || got.From.Again[0] != sum {
			t.Errorf("%v, from %+v", err, got.From)
		}
	}
}

func TestPlanWarnsOfPlan(t *testing.T) {
	p := serialInit()
	p.Run.Plan = "old.plan.yaml"
	if code, _, errs := planCase(t, p); code != 0 || !strings.Contains(errs, "warning: the profile was taken with the plan old.plan.yaml in force") {
		t.Errorf("exit status %d, stderr %q", code, errs)
	}
}

func TestQuote(t *testing.T) {
	if got, want := quote([]string{"./a", "b c", "", "it's", "x=1"}), `./a 'b c' '' 'it'\''s' x=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Shares are of what the figures of an object are counted in: a plan's schedules may
// add accesses.
func TestExplainShares(t *testing.T) {
	var b strings.Builder
	explainObjects(&b, &planner.Result{Plan: &plan.Plan{}, Before: planner.Split{Known: 100}, After: planner.Split{Known: 160},
		Decisions: []planner.Decision{{Name: "a", Seen: 100, Profiled: 50, Accesses: 160, After: 40, Best: 40}}})
	if got := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(got, "100.0 % 50.0 % 25.0 % 25.0 %") {
		t.Errorf("%s", b.String())
	}
}

// Files are read once, however many modules have loops, and one that cannot be read is
// named.
func TestCodeSet(t *testing.T) {
	text, err := os.ReadFile(programs.Build(t, "sor", "gcc"))
	if err != nil {
		t.Fatal(err)
	}
	app, broken := filepath.Join(t.TempDir(), "app"), filepath.Join(t.TempDir(), "libbroken.so")
	for path, text := range map[string][]byte{app: text, broken: text[:100]} {
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set := newCodeSet()
	if err := set.judge(app, []string{app, broken}, 0); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("%v does not name %s", err, broken)
	}
	if err := os.Remove(app); err != nil {
		t.Fatal(err)
	}
	if m, err := set.file(app); err != nil || set.still(&ident.Module{Path: app, BuildID: m.BuildID()}) != nil {
		t.Errorf("read again: %v", err)
	}
}
