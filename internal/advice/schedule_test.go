package advice

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/programs"
)

// The text for schedule "nodes" runs every iteration once, thread i of node n the chunk
// of thread i of node nodes[n], in loops of either direction; with any number of threads.
func TestPermutedText(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles programs")
	}
	root := programs.Root()
	api := filepath.Join(root, "build", "lib", "libnumaopt-api.a")
	if _, err := os.Stat(api); err != nil {
		t.Skip("not built: ", err)
	}
	for _, x := range []struct{ compiler, file, before, loop, body, end, after string }{
		{"gcc", "up.c", "#include <numaopt.h>\n#include <omp.h>\n#include <stdio.h>\nint of[40];\nint main(void) {\n", "for (int i = 0; i < 40; i++)", " of[i] += 1 + omp_get_thread_num();\n", "",
			"for (int i = 0; i < 40; i++) printf(\" %d\", of[i] - 1);\n}\n"},
		{"g++", "down.cpp", "#include <numaopt.h>\n#include <omp.h>\n#include <stdio.h>\nint of[40];\nint main(void) {\n", "for (int i = 39; i >= 0; i--)", " of[i] += 1 + omp_get_thread_num();\n", "",
			"for (int i = 39; i >= 0; i--) printf(\" %d\", of[i] - 1);\n}\n"},
		{"gfortran", "up.f90", "program main\nuse omp_lib\nimplicit none\ninteger :: i, of(40) = 0\n", "do i = 1, 40", "\nof(i) = of(i) + 1 + omp_get_thread_num()\n", "end do\n",
			"print '(40(1x,i0))', of - 1\nend program\n"},
	} {
		t.Run(x.file, func(t *testing.T) {
			if _, err := exec.LookPath(x.compiler); err != nil {
				t.Skip(err)
			}
			sentinel := "#pragma omp"
			if x.compiler == "gfortran" {
				sentinel = "!$omp"
			}
			do := map[bool]string{true: "do", false: "for"}[x.compiler == "gfortran"]
			f := parse(x.file, fmt.Sprintf("%s%s parallel %s\n%s%s%s%s", x.before, sentinel, do, x.loop, x.body, x.end, x.after))
			n := &nest{file: f, par: f.loops[0]}
			if why := n.directive(); why != "" {
				t.Fatal(why)
			}
			nodes := []int{2, 0, 3, 1}
			text := n.permutedC(n.par.Down, nodes, 4)
			if f.language == Fortran {
				text = n.permutedFortran(n.par.Down, nodes, 4)
			}
			dir := t.TempDir()
			file, app := filepath.Join(dir, x.file), filepath.Join(dir, "app")
			if err := os.WriteFile(file, []byte(x.before+text+x.after), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"-fopenmp", "-I" + filepath.Join(root, "runtime-c", "include")}
			if f.language == Fortran {
				args = append(args, "-J"+dir, filepath.Join(root, "runtime-c", "fortran", "numaopt.f90"))
			}
			if out, err := exec.Command(x.compiler, append(args, file, api, "-o", app)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, text)
			}
			// Of eight threads, chunk c is run by the one that takes it: 2c and 2c+1 are of
			// one node. Where the nodes have no equal parts the chunks are plain.
			taken := map[int][]int{8: {2, 3, 6, 7, 0, 1, 4, 5}, 4: {1, 3, 0, 2}}
			for _, threads := range []int{1, 3, 4, 5, 6, 8} {
				run := exec.Command(app)
				run.Env = append(os.Environ(), fmt.Sprint("OMP_NUM_THREADS=", threads), "OMP_DYNAMIC=false")
				out, err := run.Output()
				if err != nil {
					t.Fatalf("%d threads: %v\n%s", threads, err, text)
				}
				var want []string
				for c := range threads {
					by := c
					if taken[threads] != nil {
						by = taken[threads][c]
					}
					n, from := 40/threads, c
					if f.loops[0].Down {
						from = threads - 1 - c // the library counts chunks from the array's beginning
					}
					if from < 40%threads {
						n++
					}
					want = append(want, slices.Repeat([]string{fmt.Sprint(by)}, n)...)
				}
				if got := strings.Fields(string(out)); !slices.Equal(got, want) {
					t.Errorf("%d threads: %v\nwant %v\n%s", threads, got, want, text)
				}
			}
		})
	}
}

// TestScheduleCalls: what a loop calls is named, as nobody looks into it.
func TestScheduleCalls(t *testing.T) {
	for body, want := range map[string]int{"g(a, i);": 1, "a[i] = sqrt(a[i]);": 0} {
		f := &finder{p: &profile.Profile{Regions: []profile.Region{{Name: "a.c:1 (f)", File: "a.c", Line: 1}}}, files: make(map[string]*file), n: 2}
		f.opt.Read = func(string) []byte {
			return []byte("#pragma omp parallel for\nfor (int i = 0; i < n; i++) " + body + "\n")
		}
		var item Item
		f.schedule(&item, 0, nil, "static-inverse", nil)
		if len(item.Notes) != want || want > 0 && !strings.Contains(item.Notes[0], "a.c:2 calls g:") || len(item.Changes) != 2 {
			t.Errorf("%s: %q, %d changes", body, item.Notes, len(item.Changes))
		}
	}
}
