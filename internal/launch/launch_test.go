package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// build compiles the two sources of testdata, edited, to a program called name.
func build(t *testing.T, dir, name, compiler string, edit ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/grid.c")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "grid.c")
	edited := strings.NewReplacer(edit...).Replace(string(text))
	if len(edit) > 0 && edited == string(text) {
		t.Fatalf("the edit %q changes nothing", edit)
	}
	if err := os.WriteFile(source, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	halo, err := filepath.Abs("testdata/halo.c")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(compiler)
	out := filepath.Join(dir, name)
	cmd := exec.Command(words[0], append(words[1:], source, halo, "-o", out)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

// call is a call of malloc in a program: its return address and its places.
type call struct {
	ra     uint64
	places string // "init:17 < main:26"
	frames []plan.Frame
}

// mallocs returns the calls of malloc as a profile's call stacks would have them,
// with the frame of main where that is another one.
func mallocs(t *testing.T, path string) []call {
	t.Helper()
	m, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []call
	for _, ra := range returns(t, path, "<malloc@plt>") {
		f := frame(m, ra)
		callers := [][]plan.Frame{{f}}
		if fn, _ := m.FunctionAt(ra - 1); fn.Symbol != "main" {
			callers = nil
			for _, up := range returns(t, path, "<"+fn.Symbol+">") {
				callers = append(callers, []plan.Frame{f, frame(m, up)})
			}
		}
		for _, frames := range callers {
			var places []string
			for _, f := range frames {
				places = append(places, fmt.Sprintf("%s:%d", f.Function, f.Line))
				for _, p := range f.InlinedAt {
					places = append(places, fmt.Sprintf("%s:%d", p.Function, p.Line))
				}
			}
			out = append(out, call{ra, strings.Join(places, " < "), frames})
		}
	}
	return out
}

// frame is what the planner writes of a return address.
func frame(m *symbol.Module, ra uint64) plan.Frame {
	c := m.ReturnSite(ra)
	f := plan.Frame{Module: plan.Module{Name: filepath.Base(m.Path()), BuildID: m.BuildID()}, Offset: ra, Function: c.Symbol}
	for i, l := range c.Inlined {
		if i == 0 {
			f.Function, f.File, f.Line, f.FunctionLine = l.Function, l.File, l.Line, l.FunctionLine
		} else {
			f.InlinedAt = append(f.InlinedAt, plan.Place{Function: l.Function, File: l.File, Line: l.Line, FunctionLine: l.FunctionLine})
		}
	}
	return f
}

// returns lists the return addresses of calls of a target, as objdump sees them.
func returns(t *testing.T, path, target string) []uint64 {
	t.Helper()
	text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	lines := strings.Split(string(text), "\n")
	for i, l := range lines[:len(lines)-1] {
		if strings.Contains(l, "call ") && strings.Contains(l, target) {
			var ra uint64
			if _, err := fmt.Sscanf(strings.TrimSpace(lines[i+1]), "%x:", &ra); err == nil {
				out = append(out, ra)
			}
		}
	}
	return out
}

// heapPlan places each allocation of a program.
func heapPlan(t *testing.T, path string) *plan.Plan {
	t.Helper()
	p := &plan.Plan{Version: plan.Version, From: plan.From{Command: []string{path}, Topology: "4x2", Nodes: 4}, Threads: plan.Threads{Bind: "compact"}}
	for _, c := range mallocs(t, path) {
		p.Objects = append(p.Objects, plan.Entry{Name: c.places, Kind: "heap", Bytes: 1 << 20, Stack: c.frames,
			Place: plan.Distribution{Policy: plan.XWise}})
	}
	if len(p.Objects) != 4 {
		t.Fatalf("%d allocations in %s: %+v", len(p.Objects), path, p.Objects)
	}
	return p
}

// options is a run of a program on four nodes.
func options(t *testing.T, topology string, command ...string) Options {
	t.Helper()
	m, err := topo.Parse(topology)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Command: command, Environ: []string{"PATH=" + os.Getenv("PATH")}, Topology: m, System: runfile.Linux, Mode: runfile.Apply}
}

// resolve is Resolve for tests.
func resolve(t *testing.T, p *plan.Plan, opt Options) *Result {
	t.Helper()
	res, err := Resolve(p, new(symbol.Table), opt)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// matched names the allocations of a program that the objects of a run match, as
// "plan's name = program's places".
func matched(t *testing.T, res *Result, path string) string {
	t.Helper()
	var out []string
	for _, o := range res.Run.Objects {
		for _, c := range mallocs(t, path) {
			ok := len(c.frames) == len(o.Frames)
			for k := 0; ok && k < len(o.Frames); k++ {
				ok = within(o.Frames[k], c.frames[k].Offset)
			}
			if ok {
				out = append(out, o.Name+" = "+c.places)
			}
		}
	}
	return strings.Join(out, "\n")
}

func within(spans []runfile.Span, ra uint64) bool {
	for _, s := range spans {
		if s.Lo <= ra-1 && ra-1 < s.Hi {
			return true
		}
	}
	return false
}

func text(warnings []error) string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Error())
	}
	return strings.Join(out, "\n")
}

