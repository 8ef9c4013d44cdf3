package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

// TestFlang takes what LLVM's Fortran compiler makes of lu and bt through profile, plan
// and the plan's run: lu's descending sweep is reversed through
// __kmpc_for_static_init_*, bt's pages are placed, and both print what they printed.
func TestFlang(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates programs")
	}
	programs.Flang(t)
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	for _, x := range []struct {
		program, topology, plan string // plan matches what plan --explain says
		most                    string // remote at most after it, in percent
	}{
		{"lu-fortran", "4x2", `lu::buts\).* static-inverse `, "3"},
		{"bt-fortran", "2x4", `fields_ .* saves remote accesses`, "13"},
	} {
		t.Run(x.program, func(t *testing.T) {
			app, dir := programs.Build(t, x.program, "flang"), t.TempDir()
			before, after, plan := filepath.Join(dir, "before"), filepath.Join(dir, "after"), filepath.Join(dir, "plan")
			do := func(args ...string) (out, errors string) {
				t.Helper()
				code, out, errors := numaopt(args...)
				if code != 0 {
					t.Fatalf("%s: %s", strings.Join(args, " "), errors)
				}
				return out, errors
			}
			was, _ := do("profile", "-o", before, "--topology", x.topology, "--", app)
			_, said := do("plan", before, "--explain", "-o", plan)
			if !regexp.MustCompile(x.plan).MatchString(said) {
				t.Errorf("%s, want %s", said, x.plan)
			}
			if !strings.Contains(was, "checksum") {
				t.Errorf("printed %q", was)
			}
			if is, _ := do("profile", "-o", after, "--topology", x.topology, "--plan", plan, "--", app); is != was {
				t.Errorf("printed %s, with the plan %s", was, is)
			}
			do("check", after, "--max-remote", x.most)
		})
	}
}
