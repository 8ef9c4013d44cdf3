package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/symbol"
)

// forked has an orphaned loop that every compiler copies: one thread takes another
// path through the function than the rest.
const forked = `
static double a[4096];
static inline __attribute__((always_inline)) void work(int n) {
#pragma omp for schedule(SCHEDULE)
    for (int i = 0; i < n; i++)
        a[i] += i;
}
int main(int argc, char **argv) {
    volatile int hello = 0;
#pragma omp parallel
    {
        int master = 0;
#pragma omp master
        master = 1;
        if (argc > 1 && master) { hello++; work(4096); } else work(4000);
    }
    return (int)a[1];
}
`

// elsewhere has the copies in two functions.
var elsewhere = strings.NewReplacer("int main", "static __attribute__((noinline)) void hop(int n) {\n#pragma omp barrier\n work(n);\n}\nint main", "hello++; work(4096)", "hello++; hop(4096)").Replace(forked)

// instances has one line that is several loops.
const instances = `
static double a[4096];
template <int K> static inline __attribute__((always_inline)) void orphan(int n) {
#pragma omp for schedule(SCHEDULE)
    for (int i = 0; i < n; i++)
        a[i] += K;
}
template <int K> __attribute__((noinline)) void whole(int n) {
#pragma omp parallel for schedule(SCHEDULE)
    for (int i = 0; i < n; i++)
        a[i] += K;
}
template <int K> __attribute__((noinline)) void region(int n) {
#pragma omp parallel
    orphan<K>(n);
}
int main() {
    whole<1>(4096), whole<2>(4000), region<3>(4000), region<4>(4096);
    return (int)a[1];
}
`

func buildCopies(t *testing.T, source, compiler string) string {
	t.Helper()
	dir := t.TempDir()
	words := strings.Fields(compiler)
	file, out := filepath.Join(dir, "copies.c"), filepath.Join(dir, "app")
	if strings.Contains(words[0], "++") {
		file += "c"
	}
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(words[0], append(words[1:], file, "-o", out)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

// TestCopies: a loop of which the compiler made copies is applied only where all of
// them are, with one schedule; instances of a template are loops of their own.
func TestCopies(t *testing.T) {
	const inverse = plan.StaticInverse
	for _, c := range []struct {
		name, source, compiler, runtime string
		calls                           int
		of                              map[int]plan.Schedule // by call
		want                            int                   // loops that are applied
	}{
		{"one of two", forked, "gcc -g -O2 -DSCHEDULE=dynamic,4", "libgomp", 2, map[int]plan.Schedule{1: plan.Affine}, 0},
		{"both", forked, "gcc -g -O2 -DSCHEDULE=dynamic,4", "libgomp", 2, map[int]plan.Schedule{0: plan.Affine, 1: plan.Affine}, 2},
		{"one of two", forked, "clang -g -O2 -DSCHEDULE=dynamic,4", "libomp", 2, map[int]plan.Schedule{0: plan.Affine}, 0},
		{"one of two", forked, "clang -g -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{0: inverse}, 0},
		{"both", forked, "clang -g -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{0: inverse, 1: inverse}, 2},
		{"two schedules", forked, "clang -g -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{0: inverse, 1: plan.ByNodes}, 0},
		{"elsewhere", elsewhere, "gcc -g -O2 -DSCHEDULE=dynamic,4", "libgomp", 2, map[int]plan.Schedule{1: plan.Affine}, 0},
		{"elsewhere", elsewhere, "clang -g -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{0: inverse}, 0},
		{"elsewhere", elsewhere, "clang -g -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{1: inverse}, 0},
		{"no debug information", forked, "clang -O2 -DSCHEDULE=static", "libomp", 2, map[int]plan.Schedule{0: inverse}, 0},
		{"instances", instances, "g++ -g -O2 -DSCHEDULE=dynamic,4", "libgomp", 4, map[int]plan.Schedule{0: plan.Affine, 2: plan.Affine}, 2},
		{"instances", instances, "clang++ -g -O2 -DSCHEDULE=dynamic,4", "libomp", 4, map[int]plan.Schedule{0: plan.Affine, 2: plan.Affine}, 2},
		{"instances", instances, "clang++ -g -O2 -DSCHEDULE=static", "libomp", 4, map[int]plan.Schedule{0: inverse, 2: inverse}, 2},
		{"instances", instances, "g++ -g -O2 -DSCHEDULE=static", "libgomp", 4, map[int]plan.Schedule{0: inverse, 2: inverse}, 2},
	} {
		t.Run(c.name+" "+c.compiler, func(t *testing.T) {
			if _, err := exec.LookPath(strings.Fields(c.compiler)[0]); err != nil {
				t.Skip(err)
			}
			app := buildCopies(t, c.source, c.compiler+" -fopenmp")
			p := &plan.Plan{Version: plan.Version, From: plan.From{Command: []string{app}, Topology: "4x2", Nodes: 4}, Threads: plan.Threads{Bind: "compact"}}
			m, err := symbol.Open(app)
			if err != nil {
				t.Fatal(err)
			}
			add := func(ra uint64, s plan.Schedule) {
				f := frame(m, ra)
				l := plan.Loop{Name: f.Function, Module: f.Module, Offset: ra, Runtime: c.runtime, Schedule: s,
					Function: f.Function, File: f.File, Line: f.Line, FunctionLine: f.FunctionLine}
				if s == plan.ByNodes {
					l.Nodes = []int{1, 0, 3, 2}
				}
				p.Loops = append(p.Loops, l)
			}
			var calls []uint64
			for _, s := range c.of {
				got, err := callsOf(app, functionsOf(&plan.Loop{Runtime: c.runtime, Schedule: s}))
				if calls = got.returns; err != nil || len(calls) != c.calls {
					t.Fatalf("%x, %v; want %d calls", calls, err, c.calls)
				}
			}
			for i, s := range c.of {
				add(calls[i], s)
			}
			res := resolve(t, p, options(t, "4x2", app))
			if len(res.Run.Loops) != c.want || (c.want == 0) != strings.Contains(text(res.Warnings), "may be copies of one loop") {
				t.Errorf("%d loops, want %d\n%s", len(res.Run.Loops), c.want, text(res.Warnings))
			}
			if c.name == "no debug information" {
				if text, err := exec.Command("strip", app).CombinedOutput(); err != nil {
					t.Fatal(err, string(text))
				}
				if res := resolve(t, p, options(t, "4x2", app)); len(res.Run.Loops) > 0 || !strings.Contains(text(res.Warnings), "is stripped") {
					t.Errorf("stripped: %s", text(res.Warnings))
				}
			}
			p.Loops = nil
			add(calls[0]+1, plan.StaticInverse)
			if res := resolve(t, p, options(t, "4x2", app)); len(res.Run.Loops) > 0 || !strings.Contains(text(res.Warnings), "begins at") {
				t.Errorf("a place that is no call: %+v\n%s", res.Run.Loops, text(res.Warnings))
			}
		})
	}
}
