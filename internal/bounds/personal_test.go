package bounds

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/programs"
	"numaopt/internal/symbol"
)

// personalReasons are what the verdict of each refused function of personal.c says.
var personalReasons = map[string]string{
	"no_fill": ownDataAt, "no_drain": ownDataAt, "no_counter": ownDataAt, "no_pointer": ownDataAt, "no_orphan": ownDataAt, "no_prefix": ownDataAt,
	"no_number": `the thread's number itself \(omp_get_thread_num\) at personal.c:\d+|index of an array|used by|multiplied`,
	"no_deeper": `the thread's number itself \(omp_get_thread_num\) at personal.c:\d+`,
	"no_set":    `its own copy of .*\(pthread_setspecific\) at personal.c:\d+`,
	"no_table":  throughPointer, "no_variable": throughPointer, "no_tail": throughPointer + "|thread.s number itself", "no_maths": throughPointer, "no_sort": throughPointer,
	"no_specific": `its own copy of .*\(pthread_getspecific\) at personal.c:\d+`,
}

const throughPointer = `through a pointer, and what is called may depend on the thread.* at personal.c:\d+`

const ownDataAt = `its own copy of \(threadprivate, thread_local\).* at personal.c:\d+`

// boundsSites returns the return addresses of the calls that fetch loops' bounds, by
// the source function.
func boundsSites(t *testing.T, m *symbol.Module, b *Binary) map[string][]uint64 {
	t.Helper()
	out := map[string][]uint64{}
	for _, fn := range m.Functions() {
		code, err := b.decode(fn)
		if err != nil {
			continue
		}
		for _, s := range code.steps {
			if s.Op != x86asm.CALL || !strings.HasPrefix(s.callee, staticInit) && s.callee != threadNum {
				continue
			}
			if at := m.ReturnSite(s.next).Inlined; len(at) > 0 {
				name := at[0].Function
				if strings.HasPrefix(name, ".omp.reduction.") { // what clang 14 calls the region
					name = "ok_reduction"
				}
				out[name] = append(out[name], s.next)
			}
		}
	}
	return out
}

// needs skips a test where a compiler is missing.
func needs(t *testing.T, compiler string) {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skip(err)
	}
}

// TestPersonal compares the verdicts on loops that depend on their threads otherwise
// than by the bounds.
func TestPersonal(t *testing.T) {
	for name, flags := range map[string][]string{
		"O1": {"-O1"}, "O2": {"-O2"}, "O3 of new processors": {"-O3", "-march=skylake-avx512"}, "no-pie": {"-O2", "-no-pie"},
		"protected": {"-O2", "-fstack-protector-all"}, "cet": {"-O2", "-fcf-protection"}, "no-plt": {"-O2", "-fno-plt"},
		"shared": {"-O2", "-fPIC", "-shared"}, "emulated": {"-O2", "-femulated-tls"}, "O0": {"-O0"},
	} {
		for _, compiler := range []string{"gcc", "clang"} {
			if compiler == "gcc" && (name == "emulated" || name == "O0") { // not an option; refused anyway
				continue
			}
			t.Run(name+"/"+compiler, func(t *testing.T) {
				needs(t, compiler)
				m, b := open(t, build(t, compiler, "personal.c", append(flags, "-fopenmp", "-lm")...))
				judged := 0
				for fn, all := range boundsSites(t, m, b) {
					for _, site := range all {
						want, refuse := personalReasons[fn]
						if !refuse && !strings.HasPrefix(fn, "ok_") {
							continue // number
						}
						if compiler == "clang" && refuse && !strings.HasPrefix(calleeAt(t, b, site), staticInit) {
							continue // its own call
						}
						judged++
						if v := b.Judge(site); v.Permutable == refuse || refuse && !regexp.MustCompile(want).MatchString(v.Reason) {
							t.Errorf("%s at %#x: %+v, want %q", fn, site, v, want)
						}
					}
				}
				if judged < 21 {
					t.Errorf("%d loops: %v", judged, boundsSites(t, m, b))
				}
			})
		}
	}
}

func calleeAt(t *testing.T, b *Binary, site uint64) string {
	t.Helper()
	_, _, call, v := b.call(site)
	if v.Reason != "" {
		t.Fatal(v.Reason)
	}
	return call.callee
}

