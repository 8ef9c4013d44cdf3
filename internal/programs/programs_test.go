package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestChecksums holds the programs to what they are for: what they print depends
// neither on the number of threads nor, in C, on the compiler.
func TestChecksums(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all test programs")
	}
	for _, name := range Names(t) {
		if name == "distributions-api" {
			continue // prints where its pages are
		}
		t.Run(name, func(t *testing.T) {
			want := ""
			for _, compiler := range []string{"gcc", "clang"} {
				if compiler == "clang" && isFortran(name) {
					continue
				}
				path := Build(t, name, compiler)
				for _, threads := range []string{"1", "2", "7"} {
					out, _ := output(t, path, "", threads)
					if want == "" {
						want = out
					}
					if out != want || !strings.Contains(want, "checksum") {
						t.Errorf("%s, %s threads: %s, want %s", path, threads, out, want)
					}
				}
			}
		})
	}
}

// TestTransformed holds programs changed by numaopt.h to the plain ones: the same output
// to the last bit on any number of nodes, more than threads too, and silent on one.
func TestTransformed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all programs with the API")
	}
	for _, name := range Names(t) {
		plain, transformed := strings.CutSuffix(name, "-api")
		if !transformed || plain == "distributions" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want, _ := output(t, Build(t, plain, "gcc"), "", "8")
			app := Build(t, name, "gcc")
			for _, nodes := range []string{"1", "3", "4"} {
				for _, threads := range []string{"2", "8"} {
					got, warned := output(t, app, nodes, threads)
					if got != want || nodes == "1" && warned != "" {
						t.Errorf("%s nodes, %s threads: %s%s, want %s", nodes, threads, got, warned, want)
					}
				}
			}
			if isFortran(name) {
				return
			}
			if got, _ := output(t, Build(t, name, "clang"), "4", "8"); got != want {
				t.Errorf("clang: %s, want %s", got, want)
			}
		})
	}
}

// TestTooSmall: where whole pages leave nothing to distribute, a program with the API
// says so and computes the same.
func TestTooSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	small := []string{"200", "3", "5"}
	want, _ := output(t, Build(t, "cg", "gcc"), "", "8", small...)
	got, warned := output(t, Build(t, "cg-api", "gcc"), "4", "8", small...)
	if got != want || !strings.Contains(warned, "less than a page") || !strings.Contains(warned, "fewer pages than nodes") {
		t.Errorf("%s%s, want %s", got, warned, want)
	}
}

// output runs a program on so many pretended nodes, the machine's if "".
func output(t *testing.T, app, nodes, threads string, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(app, args...)
	cmd.Env = append(os.Environ(), "NUMAOPT_NODES="+nodes, "OMP_NUM_THREADS="+threads, "OMP_DYNAMIC=false", "OMP_WAIT_POLICY=passive")
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s, %s nodes, %s threads: %v\n%s", app, nodes, threads, err, errors.String())
	}
	return string(out), errors.String()
}

func isFortran(name string) bool {
	_, err := os.Stat(filepath.Join(Root(), "testdata", "programs", name, name+".f90"))
	return err == nil
}
