package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestReturnSite(t *testing.T) {
	for _, c := range []struct {
		command, source, call, want string
	}{
		{"gcc -g -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -O0 -fopenmp", "sweep.c", "malloc", "init_grid:11@8"},
		{"gcc -gdwarf-4 -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -O2 -fopenmp -no-pie", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -O2 -fopenmp -flto", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -gz=zlib -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -gsplit-dwarf -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"clang -g -gdwarf-5 -gsplit-dwarf -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -O2 -fopenmp", "sweep.c", "malloc", ""},
		{"clang -g -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"clang -g -O0 -fopenmp", "sweep.c", "malloc", "init_grid:11@8"},
		{"clang -gdwarf-4 -O2 -fopenmp", "sweep.c", "malloc", "init_grid:11@8 < main:34@32"},
		{"gcc -g -O2 -fopenmp", "sweep.c", "GOMP_parallel", "sweep:18@16 | sweep:27@16"},
		{"clang -g -O0 -fopenmp", "sweep.c", "__kmpc_fork_call", "sweep:18@16 | sweep:27@16"},
		{"gfortran -g -O2 -fopenmp", "flow.f90", "malloc", "heat:25@19"},
		{"g++ -g -O2 -fopenmp", "grid.cpp", "_Znwm", "ns::Grid::Grid:10@10 | ns::Grid::Grid:10@10"},
		{"g++ -g -O0 -fopenmp", "grid.cpp", "_Znam", "main:21@18"},
		{"clang++ -g -O2 -fopenmp", "grid.cpp", "_Znwm", "ns::Grid::Grid:10@10 < main:20@18 | ns::Grid::Grid:10@10 < main:20@18"},
	} {
		t.Run(c.command+" "+c.call, func(t *testing.T) {
			path := compile(t, c.command, c.source)
			m := open(t, path)
			var got []string
			for _, ra := range callsTo(t, path, c.call) {
				code := m.ReturnSite(ra)
				if code.Offset != ra || code.Symbol == "" {
					t.Errorf("ReturnSite(%#x) = %+v", ra, code)
				}
				got = append(got, picture(code.Inlined))
			}
			if text := strings.Join(got, " | "); !sameSet(text, c.want) {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

// sameSet compares " | " lists that may be ordered differently by the compiler;
// want may be a part of got.
func sameSet(got, want string) bool {
	if want == "" {
		return strings.Trim(got, " |") == ""
	}
	for _, w := range strings.Split(want, " | ") {
		if !strings.Contains(got, w) {
			return false
		}
	}
	return true
}

func TestOutlinedLoops(t *testing.T) {
	for _, c := range []struct {
		command, source, want string
	}{
		{"gcc -g -O2 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"gcc -g -O0 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"gcc -g -gsplit-dwarf -O2 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"gcc -O2 -fopenmp", "sweep.c", ".:0 sweep, .:0 sweep"},
		{"clang -g -O2 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"clang -g -O0 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"clang -gdwarf-4 -O1 -fopenmp", "sweep.c", "sweep.c:18 sweep, sweep.c:27 sweep"},
		{"clang -O2 -fopenmp", "sweep.c", ".:0 , .:0 "},
		{"gfortran -g -O2 -fopenmp", "flow.f90", "flow.f90:11 flow::sweep, flow.f90:26 heat"},
		{"gfortran -O2 -fopenmp", "flow.f90", ".:0 MAIN__, .:0 flow::sweep"},
		{"g++ -g -O2 -fopenmp", "grid.cpp", "grid.cpp:13 ns::Grid::sweep"},
		{"clang++ -g -O2 -fopenmp", "grid.cpp", "grid.cpp:13 ns::Grid::sweep"},
		{"clang++ -g -O0 -fopenmp", "grid.cpp", "grid.cpp:13 ns::Grid::sweep"},
		{"clang -g -O2 -fopenmp", "reduce.c", "reduce.c:12 norm, reduce.c:23 norm, reduce.c:9 norm"},
		{"clang -g -O0 -fopenmp", "reduce.c", "reduce.c:12 norm, reduce.c:23 norm, reduce.c:9 norm"},
		{"gcc -g -O2 -fopenmp", "reduce.c", "reduce.c:12 norm, reduce.c:19 norm, reduce.c:23 norm, reduce.c:9 norm"},
	} {
		t.Run(c.command, func(t *testing.T) {
			m := open(t, compile(t, c.command, c.source))
			var got []string
			for _, l := range m.OutlinedLoops() {
				got = append(got, fmt.Sprintf("%s:%d %s", filepath.Base(l.File), l.Line, l.Function))
			}
			slices.Sort(got)
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	m := open(t, compile(t, "gcc -g -O2 -fopenmp", "sweep.c"))
	loops := m.OutlinedLoops()
	var got []string
	for _, l := range loops {
		var lines []int
		for n := range m.Lines(l.File, l.Lo) {
			lines = append(lines, n)
		}
		slices.Sort(lines)
		got = append(got, fmt.Sprint(lines[0], lines[len(lines)-1]))
	}
	slices.Sort(got)
	if want := []string{"18 25", "27 29"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestVariables(t *testing.T) {
	for _, c := range []struct {
		command, source string
		want            []string
	}{
		{"gcc -g -O1 -fopenmp", "sweep.c", []string{"global u in sweep.c:4 800000", "global w in sweep.c:5 800000", "global work in sweep.c (init_grid):10 16000"}},
		{"clang -g -O0 -fopenmp", "sweep.c", []string{"global u in sweep.c:4 800000", "global w in sweep.c:5 800000", "global work in sweep.c (init_grid):10 16000"}},
		{"gcc -O1 -fopenmp", "sweep.c", []string{"global u in sweep.c:0 800000", "global w:0 800000", "global work in sweep.c:0 16000"}},
		{"gcc -O1 -fopenmp -s", "sweep.c", []string{"gap .bss+0x0 in app:0 1616064"}},
		{"gfortran -g -O2 -fopenmp", "flow.f90", []string{"module u in flow:3 800000", "common /fields/ in flow.f90:10 800000"}},
		{"gfortran -g -O2", "commons.f90", []string{"common u in /flds/:3 9600", "common w in /flds/:3 9600", "common list in /flds/:22 8000", "common a:c in /small/:6 4800", "common /odd/ in commons.f90:9 12800"}},
		{"gfortran -O2 -fopenmp", "flow.f90", []string{"module u in flow:0 800000", "global fields_:0 800000"}},
		{"g++ -g -O2 -fopenmp", "grid.cpp", []string{"global ns::table in grid.cpp:4 40000"}},
		{"clang++ -g -O2 -fopenmp", "grid.cpp", []string{"global ns::table in grid.cpp:4 40000"}},
	} {
		t.Run(c.command, func(t *testing.T) {
			m := open(t, compile(t, c.command, c.source))
			got := make(map[string]bool)
			var all []string
			for _, v := range m.Variables() {
				text := fmt.Sprintf("%s %s:%d %d", v.Kind, v.Name, v.Line, v.Size)
				got[text] = true
				if v.Size >= detailBytes {
					all = append(all, text)
				}
			}
			for _, w := range c.want {
				if !got[w] {
					t.Errorf("no %q in\n%s", w, strings.Join(all, "\n"))
				}
			}
		})
	}
}

func TestSeparateDebugFile(t *testing.T) {
	text, err := os.ReadFile(compile(t, "gcc -g -O2 -fopenmp", "sweep.c"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	want := open(t, path).OutlinedLoops()
	debug := filepath.Join(filepath.Dir(path), "app.debug")
	for _, words := range [][]string{{"objcopy", "--only-keep-debug", path, debug}, {"strip", path}, {"objcopy", "--add-gnu-debuglink=" + debug, path}} {
		if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", words, err, text)
		}
	}
	if d := cmp.Diff(want, open(t, path).OutlinedLoops()); d != "" {
		t.Errorf("loops by the debug file (-program +stripped):\n%s", d)
	}
}

// TestDebugFileByBuildID finds the file where distributions keep those of all programs.
func TestDebugFileByBuildID(t *testing.T) {
	text, err := os.ReadFile(compile(t, "gcc -g -O2 -fopenmp -Wl,--build-id=sha1", "sweep.c"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	path := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	m := open(t, path)
	want, id := m.OutlinedLoops(), m.BuildID()
	debug := filepath.Join(root, ".build-id", id[:2], id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(debug), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, words := range [][]string{{"objcopy", "--only-keep-debug", path, debug}, {"strip", path}} {
		if text, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", words, err, text)
		}
	}
	defer func(old string) { debugRoot = old }(debugRoot)
	debugRoot = root
	if d := cmp.Diff(want, open(t, path).OutlinedLoops()); d != "" {
		t.Errorf("loops by the debug file (-program +stripped):\n%s", d)
	}
}

func TestSpans(t *testing.T) {
	// The whole way round: the places of a call find the call's address again.
	for _, command := range []string{"gcc -g -O2 -fopenmp", "gcc -g -O0 -fopenmp", "clang -g -O2 -fopenmp", "clang -g -O0 -fopenmp"} {
		path := compile(t, command, "sweep.c")
		m := open(t, path)
		for _, ra := range callsTo(t, path, "malloc") {
			in := m.ReturnSite(ra).Inlined
			if !within(m.Spans(in), ra-1, len(in)) {
				t.Errorf("%s: %#x is not in the spans %#x of %s", command, ra, m.Spans(in), picture(in))
			}
			in[0].File = "/elsewhere/sweep.c"
			in[0].Line, in[0].FunctionLine = in[0].Line+7, in[0].FunctionLine+7
			if !within(m.Spans(in), ra-1, len(in)) {
				t.Errorf("%s: %#x is not found after an edit above it", command, ra)
			}
			in[0].Line++
			if within(m.Spans(in), ra-1, len(in)) {
				t.Errorf("%s: %#x is found on another line", command, ra)
			}
		}
	}
}

func within(spans []Span, pc uint64, places int) bool {
	for _, s := range spans {
		if s.Lo <= pc && pc < s.Hi && s.Places == places {
			return true
		}
	}
	return false
}

func TestDemangle(t *testing.T) {
	for _, c := range [][2]string{
		{"_ZN2ns4Grid5sweepEv", "ns::Grid::sweep"},
		{"_ZN2ns4Grid5sweepEv._omp_fn.0", "ns::Grid::sweep"},
		{"__flow_MOD_sweep._omp_fn.1", "flow::sweep"},
		{"__flow_MOD_u", "flow::u"},
		{"sweep._omp_fn.0.constprop.0", "sweep"},
		{"init.part.0", "init"},
		{"main.omp_outlined_debug__.3", "main"},
		{"_QQmain..omp_par.1", "MAIN__"},
		{"_QMflowPsweep..omp_par", "flow::sweep"},
		{"_QMflowEu", "flow::u"},
		{"_QMflowSpartFouterPinner", "flow::part::outer::inner"},
		{"_QPsub", "sub"},
		{"_QMflowE.s.t", "_QMflowE.s.t"}, // the compiler's own
		{".omp_outlined.", ".omp_outlined."},
		{"_ZN7mycrate4grid5sweep17h0123456789abcdefE", "mycrate::grid::sweep"}, // Rust
		{"_RNvNtCs9ltgdHTiPiY_7mycrate4grid5sweep", "mycrate::grid::sweep"},
		{"_ZSt4sortIPdEvT_S1_", "std::sort<double*>"},
		{"plain", "plain"},
		{"", ""},
	} {
		if got := Demangle(c[0]); got != c[1] {
			t.Errorf("Demangle(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestName(t *testing.T) {
	modules := []ident.Module{{Path: "/home/u/app"}}
	for _, c := range []struct {
		code ident.Code
		want string
	}{
		{ident.Code{Inlined: []ident.Location{{Function: "init", File: "/src/grid.c", Line: 42}}}, "grid.c:42 (init)"},
		{ident.Code{Inlined: []ident.Location{{Function: "init", File: "/src/grid.c"}}}, "grid.c (init)"},
		{ident.Code{Offset: 0x1234, Symbol: "_ZN1a1bEv"}, "app+0x1234 (a::b)"},
		{ident.Code{Offset: 0x1234}, "app+0x1234"},
		{ident.Code{Module: -1, Offset: 0x1234}, "?+0x1234"},
	} {
		if got := Name(c.code, modules); got != c.want {
			t.Errorf("Name(%v) = %q, want %q", c.code, got, c.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // past the umask
			t.Fatal(err)
		}
		return path
	}
	app := compile(t, "gcc -g -O2 -fopenmp", "sweep.c")
	arm, err := os.ReadFile(app)
	if err != nil {
		t.Fatal(err)
	}
	setuid := file("setuid", string(arm), 0o755|os.ModeSetuid)
	arm[18] = 183 // e_machine: EM_AARCH64
	for _, c := range []struct {
		name, want string // part of the error; empty is none
	}{
		{app, ""},
		{"sh", ""},
		{file("script", "#!/bin/sh\necho\n", 0o755), ""},
		{file("env-script", "#!/usr/bin/env sh\necho\n", 0o755), ""},
		{file("no-interpreter", "#!/no/such/thing\n", 0o755), "interpreter: /no/such/thing: no such file"},
		{file("empty", "", 0o755), "neither an ELF program nor a script"},
		{file("text", "hello", 0o755), "neither an ELF program nor a script"},
		{file("not-executable", "#!/bin/sh\n", 0o644), "chmod +x"},
		{file("arm", string(arm), 0o755), "built for AARCH64, 64 bit"},
		{file("cut", string(arm[:40]), 0o755), "neither an ELF program"},
		{setuid, "setuid"},
		{compile(t, "gcc -O2 -fopenmp -Wl,--dynamic-linker=/no/such/ld.so", "sweep.c"), "its dynamic linker /no/such/ld.so is not installed"},
		{compile(t, "gcc -static -O2 -fopenmp", "sweep.c"), "statically linked"},
		{dir, "is a directory"},
		{"/no/such/program", "no such file"},
		{"no-such-program", "not in $PATH"},
		{"symbol.go", "write ./symbol.go"},
	} {
		_, err := Describe(c.name)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("Describe(%s): %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("Describe(%s): %v, want %q", c.name, err, c.want)
		}
	}
}

func TestTableOpensOnce(t *testing.T) {
	path := compile(t, "gcc -O2 -fopenmp", "sweep.c")
	var table Table
	a, err := table.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := table.Open(path); a != b {
		t.Error("the second Open made another module")
	}
	if _, err := table.Open("/no/such/file"); err == nil {
		t.Error("no error for a file that is not there")
	}
}

// TestSplitMissing: names do not come from the .dwo file of another build, and what is
// not read is said once for a module.
func TestSplitMissing(t *testing.T) {
	const split = "gcc -g -gdwarf-5 -gsplit-dwarf -fopenmp "
	dwo := func(command string) (app, file string) {
		app = compile(t, command, "sweep.c")
		found, err := filepath.Glob(filepath.Join(filepath.Dir(app), "*.dwo"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return app, found[0]
	}
	// Programs of their own: their files are changed.
	stale, old := dwo(split + "-O2 -DSTALE")
	_, other := dwo(split + "-O0 -DSTALE")
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, text, 0o666); err != nil {
		t.Fatal(err)
	}
	gone, file := dwo(split + "-O2 -DGONE")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for app, want := range map[string]string{
		stale: "of another build than the module",
		gone:  "is not there, and packages",
		compile(t, "gcc -gdwarf-4 -gsplit-dwarf -O2 -fopenmp", "sweep.c"): "split DWARF of version 4",
	} {
		var table Table
		m, err := table.Open(app)
		if err != nil {
			t.Fatal(err)
		}
		for _, ra := range callsTo(t, app, "malloc") {
			if code := m.ReturnSite(ra); strings.Contains(picture(code.Inlined), "init_grid") {
				t.Errorf("%s: %+v", want, code)
			}
		}
		if got := table.Warnings(); len(got) != 1 || !strings.HasPrefix(got[0], app+": ") || !strings.Contains(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
