package bounds

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/symbol"
)

// source is a file of a program and the flags that it is built with; "lib" first in
// its name makes it a library.
type source struct{ name, text, flags string }

// loopCalling is a file with a loop that calls f.
func loopCalling(f string) source {
	return source{"libloop.so", "double " + f + "(double); void sweep(double *v, long n) {\n#pragma omp parallel for schedule(static)\n" +
		"for (long i = 0; i < n; i++) v[i] = " + f + "(v[i]); }", "-fopenmp -lm"}
}

// counts is a body that depends on the thread.
const counts = "static __thread long calls; double count(double a) { return a + ++calls; }\n"

// TestAmong: what a loop calls in the other files of its program is read there, by
// whatever name it is called.
func TestAmong(t *testing.T) {
	orphan := source{"libloop.so", "void sweep(double *v, long n, double *own) {\n#pragma omp for schedule(static)\n" +
		"for (long i = 0; i < n; i++) v[i] += ++*own; }", "-fopenmp"}
	region := "void sweep(double *, long, double *); double v[9]; int main(void) {\n#pragma omp parallel\nsweep(v, 9, "
	for _, c := range []struct {
		name    string
		sources []source // the loop is in the first
		want    string   // reason; empty is permutable
	}{
		{"plain", []source{loopCalling("mix"), {"libmix.so", "double mix(double a) { return a; }", ""}}, ""},
		{"own data", []source{loopCalling("mix"), {"libmix.so", counts + "double mix(double a) { return count(a); }", "-O0"}}, whyOwnData},
		{"named as the runtime", []source{loopCalling("omp_mix"), {"libmix.so", counts + "double omp_mix(double a) { return count(a); }", ""}}, whyOwnData},
		{"interposed", []source{loopCalling("erf"), {"app", counts + "double erf(double a) { return count(a); } int main(void) { return 0; }", "-fno-builtin -rdynamic"}}, whyOwnData},
		{"allocator", []source{{"libloop.so", "#include <stdlib.h>\nvoid sweep(void **v, long n) {\n#pragma omp parallel for schedule(static)\n" +
			"for (long i = 0; i < n; i++) v[i] = realloc(v[i], n); }", "-fopenmp"},
			{"app", "static __thread long calls; void *realloc(void *p, unsigned long n) { calls++; return p; } int main(void) { return 0; }", "-rdynamic"}}, ""},
		{"orphaned", []source{orphan, {"app", region + "&(double){0}); }", "-fopenmp -l:libloop.so"}}, ""},
		{"orphaned, with own data", []source{orphan, {"app", "static __thread double own;" + region + "&own); }", "-fopenmp -l:libloop.so"}}, whyOwnData},
		{"orphaned, and nobody's", []source{orphan, {"app", "int main(void) { return 0; }", ""}}, "no parallel region was found"},
		{"orphaned, and stripped", []source{orphan, {"app", "static __thread double own;" + region + "&own); }", "-fopenmp -s -l:libloop.so"}}, "app is stripped"},
		{"alias", []source{loopCalling("mix"), {"libmix.so", counts + `double mix(double) __attribute__((alias("count")));`, ""}}, whyOwnData},
		{"alias of its own", []source{{"libloop.so", counts + `double mix(double) __attribute__((alias("count")));` + loopCalling("mix").text, "-fopenmp"}}, whyOwnData},
		{"version", []source{loopCalling("mix"), {"libmix.so", counts + `__asm__(".symver count,mix@@V1");`, "-Wl,--version-script=v.map.c"}, {"v.map", "V1 { mix; };", ""}}, whyOwnData},
		{"resolver", []source{loopCalling("mix"), {"libmix.so", counts + `static void *one(void) { return count; } double mix(double) __attribute__((ifunc("one")));`, ""},
			{"app", "double mix(double a) { return a; } int main(void) { return 0; }", "-rdynamic"}}, "calls mix of libmix.so, which is not looked into"},
		{"assembly", []source{loopCalling("mix"), {"libmix.so", `__asm__(".globl mix\nmix: mov %fs:0, %rax\nret");`, ""},
			{"app", "double mix(double a) { return a; } int main(void) { return 0; }", "-rdynamic"}}, whyOwnData},
		{"C++ base class", []source{{"libloop.cc", "struct Sum { double v; Sum(double); }; struct D : Sum { D(double a) : Sum(a) {} };\n" +
			"static thread_local long calls; __attribute__((noinline)) Sum::Sum(double a) { v = a + ++calls; }\nvoid sweep(double *v, long n) {\n" +
			"#pragma omp parallel for schedule(static)\nfor (long i = 0; i < n; i++) { D s(v[i]); v[i] = s.v; } }", "-fopenmp"}}, whyOwnData},
	} {
		for _, compiler := range []string{"gcc", "clang"} {
			t.Run(c.name+"/"+compiler, func(t *testing.T) {
				needs(t, compiler)
				v := judgeAmong(t, buildAll(t, compiler, c.sources))
				if v.Permutable != (c.want == "") || !strings.Contains(v.Reason, c.want) {
					t.Errorf("%+v, want %q", v, c.want)
				}
			})
		}
	}
}

// buildAll builds sources and returns the paths of what is no script of the linker's.
func buildAll(t *testing.T, compiler string, sources []source) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for _, s := range sources {
		if err := os.WriteFile(filepath.Join(dir, s.name+".c"), []byte(s.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sources {
		if strings.HasSuffix(s.name, ".map") {
			continue
		}
		args := []string{"-g", "-O2", "-xc", s.name + ".c", "-xnone", "-o", s.name, "-L."}
		if strings.HasSuffix(s.name, ".cc") {
			args[2] = "-xc++"
		}
		if strings.HasPrefix(s.name, "lib") {
			args = append(args, "-shared", "-fPIC")
		}
		cmd := exec.Command(compiler, append(args, strings.Fields(s.flags)...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		paths = append(paths, filepath.Join(dir, s.name))
	}
	return paths
}

// judgeAmong judges the one loop of the first file.
func judgeAmong(t *testing.T, paths []string) Verdict {
	t.Helper()
	var all []*Binary
	for _, path := range paths {
		m, err := symbol.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Open(m)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b)
	}
	for _, b := range all {
		b.Among(all)
	}
	for _, fn := range all[0].module.Functions() {
		code, err := all[0].decode(fn)
		if err != nil {
			continue
		}
		for _, s := range code.steps {
			if s.Op == x86asm.CALL && (strings.HasPrefix(s.callee, staticInit) || s.callee == threadNum) {
				return all[0].Judge(s.next)
			}
		}
	}
	t.Fatal("no loop")
	return Verdict{}
}
