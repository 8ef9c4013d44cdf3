package launch

import (
	"cmp"
	"errors"
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
)

// sweep compiles testdata/sweep.c, edited, to a program called app.
func sweep(t *testing.T, compiler string, edit ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/sweep.c")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	edited := strings.NewReplacer(edit...).Replace(string(text))
	if len(edit) > 0 && edited == string(text) {
		t.Fatalf("the edit %q changes nothing", edit)
	}
	source, out := filepath.Join(dir, "sweep.c"), filepath.Join(dir, "app")
	if err := os.WriteFile(source, []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(compiler)
	cmd := exec.Command(words[0], append(words[1:], source, "-o", out)...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

// boundsCalls is the return addresses of a program's calls that fetch loops' bounds,
// as objdump sees them; those through the GOT it does not name.
func boundsCalls(t *testing.T, path string) []uint64 {
	t.Helper()
	var all []uint64
	for _, names := range boundsFunctions {
		for _, n := range names {
			all = append(all, returns(t, path, "<"+n+"@plt>")...)
		}
	}
	slices.Sort(all)
	return all
}

func TestCallsOf(t *testing.T) {
	for _, c := range []struct {
		compiler string
		runtime  string
		calls    int
		plt      bool // objdump can tell
	}{
		{"gcc -g -O2 -fopenmp", "libgomp", 2, true},
		{"gcc -g -O0 -fopenmp -no-pie", "libgomp", 3, true},
		{"gcc -g -O2 -fopenmp -fno-plt", "libgomp", 2, false},
		{"gcc -g -O2 -fopenmp -fcf-protection=full -Wl,-z,ibtplt", "libgomp", 2, true},
		{"clang -g -O2 -fopenmp", "libomp", 3, true},
		{"clang -g -O0 -fopenmp", "libomp", 3, true},
		{"gcc -g -O2", "libgomp", 0, true},
	} {
		app := sweep(t, c.compiler)
		got, err := callsOf(app, boundsFunctions[c.runtime])
		if err != nil || len(got.returns) != c.calls {
			t.Errorf("%s: %x, %v; want %d calls", c.compiler, got.returns, err, c.calls)
		}
		if want := boundsCalls(t, app); c.plt && !slices.Equal(got.returns, want) {
			t.Errorf("%s: %x, objdump has %x", c.compiler, got.returns, want)
		}
	}
	if _, err := callsOf("testdata/sweep.c", nil); err == nil {
		t.Error("a source file is an ELF file")
	}
}

// loopPlan reverses each loop of a program; those of one function are a group.
func loopPlan(t *testing.T, path, runtime string) *plan.Plan {
	t.Helper()
	m, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Version: plan.Version, From: plan.From{Command: []string{path}, Topology: "4x2", Nodes: 4}, Threads: plan.Threads{Bind: "compact"}}
	for _, ra := range boundsCalls(t, path) {
		f := frame(m, ra)
		l := plan.Loop{Name: fmt.Sprintf("%s:%d", f.Function, f.Line), Module: f.Module, Offset: ra, Runtime: runtime, Schedule: plan.StaticInverse,
			Function: f.Function, File: f.File, Line: f.Line, FunctionLine: f.FunctionLine}
		if f.Function == "down" {
			l.Group = 1
		}
		p.Loops = append(p.Loops, l)
	}
	return p
}

func TestResolveLoops(t *testing.T) {
	const above, more = "void up(", "/* more */"
	for _, c := range []struct {
		name, before, after, runtime string
		edit                         []string
		want                         string // functions of the loops that are found
		left                         string // part of the warnings
	}{
		{name: "same program", before: "gcc -g -O2 -fopenmp", runtime: "libgomp", want: "down up"},
		{name: "same program, refused", before: "gcc -g -O2 -fopenmp", runtime: "libgomp", want: "up", left: "the thread number is stored"},
		{name: "same program, stripped later", before: "gcc -g -O2 -fopenmp", runtime: "libgomp", after: "strip", want: "down up"},
		{name: "same program, clang", before: "clang -g -O2 -fopenmp", runtime: "libomp", want: "down down up"},
		{name: "an edit above, clang", before: "clang -g -O2 -fopenmp", runtime: "libomp", edit: []string{above, "int x;\n\n" + above}, want: "down down up"},
		{name: "an edit above, clang, refused", before: "clang -g -O2 -fopenmp", runtime: "libomp", edit: []string{above, "int x;\n\n" + above}, want: "up", left: "the thread number is stored"},
		{name: "other optimisation, clang", before: "clang -g -O2 -fopenmp", runtime: "libomp", after: "clang -g -O0 -fopenmp", want: "down down up"},
		{name: "an edit above, gcc", before: "gcc -g -O2 -fopenmp", runtime: "libgomp", edit: []string{above, "int x;\n\n" + above}, want: "up", left: "the thread number is stored"},
		{name: "one group", before: "gcc -g -O2 -fopenmp", runtime: "libgomp", edit: []string{above, "int x;\n\n" + above},
			left: "it must be scheduled as down:"},
		{name: "a loop of a group moved", before: "clang -g -O2 -fopenmp", runtime: "libomp", edit: []string{more, more + "\n\n"}, want: "up",
			left: "has 0 loops at sweep.c:24 (down)"},
		{name: "a new loop beside", before: "clang -g -O2 -fopenmp", runtime: "libomp",
			edit: []string{more, "\n#pragma omp for\nfor (int i = 1; i < n; i++) u[i] -= 1;", "        #pragma omp for\n        for (int i = n - 1; i > 0; i--)\n            u[i] += 2;", "#line 25\n        #pragma omp for\n        for (int i = n - 1; i > 0; i--)\n            u[i] += 2;"},
			want: "up", left: "has a loop beside it that the plan does not know"},
		{name: "renamed", before: "clang -g -O2 -fopenmp", runtime: "libomp", edit: []string{above, "void upwards(", "    up(", "    upwards("}, want: "down down",
			left: "has 0 loops at sweep.c:11 (up)"},
		{name: "no lines", before: "clang -g -O2 -fopenmp", after: "clang -O2 -fopenmp", runtime: "libomp", left: "build it with -g"},
		{name: "other compiler", before: "clang -g -O2 -fopenmp", after: "gcc -g -O2 -fopenmp", runtime: "libomp", left: "build it with clang or flang and -fopenmp"},
		{name: "no OpenMP", before: "gcc -g -O2 -fopenmp", after: "gcc -g -O2", runtime: "libgomp", left: "calls no omp_get_thread_num"},
		{name: "static libgomp", before: "gcc -g -O2 -fopenmp", after: "gcc -g -O2 -fopenmp -static-libgcc -Wl,-Bstatic -lgomp -Wl,-Bdynamic", runtime: "libgomp",
			left: "has omp_get_thread_num in itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if testing.Short() && c.after != "" {
				t.Skip("compiles two programs")
			}
			now := sweep(t, c.before)
			p := loopPlan(t, now, c.runtime)
			switch {
			case c.after == "strip":
				if text, err := exec.Command("strip", now).CombinedOutput(); err != nil {
					t.Fatal(err, string(text))
				}
			case c.name == "static libgomp":
				now = staticGomp(t)
			case c.after != "" || len(c.edit) > 0:
				now = sweep(t, cmp.Or(c.after, c.before), c.edit...)
			}
			for i := range p.Loops {
				if c.name == "one group" {
					p.Loops[i].Group = 2
				}
			}
			opt := options(t, "4x2", now)
			opt.Permutable = func(_ string, _ []string, ra uint64) error {
				if m, _ := symbol.Open(now); m.ReturnSite(ra).Inlined[0].Function == "down" && (c.runtime == "libgomp" && len(c.edit) > 0 || strings.Contains(c.name, "refused")) {
					return errors.New("the thread number is stored")
				}
				return nil
			}
			res := resolve(t, p, opt)
			checkLoops(t, res, p, now, c.want)
			if c.left != "" && !strings.Contains(text(res.Warnings), c.left) || c.left == "" && len(res.Warnings) > 0 {
				t.Errorf("warnings, wanted %q:\n%s", c.left, text(res.Warnings))
			}
		})
	}
}