func TestResolveHeap(t *testing.T) {
	const above, inside = "static double *new_grid", "    *u = malloc"
	for _, c := range []struct {
		name, before, after string
		edit                []string
		want                string // matches; "same" is each with its own
		left                string // part of a warning
	}{
		{name: "same program", before: "gcc -g -O2 -fopenmp", want: "same"},
		{name: "rebuilt with an edit above", before: "gcc -g -O0 -fopenmp", after: "gcc -g -O0 -fopenmp", edit: []string{above, "int x;\n\n" + above}, want: "moved"},
		{name: "edit above, optimised", before: "gcc -g -O2 -fopenmp", after: "gcc -g -O2 -fopenmp", edit: []string{above, "int x;\n\n" + above}, want: "moved"},
		{name: "optimised later", before: "gcc -g -O0 -fopenmp", after: "gcc -g -O2 -fopenmp", want: "same places"},
		{name: "optimised before", before: "gcc -g -O2 -fopenmp", after: "gcc -g -O0 -fopenmp", want: "same places"},
		{name: "other compiler", before: "gcc -g -O2 -fopenmp", after: "clang -g -O2 -fopenmp", want: "same places"},
		{name: "no build id", before: "gcc -g -O2 -fopenmp -Wl,--build-id=none", after: "gcc -g -O2 -fopenmp -Wl,--build-id=none", edit: []string{above, "int x;\n" + above}, want: "moved"},
		{name: "neither build id nor lines, same program", before: "gcc -O2 -fopenmp -Wl,--build-id=none", want: "same"},
		{name: "neither build id nor lines, rebuilt", before: "gcc -O2 -fopenmp -Wl,--build-id=none", after: "gcc -O2 -fopenmp -Wl,--build-id=none",
			edit: []string{inside, "    printf(\"x\"); *u = malloc"}, left: "was rebuilt"},
		{name: "function renamed", before: "gcc -g -O0 -fopenmp", after: "gcc -g -O0 -fopenmp", edit: []string{"init(", "setup("},
			left: "init:17 < main:26 is not placed"},
		{name: "no debug information", before: "gcc -g -O0 -fopenmp", after: "gcc -O0 -fopenmp", want: "", left: "so build it with -g"},
		{name: "two calls on a line", before: "gcc -g -O0 -fopenmp", after: "gcc -g -O0 -fopenmp", edit: []string{above, "int x;\n" + above},
			want: "moved", left: "new_grid:12 < main:27 is not placed: in the rebuilt program it cannot be told from another"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.before != "gcc -g -O0 -fopenmp" {
				t.Skip("compiles two programs")
			}
			old := build(t, t.TempDir(), "app", c.before)
			p, now := heapPlan(t, old), old
			if c.after != "" {
				now = build(t, t.TempDir(), "app", c.after, c.edit...) // old is still there
			}
			res := resolve(t, p, options(t, "4x2", now))
			got := matched(t, res, now)
			if c.left != "" && !strings.Contains(text(res.Warnings), c.left) {
				t.Errorf("no %q in the warnings:\n%s", c.left, text(res.Warnings))
			}
			if c.want == "" {
				return
			}
			checkMatches(t, c.want, got, p)
			if c.left == "" && len(res.Warnings) > 0 && !strings.Contains(text(res.Warnings), "same line") {
				t.Errorf("warnings: %s", text(res.Warnings))
			}
		})
	}
}

