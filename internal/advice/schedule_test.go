package advice

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/programs"
)

// The text for schedule "nodes" runs every iteration once, thread i of node n the chunk
// of thread i of node nodes[n], in loops of either direction.
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
			run := exec.Command(app)
			run.Env = append(os.Environ(), "OMP_NUM_THREADS=8", "OMP_DYNAMIC=false")
			out, err := run.Output()
			if err != nil {
				t.Fatal(err)
			}
			// Chunk c, of five, is run by the thread that takes it: 2c and 2c+1 are of one node.
			var want []string
			taken := []int{2, 3, 6, 7, 0, 1, 4, 5} // by chunk: who has it
			for i := range 40 {
				want = append(want, fmt.Sprint(taken[i/5]))
			}
			if got := strings.Join(strings.Fields(string(out)), " "); got != strings.Join(want, " ") {
				t.Errorf("threads %s\nwant    %s\n%s", got, strings.Join(want, " "), text)
			}
		})
	}
}
