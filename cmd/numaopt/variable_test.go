package main

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/symbol"
)

// allocated is a profile of a compiled program, of two objects: the memory of the
// variable grid, which is named by the line of the call, and another.
func allocated(t *testing.T) *profile.Profile {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "a.c"), filepath.Join(dir, "a")
	text := `#include <stdlib.h>
double *grid;
int main(int argc, char **argv) {
    grid = malloc(8000 * argc);
    return grid[argc] == argv[0][0];
}
`
	if err := os.WriteFile(source, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-g", "-O1", source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m, err := (&symbol.Table{}).Open(program)
	if err != nil {
		t.Fatal(err)
	}
	p := profiletest.Draw(2, 1, "u heap: 0 700 300 | 1 300 700", "v heap: 0 900 0 | 1 0 900")
	p.Modules = append(p.Modules, ident.Module{Path: program, BuildID: m.BuildID()})
	p.Sites = append(p.Sites, profile.Site{Frames: []ident.Code{callIn(t, m, 4, len(p.Modules)-1)}})
	p.Objects[0].Name, p.Objects[0].Site = "a.c:4 (main)", len(p.Sites)-1
	return p
}

// callIn is the return address of a call in a line of main.
func callIn(t *testing.T, m *symbol.Module, line, module int) ident.Code {
	t.Helper()
	for _, f := range m.Functions() {
		for at := f.Lo; f.Symbol == "main" && at < f.Hi; at++ {
			if c := m.ReturnSite(at); len(c.Inlined) > 0 && c.Inlined[0].Line == line {
				c.Module = module
				return c
			}
		}
	}
	t.Fatalf("no code for line %d", line)
	return ident.Code{}
}

// Every format finds an object by its variable.
func TestReportVariable(t *testing.T) {
	p := allocated(t)
	path := nprof(t, p)
	code, out, errs := numaopt("report", path, "--object", "grid", "--format", "csv")
	if lines, _ := csv.NewReader(strings.NewReader(out)).ReadAll(); code != 0 || len(lines) != 1+4 {
		t.Errorf("csv: exit status %d, %s%s", code, errs, out)
	}
	for _, args := range [][]string{{"--format", "pprof"}, {"--format", "parquet"}, {"--plots", t.TempDir(), "--before", nprof(t, p)}} {
		if code, _, errs := numaopt(append([]string{"report", path, "--object", "grid"}, args...)...); code != 0 {
			t.Errorf("%s: exit status %d, %s", args, code, errs)
		}
	}
}

// A limit's name is one that report --object takes.
func TestCheckVariable(t *testing.T) {
	path := nprof(t, allocated(t))
	for _, name := range []string{"grid", "object:grid", "a.c:4"} {
		code, out, errs := numaopt("check", path, "--max-remote", name+"=20")
		if code != 1 || !strings.Contains(out, "a.c:4 (main)") {
			t.Errorf("%s: exit status %d, %s%s", name, code, errs, out)
		}
	}
}