// checkMatches compares matches with what was wanted: "same" for the plan's own
// addresses, "moved" and "same places" for allocations of one function.
func checkMatches(t *testing.T, want, got string, p *plan.Plan) {
	t.Helper()
	for _, o := range p.Objects {
		switch {
		case want == "same" && !strings.Contains(got, o.Name+" = "+o.Name),
			want == "same places" && strings.HasPrefix(o.Name, "init") && !strings.Contains(got, o.Name+" = "+o.Name):
			t.Errorf("%s is not found:\n%s", o.Name, got)
		case want == "moved" && strings.HasPrefix(o.Name, "init"):
			if n := strings.Count(got, o.Name+" = init:"); n != 1 {
				t.Errorf("%s matches %d times:\n%s", o.Name, n, got)
			}
		}
	}
	if want != "same" && want != "same places" && want != "moved" && got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestResolveGlobal(t *testing.T) {
	dir := t.TempDir()
	app := build(t, dir, "app", "gcc -g -O1 -fopenmp")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	find := func(symbol, file string) uint64 {
		for _, v := range m.Variables() {
			if v.Symbol == symbol && strings.HasSuffix(v.File, file) {
				return v.VAddr
			}
		}
		t.Fatalf("no %s of %s", symbol, file)
		return 0
	}
	for _, c := range []struct {
		symbol, file, buildID string
		want                  uint64 // 0 is not found
		left                  string
	}{
		{"table", "/old/grid.c", m.BuildID(), find("table", "grid.c"), ""},
		{"table", "/old/grid.c", "00", find("table", "grid.c"), ""},
		{"halo", "/old/grid.c", m.BuildID(), find("halo", "grid.c"), ""},
		{"halo", "/old/halo.c", "00", find("halo", "halo.c"), ""},
		{"halo", "", "00", 0, "has 2 symbols halo"},
		{"halo", "/old/other.c", "00", 0, "of another source file than other.c"},
		{"nothing", "/old/grid.c", "00", 0, "has no symbol nothing"},
	} {
		p := &plan.Plan{From: plan.From{Command: []string{"app"}, Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
			Objects: []plan.Entry{{Name: c.symbol + " of " + c.file, Kind: "global", Bytes: 100, Symbol: c.symbol, File: c.file,
				Module: plan.Module{Name: "app", BuildID: c.buildID}, Place: plan.Distribution{Policy: plan.XWise}}}}
		res := resolve(t, p, options(t, "4x2", app))
		switch {
		case c.want == 0 && (res.Placed != 0 || res.Left != 1 || !strings.Contains(text(res.Warnings), c.left)):
			t.Errorf("%s of %s: %+v, %s", c.symbol, c.file, res.Run.Objects, text(res.Warnings))
		case c.want != 0 && (res.Placed != 1 || res.Run.Objects[0].Symbol.VAddr != c.want || res.Run.Objects[0].Symbol.Bytes < units.PageSize):
			t.Errorf("%s of %s: %+v, %s", c.symbol, c.file, res.Run.Objects, text(res.Warnings))
		}
	}
}

// A member of a COMMON block is placed alone.
func TestResolveMember(t *testing.T) {
	dir := t.TempDir()
	app, source := filepath.Join(dir, "app"), filepath.Join(dir, "app.f90")
	text := "program p\n real(8) :: u(1000), w(2000)\n common /flds/ u, w\n u = 1\n w = 2\n print *, sum(u) + sum(w)\nend\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gfortran", "-g", "-fopenmp", source, "-o", app).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{From: plan.From{Command: []string{"app"}, Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
		Objects: []plan.Entry{{Name: "w in /flds/", Kind: "global", Bytes: 16000, Symbol: "flds_(w)", File: source,
			Module: plan.Module{Name: "app", BuildID: m.BuildID()}, Place: plan.Distribution{Policy: plan.XWise}}}}
	res, block := resolve(t, p, options(t, "4x2", app)), m.Objects("flds_")
	if res.Placed != 1 || len(block) != 1 || res.Run.Objects[0].Symbol.VAddr != block[0].VAddr+8000 || res.Run.Objects[0].Symbol.Bytes != 16000 {
		t.Errorf("%+v, %v", res.Run.Objects, res.Warnings)
	}
}

func TestResolveThroughWrapper(t *testing.T) {
	dir := t.TempDir()
	app := build(t, dir, "app", "gcc -g -O1 -fopenmp")
	script := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nset -e\nexec ./app \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{From: plan.From{Command: []string{"./app"}, Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
		Objects: []plan.Entry{{Name: "table", Kind: "global", Bytes: 100, Symbol: "table",
			Module: plan.Module{Name: "app", BuildID: "00"}, Place: plan.Distribution{Policy: plan.XWise}}}}
	for _, command := range [][]string{{app}, {"env", "A=1", app}, {script}, {"sh", script}} {
		if res := resolve(t, p, options(t, "4x2", command...)); res.Placed != 1 {
			t.Errorf("%s: %s", command, text(res.Warnings))
		}
	}
}

// A plan for another program is refused once, not object by object; for what may
// be the plan's program, each object that is left out is named with its reason.
func TestOtherProgram(t *testing.T) {
	app := build(t, t.TempDir(), "app", "gcc -g -O0 -fopenmp")
	same, other := empty(t, "app"), empty(t, "other")
	const alone, wrapped = "app", "env"
	list := []string{
		"new_grid:12 < main:27 is not placed: " + same + " was rebuilt", "new_grid:12 < main:27 is not placed: ",
		"init:17 < main:26 is not placed: ", "init:18 < main:26 is not placed: ", "table in grid.c is not placed: app has no symbol table"}
	one := list[4:]
	notOne := "its one object is not placed (table in grid.c is not placed: other has no symbol table); profile this one"
	for _, c := range []struct {
		name    string
		from    string // the plan's command
		change  func(*plan.Plan)
		command []string
		want    []string // the warnings' beginnings; after both names where there is a claim
		claim   string   // what the plan is said to be for and this to be
	}{
		{"same name", alone, globalOnly, []string{same}, one, ""},
		{"same name, heap", alone, nil, []string{same}, list, ""},
		{"same name, no build id", alone, noBuildID, []string{same}, one, ""},
		{"wrapped, rebuilt", wrapped, nil, []string{"env", same}, list, ""},
		{"wrapped, then started itself", wrapped, nil, []string{same}, list, ""},
		{"other name", alone, globalOnly, []string{other}, []string{notOne}, described(t, other)},
		{"wrapped, other name", wrapped, globalOnly, []string{"env", other},
			[]string{"its one object is not placed (table in grid.c is not placed: app is not among the program and its libraries); profile this one"},
			described(t, "env") + ", which may start " + described(t, other)},
		{"no build id, other name", alone, noBuildID, []string{other}, []string{notOne}, described(t, other)},
		{"may start it", alone, nil, []string{other}, []string{"nothing of it is in force here; where this one starts that one, 4 of its 5 objects are placed"}, described(t, other)},
		{"may start it, two alike", alone, func(p *plan.Plan) { p.Objects[1].Stack = p.Objects[0].Stack }, []string{other},
			[]string{"nothing of it is in force here; where this one starts that one, 2 of its 5 objects are placed", "new_grid:12 < main:27 is not placed: ", "new_grid:12 < main:27 is not placed: "},
			described(t, other)},
		{"may start it, one", alone, func(p *plan.Plan) { p.Objects = p.Objects[:1] }, []string{other},
			[]string{"nothing of it is in force here; where this one starts that one, its one object is placed"}, described(t, other)},
	} {
		p := heapPlan(t, app)
		p.From.Command = []string{c.from, app}
		p.Objects = append(p.Objects, plan.Entry{Name: "table in grid.c", Kind: "global", Bytes: 1 << 19, Symbol: "table",
			Module: p.Objects[0].Stack[0].Module, Place: plan.Distribution{Policy: plan.XWise}})
		if c.change != nil {
			c.change(p)
		}
		res := resolve(t, p, options(t, "4x2", c.command...))
		if c.claim != "" {
			m := p.Objects[0].Module
			if len(p.Objects[0].Stack) > 0 {
				m = p.Objects[0].Stack[0].Module
			}
			c.want[0] = fmt.Sprintf("this plan is for %s, and this is %s: %s", named(m.Name, m.BuildID), c.claim, c.want[0])
		}
		if !begin(res.Warnings, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, text(res.Warnings), strings.Join(c.want, "\n"))
		}
	}
}

// globalOnly leaves the plan of TestOtherProgram its global.
func globalOnly(p *plan.Plan) { p.Objects = p.Objects[4:] }

// noBuildID is globalOnly of a program without a build id.
func noBuildID(p *plan.Plan) {
	globalOnly(p)
	p.Objects[0].Module.BuildID = ""
}

// empty compiles a program that does nothing.
func empty(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("gcc", "-xc", "-", "-o", path)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return path
}

// described is a program with its build id, as a warning has it.
func described(t *testing.T, path string) string {
	t.Helper()
	p, err := symbol.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := symbol.Open(p.ELF)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s (build id %.16s)", p.ELF, m.BuildID())
}

// begin reports whether there are as many warnings as texts, each beginning with its own.
func begin(warnings []error, texts []string) bool {
	return slices.EqualFunc(warnings, texts, func(w error, text string) bool { return strings.HasPrefix(w.Error(), text) })
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		placed, of int
		want       string
	}{
		{0, 1, "its one object is not placed"}, {1, 1, "its one object is placed"}, {0, 2, "none of its 2 objects is placed"},
		{1, 2, "one of its 2 objects is placed"}, {2, 3, "2 of its 3 objects are placed"},
	} {
		if got := share(c.placed, c.of, "object", "placed"); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.placed, c.of, got, c.want)
		}
	}
}

