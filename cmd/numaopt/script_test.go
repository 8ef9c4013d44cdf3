package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "perf" {
		os.Exit(standinPerf(os.Args[1:]))
	}
	testscript.Main(m, map[string]func(){"numaopt": main})
}

// TestScript runs the user stories: testdata/script/*.txtar, named by the
// subcommand. Stories that emulate a program or boot a guest begin with "[short]
// skip"; the others are done in a second.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setupScript,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"program": program,
			"head":    head,
		},
	})
}

func setupScript(env *testscript.Env) error {
	if os.Getenv(runfile.LibDir) == "" {
		env.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	for _, name := range []string{runfile.LibDir, "NUMAOPT_KERNEL", "HOME"} { // HOME: the cache has a kernel
		if v := os.Getenv(name); v != "" {
			env.Setenv(name, v)
		}
	}
	env.Setenv("PROGRAMS", filepath.Join(programs.Root(), "testdata", "programs"))
	env.Values["t"] = env.T()
	return nil
}

// exits STATUS COMMAND [ARG...] is exec with the exit status that is expected.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			got = 128 + int(ws.Signal()) // as a shell says it
		}
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s: exit status %d, want %d", args[1], got, want)
	}
}

// program NAME COMPILER [FILE] builds a test program and leaves it as FILE, "app"
// by default.
func program(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: program NAME COMPILER [FILE]")
	}
	t, ok := ts.Value("t").(testing.TB)
	if !ok {
		t = stub{ts: ts}
	}
	text, err := os.ReadFile(programs.Build(t, args[0], args[1]))
	ts.Check(err)
	to := "app"
	if len(args) == 3 {
		to = args[2]
	}
	ts.Check(os.WriteFile(ts.MkAbs(to), text, 0o755))
}

// stub is as much of a testing.TB as programs.Build needs.
type stub struct {
	testing.TB
	ts *testscript.TestScript
}

func (s stub) Helper()                        {}
func (s stub) Fatal(args ...any)              { s.ts.Fatalf("%v", args) }
func (s stub) Fatalf(form string, arg ...any) { s.ts.Fatalf(form, arg...) }

// head BYTES FROM TO copies the first bytes of a file: a truncated one.
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head BYTES FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	text, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), text[:min(n, len(text))], 0o644))
}
