package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/profile/profiletest"
	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

func TestDiffFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want diffOptions
		err  string
	}{
		{"a b", diffOptions{before: "a", after: "b", fail: noLimit, top: 10}, ""},
		{"a b --fail 2.5 --json --top 0", diffOptions{before: "a", after: "b", fail: 2.5, json: true}, ""},
		{"a b --fail 0", diffOptions{before: "a", after: "b", top: 10}, ""},
		{"a", diffOptions{}, "two profiles"},
		{"a b c", diffOptions{}, "two profiles"},
		{"a b --fail -1", diffOptions{}, "--fail -1"},
		{"a b --fail NaN", diffOptions{}, "--fail NaN"},
		{"--schema", diffOptions{fail: noLimit, top: 10, schema: true}, ""},
		{"a b --schema", diffOptions{}, "--schema"},
		{"a b --top -1", diffOptions{}, "--top"},
	} {
		var got diffOptions
		cmd := newDiffCmd(&stdio{}, func(_ context.Context, opt diffOptions) error { got = opt; return nil })
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetArgs(strings.Fields(c.args))
		err := cmd.Execute()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: %v, want %q", c.args, err, c.err)
			}
			continue
		}
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(diffOptions{})); err != nil || d != "" {
			t.Errorf("%q: %v\n%s", c.args, err, d)
		}
	}
}