// TestPersonalPrograms: of the test programs those that sweep stay permutable with
// clang, and the one whose threads keep data from one loop to the next does not.
func TestPersonalPrograms(t *testing.T) {
	for name, refused := range map[string]string{"lu": "", "ssor": "", "sor": "", "is": "distribute"} {
		for _, compiler := range []string{"gcc", "clang"} {
			t.Run(name+"/"+compiler, func(t *testing.T) {
				needs(t, compiler)
				m, b := open(t, programs.Build(t, name, compiler))
				seen := map[bool]int{}
				for fn, all := range boundsSites(t, m, b) {
					for _, site := range all {
						if compiler == "clang" && calleeAt(t, b, site) == threadNum {
							continue
						}
						v := b.Judge(site)
						if seen[v.Permutable]++; v.Permutable == (fn == refused) {
							t.Errorf("%s: %+v", fn, v)
						}
						t.Log(fn, v)
					}
				}
				if seen[true] == 0 || (seen[false] == 0) != (refused == "") {
					t.Errorf("%d permutable, %d not", seen[true], seen[false])
				}
			})
		}
	}
}

// TestPersonalAtRunTime: loops of gcc's whose schedule is asked for when they run are
// judged as its static ones are, but for what becomes of the bounds.
func TestPersonalAtRunTime(t *testing.T) {
	needs(t, "gcc")
	text, err := os.ReadFile("testdata/personal.c")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "personal.c")
	if err := os.WriteFile(source, bytes.ReplaceAll(text, []byte("schedule(static)"), []byte("schedule(runtime)")), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(source), "app")
	if text, err := exec.Command("gcc", "-O2", "-g", "-fopenmp", source, "-o", out, "-lm").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	m, b := open(t, out)
	judged := 0
	for _, fn := range m.Functions() {
		code, err := b.decode(fn)
		if err != nil {
			continue
		}
		for _, s := range code.steps {
			if s.Op != x86asm.CALL || !strings.HasPrefix(s.callee, atRunTime) || !strings.HasSuffix(s.callee, "_start") {
				continue
			}
			name := m.ReturnSite(s.next).Inlined[0].Function
			want, refuse := personalReasons[name]
			if !refuse && !strings.HasPrefix(name, "ok_") {
				continue
			}
			judged++
			if v := b.Judge(s.next); v.Permutable == refuse || refuse && !regexp.MustCompile(want).MatchString(v.Reason) {
				t.Errorf("%s: %+v, want %q", name, v, want)
			}
		}
	}
	if judged < 17 {
		t.Errorf("%d loops", judged)
	}
}

// TestForeign: what a function of another file does is known of the system's
// libraries and the compilers' only.
func TestForeign(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		needs(t, compiler)
		dir := t.TempDir()
		compile := func(name, text string, args ...string) {
			t.Helper()
			source := filepath.Join(dir, name+".c")
			if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(compiler, append([]string{"-g", "-O2", "-fopenmp", source, "-o", filepath.Join(dir, name)}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		compile("libown.so", "#include <omp.h>\nint who(void) { return omp_get_thread_num(); }", "-shared", "-fPIC")
		compile("app", `#include <math.h>
int who(void);
double a[999];
void no_own(int n) {
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) a[i] = who();
}
void ok_maths(int n) {
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) a[i] = sin(a[i]) + tgamma(a[i]);
}
int main(int c, char **v) { no_own(999); ok_maths(999); return a[c]; }
`, "-L"+dir, "-l:libown.so", "-lm")
		m, b := open(t, filepath.Join(dir, "app"))
		judged := 0
		for fn, all := range boundsSites(t, m, b) {
			for _, site := range all {
				judged++
				want := map[string]string{"no_own": "calls who of libown.so, which is not looked into"}[fn]
				if v := b.Judge(site); v.Permutable != (want == "") || !strings.Contains(v.Reason, want) {
					t.Errorf("%s %s: %+v, want %q", compiler, fn, v, want)
				}
			}
		}
		if judged != 2 {
			t.Errorf("%s: %d loops", compiler, judged)
		}
	}
}

// TestFlang: what flang's runtime does, which is in the program, does not depend on the
// thread, unless a type has procedures that the runtime calls.
func TestFlang(t *testing.T) {
	flang := programs.Flang(t)
	source, err := os.ReadFile(filepath.Join("testdata", "flang.f90"))
	if err != nil {
		t.Fatal(err)
	}
	bound := regexp.MustCompile(`(?m)^ *(contains\n +procedure.*|generic ::.*)\n`)
	for name, text := range map[string]string{"plain": bound.ReplaceAllString(string(source), ""), "assignment": string(source)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, app := filepath.Join(dir, "flang.f90"), filepath.Join(dir, "app")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			args := append(flang[1:], "-O2", "-g", "-fopenmp", "-module-dir", dir, file, "-o", app)
			if out, err := exec.Command(flang[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			_, b := open(t, app)
			fns := b.module.FunctionsNamed("_QMmPgo..omp_par")
			if len(fns) != 1 {
				t.Fatalf("%d regions", len(fns))
			}
			why := b.personal(fns[0], false)
			if (why == "") != (name == "plain") {
				t.Errorf("%q", why)
			}
		})
	}
}
