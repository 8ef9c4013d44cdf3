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
					cmd := exec.Command(path)
					cmd.Env = append(os.Environ(), "OMP_NUM_THREADS="+threads, "OMP_DYNAMIC=false", "OMP_WAIT_POLICY=passive")
					out, err := cmd.Output()
					if err != nil {
						t.Fatalf("%s, %s threads: %v", path, threads, err)
					}
					if want == "" {
						want = string(out)
					}
					if string(out) != want || !strings.Contains(want, "checksum") {
						t.Errorf("%s, %s threads: %s, want %s", path, threads, out, want)
					}
				}
			}
		})
	}
}

func isFortran(name string) bool {
	_, err := os.Stat(filepath.Join(Root(), "testdata", "programs", name, name+".f90"))
	return err == nil
}