func TestDiffStatus(t *testing.T) {
	good := nprof(t, profiletest.Draw(2, 1, "u heap: 0 9000 100 | 1 0 9000"))
	bad := nprof(t, profiletest.Draw(2, 1, "u heap: 0 9000 1000 | 1 0 8100"))
	few := nprof(t, profiletest.Draw(2, 1, "u heap: 0 9 1"))
	one := nprof(t, profiletest.Draw(1, 2, "u heap: 0 9000"))
	four := nprof(t, profiletest.Draw(4, 1, "u heap: 0 9000"))
	for _, c := range []struct {
		args []string
		code int
		err  string
	}{
		{[]string{good, bad}, 0, "next: numaopt plan " + bad},
		{[]string{bad, good}, 0, "next: numaopt check " + good},
		{[]string{good, bad, "--fail", "4"}, 1, ""},
		{[]string{good, bad, "--fail", "5"}, 0, ""},
		{[]string{bad, good, "--fail", "0"}, 0, ""},
		{[]string{good, good, "--fail", "0"}, 0, ""},
		{[]string{good, few}, 0, "next: numaopt check"},
		{[]string{good, few, "--fail", "0"}, 3, "no verdict"},
		{[]string{one, one}, 3, "node"},
		{[]string{good, one}, 2, "--topology"},
		{[]string{good, four}, 2, "--topology"},
		{[]string{good, good + "x"}, 2, "no such file"},
	} {
		code, out, errs := numaopt(append([]string{"diff"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.err) || code < 2 && out == "" || code == 2 && out != "" {
			t.Errorf("%q: exit status %d, stderr %q; want %d and %q\n%s", c.args, code, errs, c.code, c.err, out)
		}
	}
	code, out, errs := numaopt("diff", good, bad, "--json")
	if doc := map[string]any{}; code != 0 || errs != "" || json.Unmarshal([]byte(out), &doc) != nil || doc["numaopt_diff"] != 1.0 {
		t.Errorf("JSON: exit status %d, stderr %q\n%s", code, errs, out)
	}
}

func TestDiffSchema(t *testing.T) {
	if code, out, errs := numaopt("diff", "--schema"); code != 0 || errs != "" || !json.Valid([]byte(out)) || !strings.Contains(out, "numaopt_diff") {
		t.Errorf("exit status %d, stderr %q\n%s", code, errs, out)
	}
}

// edited builds serial-init with parts of its source replaced, profiles it, and returns
// the profile's path. replace is pairs of old and new text.
func edited(t *testing.T, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(programs.Root(), "testdata", "programs", "serial-init", "serial-init.c"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(string(text), replace[i]) {
			t.Fatalf("serial-init.c has no %q", replace[i])
		}
	}
	dir := t.TempDir()
	source, app, path := filepath.Join(dir, "serial-init.c"), filepath.Join(dir, "app"), filepath.Join(dir, "app.nprof")
	if err := os.WriteFile(source, []byte(strings.NewReplacer(replace...).Replace(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O2", "-g", "-fopenmp", "-o", app, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	emulate(t, path, app, "768", "4")
	return path
}

func emulate(t *testing.T, path, app string, args ...string) {
	t.Helper()
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	if code, _, errs := numaopt(append([]string{"profile", "-o", path, "--topology", "4x2", "--", app}, args...)...); code != 0 {
		t.Fatalf("profile %s: exit status %d\n%s", app, code, errs)
	}
}

// compared is the JSON of numaopt diff, as far as tests look at it.
type compared struct {
	Warnings []string
	Remote   entryShare `json:"remote_dram_pct"`
	Objects  []entry
	Loops    []entry
	Worsened []struct {
		Name string
		Why  []string
	}
}

type entryShare struct{ Verdict string }

type entry struct {
	Name         string
	Before       string `json:"name_before"`
	Kind         string
	New, Gone    bool
	Doubtful     bool
	Contribution entryShare
	DRAM         struct{ Before, After *float64 } `json:"dram_pct"`
}

func compare(t *testing.T, before, after string) (r compared) {
	t.Helper()
	code, out, errs := numaopt("diff", before, after, "--json")
	if code != 0 {
		t.Fatalf("exit status %d, %s", code, errs)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// matches are the heap objects and loops of r that make a thousandth of the accesses:
// "before -> after", "new NAME", "gone NAME", with "?" behind what is in doubt.
func (r *compared) matches() map[string]bool {
	set := map[string]bool{}
	for _, e := range append(r.Objects, r.Loops...) {
		seen := e.DRAM.Before != nil && *e.DRAM.Before > 0.1 || e.DRAM.After != nil && *e.DRAM.After > 0.1
		if !seen || e.Kind != "heap" && e.Kind != "loop" {
			continue
		}
		s := fmt.Sprintf("%s -> %s", e.Name, e.Name)
		switch {
		case e.New:
			s = "new " + e.Name
		case e.Gone:
			s = "gone " + e.Name
		case e.Before != "":
			s = e.Before + " -> " + e.Name
		}
		if e.Doubtful {
			s += "?"
		}
		set[s] = true
	}
	return set
}

const (
	initLoop = "	for (long i = 0; i < n; i++)\n		for (long j = 0; j < n; j++) {"
	parallel = "#pragma omp parallel for schedule(static)\n" + initLoop
)

func TestDiffPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates programs")
	}
	serial := edited(t)
	t.Run("initialised serially instead", func(t *testing.T) {
		r := compare(t, edited(t, initLoop, parallel), serial)
		if r.Remote.Verdict != "worse" || len(r.Worsened) != 2 || len(r.Warnings) != 0 {
			t.Fatalf("%+v", r)
		}
		for _, w := range r.Worsened {
			why := strings.Join(w.Why, "\n")
			for _, want := range []string{"(init) by the main thread, outside any loop; before at serial-init.c:1", "by the threads of a team",
				"its pages are on node 0; before on all 4 nodes alike", "points in serial-init.c:20 (compute)"} {
				if !strings.Contains(why, want) {
					t.Errorf("%s: want %q:\n%s", w.Name, want, why)
				}
			}
		}
		if back := compare(t, serial, edited(t, initLoop, parallel)); back.Remote.Verdict != "better" || len(back.Worsened) != 0 {
			t.Errorf("the other way round: %+v", back)
		}
	})
	for _, c := range []struct {
		name    string
		replace []string
		want    []string
	}{
		{"lines above the functions", []string{"static void init", "\n\n/* a\n * comment\n */\nstatic void init"}, []string{
			"serial-init.c:44 (main) -> serial-init.c:49 (main)", "serial-init.c:45 (main) -> serial-init.c:50 (main)",
			"serial-init.c:20 (compute) -> serial-init.c:25 (compute)", "serial-init.c:28 (checksum) -> serial-init.c:33 (checksum)"}},
		{"lines in main", []string{"	double *a =", "\n	/* the matrices */\n	double *a ="}, []string{
			"serial-init.c:44 (main) -> serial-init.c:46 (main)", "serial-init.c:45 (main) -> serial-init.c:47 (main)",
			"serial-init.c:20 (compute) -> serial-init.c:20 (compute)", "serial-init.c:28 (checksum) -> serial-init.c:28 (checksum)"}},
		{"an object more, in front of the others", []string{
			"	double *a =", "	double *c = malloc(sizeof *c * n * n / 2);\n	double *a =",
			"	init(a, b, n);", "	init(a, b, n);\n	for (long i = 0; i < n * n / 2; i++) c[i] = i;\n	compute(a, c, n / 2);"}, []string{
			"serial-init.c:44 (main) -> serial-init.c:45 (main)", "serial-init.c:45 (main) -> serial-init.c:46 (main)",
			"new serial-init.c:44 (main)",
			"serial-init.c:20 (compute) -> serial-init.c:20 (compute)", "serial-init.c:28 (checksum) -> serial-init.c:28 (checksum)"}},
		{"a loop more", []string{"static double checksum", "static void scale(double *b, long n)\n{\n#pragma omp parallel for\n	for (long i = 0; i < n * n; i++)\n		b[i] *= 0.5;\n}\n\nstatic double checksum",
			"	printf(", "	scale(b, n);\n	printf("}, []string{
			"serial-init.c:44 (main) -> serial-init.c:51 (main)", "serial-init.c:45 (main) -> serial-init.c:52 (main)",
			"new serial-init.c:28 (scale)",
			"serial-init.c:20 (compute) -> serial-init.c:20 (compute)", "serial-init.c:28 (checksum) -> serial-init.c:35 (checksum)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := compare(t, serial, edited(t, c.replace...))
			want := map[string]bool{}
			for _, w := range c.want {
				want[w] = true
			}
			if d := cmp.Diff(want, r.matches()); d != "" {
				t.Errorf("%s\n%q", d, r.Warnings)
			}
		})
	}
}

// TestDiffEqualRuns: ten pairs of runs of the same program differ in nothing.
func TestDiffEqualRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates programs")
	}
	for _, c := range []struct {
		program string
		args    []string
		pairs   int
	}{
		{"serial-init", []string{"512", "3"}, 4}, {"adi", nil, 1}, {"is", nil, 2}, {"irregular", nil, 2}, {"pthreads", nil, 1},
	} {
		app := programs.Build(t, c.program, "gcc")
		for range c.pairs {
			dir := t.TempDir()
			before, after := filepath.Join(dir, "a.nprof"), filepath.Join(dir, "b.nprof")
			emulate(t, before, app, c.args...)
			emulate(t, after, app, c.args...)
			r := compare(t, before, after)
			if r.Remote.Verdict != "same" || len(r.Worsened) != 0 {
				t.Errorf("%s: %+v", c.program, r.Remote)
			}
			for _, w := range r.Warnings {
				if !strings.Contains(w, "missed the cache") {
					t.Errorf("%s: %s", c.program, w)
				}
			}
			for _, e := range append(r.Objects, r.Loops...) {
				if e.Contribution.Verdict != "same" || e.Doubtful {
					t.Errorf("%s: %+v", c.program, e)
				}
			}
			if code, out, _ := numaopt("diff", before, after, "--fail", "0"); code != 0 {
				t.Errorf("%s: exit status %d\n%s", c.program, code, out)
			}
		}
	}
}