// staticGomp is a program with an omp_get_thread_num of its own, as libgomp.a gives
// it one.
func staticGomp(t *testing.T) string {
	return sweep(t, "gcc -g -O2", "int main", "__attribute__((noinline)) int omp_get_thread_num(void) { return 0; }\nint main")
}

// checkLoops holds the loops of a run against the functions of their calls in the
// program.
func checkLoops(t *testing.T, res *Result, p *plan.Plan, path, want string) {
	t.Helper()
	m, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, l := range res.Run.Loops {
		if !slices.Contains(boundsCalls(t, path), l.Offset) || res.Run.Modules[l.Module].Path != path {
			t.Errorf("%s: %#x of %v is no call of the program", l.Name, l.Offset, res.Run.Modules[l.Module])
		}
		name, _, _ := strings.Cut(l.Name, ":")
		if at := m.ReturnSite(l.Offset).Inlined; len(at) > 0 && at[0].Function != name {
			t.Errorf("%s was found in %s", l.Name, at[0].Function)
		}
		found = append(found, name)
	}
	slices.Sort(found)
	if got := strings.Join(found, " "); got != want {
		t.Errorf("found %q, want %q\n%s", got, want, text(res.Warnings))
	}
	if res.Placed != len(found) || res.Placed+res.Left != len(p.Loops) && len(found) > 0 {
		t.Errorf("%d placed, %d left of %d", res.Placed, res.Left, len(p.Loops))
	}
}

