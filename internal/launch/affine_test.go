package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/symbol"
)

const dealt = `
void whole(double *v, int n) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int i = 0; i < n; i++)
        v[i] += 1;
}
void part(double *v, int n, long m) {
#pragma omp parallel
    {
#pragma omp for schedule(guided)
        for (unsigned long i = 0; i < m; i++)
            v[i] *= 2;
        v[n] = 0;
#pragma omp for schedule(runtime)
        for (int i = 0; i < n; i++)
            v[i] -= 1;
    }
}
int main(void) {
    static double v[101];
    whole(v, 100);
    part(v, 100, 100);
    return 0;
}
`

func buildDealt(t *testing.T, source, compiler string) string {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "dealt.c"), filepath.Join(dir, "app")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(compiler)
	if text, err := exec.Command(words[0], append(words[1:], file, "-o", out)...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

// TestAffineRebuilt: loops that hand out their work are found again in a rebuilt
// program, by the calls that begin them; nobody asks whether they may be permuted.
func TestAffineRebuilt(t *testing.T) {
	for _, c := range []struct{ compiler, runtime string }{
		{"gcc -g -O2 -fopenmp", "libgomp"}, {"gcc -g -O1 -fopenmp -fno-plt", "libgomp"}, {"clang -g -O2 -fopenmp", "libomp"},
	} {
		app := buildDealt(t, dealt, c.compiler)
		calls, err := callsOf(app, dispatchFunctions[c.runtime])
		if err != nil || len(calls.returns) != 3 {
			t.Fatalf("%s: %x, %v; want 3 calls", c.compiler, calls.returns, err)
		}
		m, err := symbol.Open(app)
		if err != nil {
			t.Fatal(err)
		}
		p := &plan.Plan{Version: plan.Version, From: plan.From{Command: []string{app}, Topology: "4x2", Nodes: 4}, Threads: plan.Threads{Bind: "compact"}}
		for _, ra := range calls.returns {
			f := frame(m, ra)
			p.Loops = append(p.Loops, plan.Loop{Name: f.Function, Module: f.Module, Offset: ra, Runtime: c.runtime, Schedule: plan.Affine,
				Function: f.Function, File: f.File, Line: f.Line, FunctionLine: f.FunctionLine})
		}
		for _, again := range []string{dealt, "int x;\n\n" + dealt} {
			now := buildDealt(t, again, c.compiler)
			opt := options(t, "4x2", now)
			res := resolve(t, p, opt)
			var names []string
			for _, l := range res.Run.Loops {
				names = append(names, l.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != "part part whole" {
				t.Errorf("%s: found %q\n%s", c.compiler, got, text(res.Warnings))
			}
		}
	}
}
