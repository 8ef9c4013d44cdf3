package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/symbol"
)

// A program that defines what starts parallel regions is said to; not one that calls
// it, whose loops are known, or that is the runtime.
func TestLinked(t *testing.T) {
	compile := func(name, code string, flags ...string) ident.Module {
		dir := t.TempDir()
		source, app := filepath.Join(dir, "a.c"), filepath.Join(dir, name)
		if err := os.WriteFile(source, []byte(code), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("gcc", append([]string{source, "-Wl,--build-id", "-o", app}, flags...)...).CombinedOutput(); err != nil {
			t.Skipf("%v\n%s", err, out)
		}
		file, err := symbol.Open(app)
		if err != nil {
			t.Fatal(err)
		}
		return ident.Module{Path: app, BuildID: file.BuildID()}
	}
	const calls = "void GOMP_parallel(void); int main(void) { GOMP_parallel(); }\n"
	const gnu, llvm = "void GOMP_parallel(void) {}\nint main(void) {}\n", "void __kmpc_fork_call(void) {}\nint main(void) {}\n"
	loop := profile.Region{Kind: profile.Loop, Site: ident.Code{Module: 0, Offset: 8}, Runtime: "libgomp"}
	other := compile("app", gnu)
	other.BuildID = "00"
	for name, c := range map[string]struct {
		module  ident.Module
		regions []profile.Region
		want    string
	}{
		"libgomp":         {module: compile("app", gnu), want: "app has libgomp in itself (it defines GOMP_parallel)"},
		"libomp":          {module: compile("app", llvm), want: "app has libomp in itself (it defines __kmpc_fork_call)"},
		"known loops":     {module: compile("app", gnu), regions: []profile.Region{loop}},
		"the runtime":     {module: compile("libgomp.so.1", gnu)},
		"numaopt's own":   {module: compile("libnumaopt.so", gnu)},
		"a library's":     {module: compile("app", calls, "-Wl,--unresolved-symbols=ignore-all")},
		"rebuilt":         {module: other},
		"no longer there": {module: ident.Module{Path: "/nowhere/app"}},
	} {
		got := strings.Join(linked(&profile.Profile{Modules: []ident.Module{c.module}, Regions: c.regions}), "; ")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
