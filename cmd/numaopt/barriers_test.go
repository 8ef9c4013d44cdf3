package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// TestSweepsOfARegion takes loops of one region, in functions of their own, through
// profile, plan and the plan's run: the descending sweep alone is reversed, and the
// program prints what it printed.
func TestSweepsOfARegion(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates programs")
	}
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	for program, compilers := range map[string][]string{"sweeps-region": {"gcc", "clang"}, "sweeps-region-fortran": {"gcc"}} {
		for _, compiler := range compilers {
			t.Run(program+"/"+compiler, func(t *testing.T) {
				app, dir := programs.Build(t, program, compiler), t.TempDir()
				before, after, plan := filepath.Join(dir, "before"), filepath.Join(dir, "after"), filepath.Join(dir, "plan")
				do := func(args ...string) (out, errors string) {
					t.Helper()
					code, out, errors := numaopt(args...)
					if code != 0 {
						t.Fatalf("%s: %s", strings.Join(args, " "), errors)
					}
					return out, errors
				}
				was, _ := do("profile", "-o", before, "--topology", "4x2", "--", app)
				if _, said := do("plan", before, "-o", plan); strings.Contains(said, "across-barriers") {
					t.Errorf("plan: %s", said)
				}
				if is, _ := do("profile", "-o", after, "--topology", "4x2", "--plan", plan, "--", app); is != was || !strings.Contains(was, "checksum") {
					t.Errorf("printed %s, with the plan %s", was, is)
				}
				out, _ := do("check", after, "--max-remote", "6")
				t.Log(out)
			})
		}
	}
}