// The program is told from libraries by its name alone.
func TestProgram(t *testing.T) {
	library, app, planned := plan.Module{Name: "libmine.so.1"}, plan.Module{Name: "my.solver"}, plan.Module{Name: "run"}
	heap := func(modules ...plan.Module) (e plan.Entry) {
		for _, m := range modules {
			e.Stack = append(e.Stack, plan.Frame{Module: m})
		}
		return e
	}
	for _, c := range []struct {
		objects []plan.Entry
		loops   []plan.Loop
		want    plan.Module
	}{
		{nil, []plan.Loop{{Module: library}, {Module: app}}, app},
		{[]plan.Entry{heap(library, app)}, nil, app},
		{[]plan.Entry{{Module: library}, {Module: app}}, nil, app},
		{[]plan.Entry{heap(app), heap(library, planned)}, nil, planned},
		{[]plan.Entry{heap(library)}, nil, planned},
	} {
		r := &resolver{plan: &plan.Plan{Objects: c.objects, Loops: c.loops}, files: &files{planned: "run"}}
		if got := r.program(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.objects, got.Name, c.want.Name)
		}
	}
}

func TestUnknownModuleByBuildID(t *testing.T) {
	p := &plan.Plan{From: plan.From{Command: []string{"python3"}, Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
		Objects: []plan.Entry{
			{Name: "loaded later", Kind: "heap", Bytes: 1 << 20, Place: plan.Distribution{Policy: plan.Bind, Node: 3},
				Stack: []plan.Frame{{Module: plan.Module{Name: "numpy.so", BuildID: "abcd"}, Offset: 0x1234}}},
			{Name: "nobody knows", Kind: "heap", Bytes: 1 << 20, Place: plan.Distribution{Policy: plan.Bind, Node: 3},
				Stack: []plan.Frame{{Module: plan.Module{Name: "other.so"}, Offset: 0x1234}}},
		}}
	res := resolve(t, p, options(t, "4x2", "sh"))
	if res.Placed != 1 || res.Left != 1 || !strings.Contains(text(res.Warnings), "nobody knows is not placed") {
		t.Fatalf("%d placed, %d left\n%s", res.Placed, res.Left, text(res.Warnings))
	}
	want := runfile.Span{Module: 0, Lo: 0x1233, Hi: 0x1234}
	if got := res.Run.Objects[0].Frames[0][0]; got != want || res.Run.Modules[0] != (runfile.Module{BuildID: "abcd", Path: "numpy.so"}) {
		t.Errorf("%+v in %+v", got, res.Run.Modules)
	}
}

func TestAmbiguous(t *testing.T) {
	entry := func(name string, in *plan.Instance) plan.Entry {
		return plan.Entry{Name: name, Kind: "heap", Bytes: 1 << 20, Instance: in, Place: plan.Distribution{Policy: plan.XWise},
			Stack: []plan.Frame{{Module: plan.Module{Name: "a.so", BuildID: "abcd"}, Offset: 0x10}}}
	}
	for _, c := range []struct {
		name   string
		a, b   *plan.Instance
		placed int
	}{
		{"every one twice", nil, nil, 0},
		{"one within every one", nil, &plan.Instance{Rank: 0, First: 1, Count: 1}, 0},
		{"one after the other", &plan.Instance{Rank: 0, First: 0, Count: 4}, &plan.Instance{Rank: 0, First: 4, Count: 1}, 2},
		{"overlapping", &plan.Instance{Rank: 0, First: 0, Count: 4}, &plan.Instance{Rank: 0, First: 3, Count: 9}, 0},
		{"other ranks", &plan.Instance{Rank: 0, First: 0, Count: 4}, &plan.Instance{Rank: 1, First: 0, Count: 4}, 2},
	} {
		p := &plan.Plan{From: plan.From{Nodes: 4}, Threads: plan.Threads{Bind: "compact"}, Objects: []plan.Entry{entry("a", c.a), entry("b", c.b)}}
		if res := resolve(t, p, options(t, "4x2", "sh")); res.Placed != c.placed || res.Left != 2-c.placed {
			t.Errorf("%s: %d placed, want %d\n%s", c.name, res.Placed, c.placed, text(res.Warnings))
		}
	}
}

// TestOverlap: spans of a rebuilt program overlap without being equal, and one
// stack may be the beginning of another.
func TestOverlap(t *testing.T) {
	at := func(lo ...uint64) (frames [][]runfile.Span) {
		for _, l := range lo {
			alone := runfile.Span{Module: 0, Lo: l, Hi: l + 1} // an alternative that overlaps nothing but its equal
			frames = append(frames, []runfile.Span{alone, {Module: 1, Lo: l, Hi: l + 0x10}})
		}
		return frames
	}
	other := [][]runfile.Span{{{Module: 2, Lo: 0x100, Hi: 0x110}}}
	for _, c := range []struct {
		name string
		a, b [][]runfile.Span
		want bool
	}{
		{"equal", at(0x100), at(0x100), true},
		{"partly", at(0x100, 0x200), at(0x10f, 0x1f1), true},
		{"side by side", at(0x100), at(0x110), false},
		{"other callers", at(0x100, 0x200), at(0x100, 0x300), false},
		{"the beginning of another", at(0x100), at(0x100, 0x300), true},
		{"another file", at(0x100), other, false},
	} {
		if got := overlap(c.a, c.b); got != c.want || overlap(c.b, c.a) != got {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		r := &resolver{res: new(Result), plan: &plan.Plan{Objects: []plan.Entry{{Name: "a"}, {Name: "b"}}}}
		r.res.Run.Objects = []runfile.Object{{ID: 0, Kind: runfile.Heap, Rank: -1, Frames: c.a}, {ID: 1, Kind: runfile.Heap, Rank: -1, Frames: c.b}}
		if r.dropAmbiguous(); (r.res.Left == 2) != c.want {
			t.Errorf("%s: %d objects left out", c.name, r.res.Left)
		}
	}
}

func TestRegionsOf(t *testing.T) {
	app := build(t, t.TempDir(), "app", "gcc -g -O1 -fopenmp")
	m, err := symbol.Open(app)
	if err != nil {
		t.Fatal(err)
	}
	want := m.OutlinedLoops()[0].Lo
	for _, name := range []string{"main", "main._omp_fn.0", "grid.c:29", "grid.c:29 (main)"} {
		got, err := RegionsOf([]string{app}, os.Environ(), []string{name}, new(symbol.Table))
		if err != nil || len(got) != 1 || got[0].Offset != want || got[0].Path != app {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := RegionsOf([]string{app}, os.Environ(), []string{"main", "sweep"}, new(symbol.Table)); err == nil || !strings.Contains(err.Error(), `"sweep": there are grid.c:29 (main)`) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := RegionsOf([]string{"sh"}, os.Environ(), []string{"main"}, new(symbol.Table)); err == nil || !strings.Contains(err.Error(), "no OpenMP regions") {
		t.Errorf("a program without loops: %v", err)
	}
}

// Case means nothing in names of Fortran, but in those of files.
func TestMatchesLoop(t *testing.T) {
	for _, c := range []struct {
		file, name string
		want       bool
	}{
		{"/src/a.f90", "X_SWEEP", true},
		{"/src/a.f90", "Flow::x_sweep", true},
		{"/src/a.f90", "sweep", false},
		{"/src/a.f90", "a.f90:7", true},
		{"/src/a.F90", "a.f90:7", false},
		{"/src/a.c", "X_SWEEP", false},
		{"/src/a.c", "x_sweep", true},
	} {
		l := symbol.Loop{Symbol: "__flow_MOD_x_sweep._omp_fn.0", Function: "flow::x_sweep", File: c.file, Line: 7}
		if got := matchesLoop(l, c.name); got != c.want {
			t.Errorf("%s in %s: %v", c.name, c.file, got)
		}
	}
}