func TestSchedulesOnOtherMachines(t *testing.T) {
	loop := func(name string, s plan.Schedule, nodes ...int) plan.Loop {
		return plan.Loop{Name: name, Module: plan.Module{Name: "a.so", BuildID: "abcd"}, Offset: 0x10 + uint64(len(name)), Runtime: "libomp", Schedule: s, Nodes: nodes}
	}
	for _, c := range []struct {
		topology, bind string
		want           string
		left           string
	}{
		{"4x2", "", "a inverse; bcd nodes [1 2 3 0]; ef block-exclusive [0 3 2 1] sweep 62 step 1; ghij affine", ""},
		{"2x4", "", "a inverse; ghij affine", "loop ef keeps OpenMP's schedule: its schedule is made for 4 nodes, and there are 2: profile the program on this many"},
		{"4x2", "spread", "a inverse; ghij affine", `threads that fill one node after the other, and they are bound "spread": use --bind compact`},
		{"4x2", "none", "a inverse", "affine chunks take threads that stay on their nodes, and they are not bound: use --bind compact"},
		{"1x4", "", "", "one NUMA node"},
	} {
		p := &plan.Plan{From: plan.From{Nodes: 4}, Threads: plan.Threads{Bind: "compact"},
			Loops: []plan.Loop{loop("a", plan.StaticInverse), loop("bcd", plan.ByNodes, 1, 2, 3, 0), loop("ef", plan.BlockExclusive, 0, 3, 2, 1), loop("ghij", plan.Affine)}}
		p.Loops[2].Sweep, p.Loops[2].Step = 62, 1
		opt := options(t, c.topology, "sh")
		opt.Bind = c.bind
		res := resolve(t, p, opt)
		var got []string
		for _, l := range res.Run.Loops {
			s := l.Name + " " + string(l.Schedule)
			if len(l.Nodes) > 0 {
				s += fmt.Sprint(" ", l.Nodes)
			}
			if l.Sweep > 0 {
				s += fmt.Sprintf(" sweep %d step %d", l.Sweep, l.Step)
			}
			got = append(got, s)
		}
		if strings.Join(got, "; ") != c.want || !strings.Contains(text(res.Warnings), c.left) {
			t.Errorf("%s %s: got %q, want %q\n%s", c.topology, c.bind, got, c.want, text(res.Warnings))
		}
		if err := res.Run.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A loop of another binary is named, and the rest is applied.
func TestLoopOfOtherBinary(t *testing.T) {
	app := sweep(t, "clang -g -O2 -fopenmp")
	p := loopPlan(t, app, "libomp")
	p.Loops = append(p.Loops, plan.Loop{Name: "other.c:7 (f)", Module: plan.Module{Name: "libother.so"}, Offset: 0x99, Runtime: "libomp", Schedule: plan.StaticInverse},
		plan.Loop{Name: "later.c:7 (f)", Module: plan.Module{Name: "liblater.so", BuildID: "00ff"}, Offset: 0x99, Runtime: "libgomp", Schedule: plan.StaticInverse})
	res := resolve(t, p, options(t, "4x2", app))
	if n := len(res.Run.Loops); n != 4 || res.Left != 1 || !strings.Contains(text(res.Warnings), "loop other.c:7 (f) keeps OpenMP's schedule: libother.so is not among the program and its libraries") {
		t.Errorf("%+v\n%s", res.Run.Loops, text(res.Warnings))
	}
	if l := res.Run.Loops[3]; l.Runtime != runfile.GOMP || res.Run.Modules[l.Module] != (runfile.Module{BuildID: "00ff", Path: "liblater.so"}) {
		t.Errorf("loaded later: %+v in %+v", l, res.Run.Modules)
	}
}
