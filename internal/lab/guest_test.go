package lab

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"numaopt/internal/programs"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// boots gives the options of a guest; tests that boot one take some ten seconds.
func boots(t *testing.T, topology string) Options {
	t.Helper()
	if testing.Short() {
		t.Skip("boots a guest")
	}
	lib := os.Getenv(runfile.LibDir)
	if lib == "" {
		lib = filepath.Join(programs.Root(), "build", "lib", "numaopt")
	}
	if _, err := os.Stat(filepath.Join(lib, "lab.so")); err != nil {
		t.Fatalf("%v: run scripts/build", err)
	}
	m, err := topo.Parse(topology)
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Topology: m, Bind: string(topo.BindCompact), Caches: topo.DefaultCaches(), THP: "never", Memory: 2 * units.GiB,
		Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Progress: func(text string) { t.Log(text) }, Lib: lib,
	}
}

// The counter against accesses whose number and remote share are known by
// construction, made while interrupts and TLB flushes keep breaking in.
func TestCounterIsRight(t *testing.T) {
	for _, topology := range []string{"4x2", "2x1"} {
		opt := boots(t, topology)
		opt.SelfTest = true
		r, err := Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckSelfTest(r); err != nil {
			t.Errorf("%s: %v", topology, err)
		}
		// Each CPU loads 512 pages of 64 lines 20 times, and none of that is in a
		// cache. What else misses is a few lines of stacks and barriers.
		want := uint64(opt.Topology.NumCPUs() * 512 * 64 * 20)
		for _, run := range r.Runs {
			if got := run.DRAMAccesses; got < want || got > want+want/1000 {
				t.Errorf("%s, %s: %d DRAM accesses, %d were made; caches served %d (L1), %d (L2), %d (LLC); %d have no known home; by node and home %v",
					topology, run.Name, got, want, run.L1Hits, run.L2Hits, run.LLCHits, run.Unknown, run.Matrix)
			}
		}
	}
}

// A program sees the host's files, its stdin and its environment, starts alike in
// each run, and what the last run changed is there when the lab has ended.
func TestProgramInGuest(t *testing.T) {
	opt := boots(t, "2x1")
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GREETING", "good day")
	for name, text := range map[string]string{"input": "from a file\n", "gone": "x", "count": "0\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\ncat input -; echo $GREETING $1; nproc\nread n <count; echo $((n+1)) >count; rm gone; mkdir sub; echo new >sub/file; exit 3\n"
	if err := os.WriteFile("script", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	opt.Command = []string{"./script", "argument 1"}
	opt.Stdin = strings.NewReader("from stdin\n")
	r, err := Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if out := opt.Stdout.(*bytes.Buffer).String(); out != "from a file\nfrom stdin\ngood day argument 1\n2\n" {
		t.Errorf("the program printed %q", out)
	}
	if len(r.Runs) != 2 || r.Runs[0].Status != 3 || r.Runs[1].Status != 3 || !r.Runs[1].StdoutSame || r.Status() != 3 {
		t.Errorf("runs: %+v", r.Runs)
	}
	for name, want := range map[string]string{"count": "1\n", "sub/file": "new\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := os.Stat("gone"); !os.IsNotExist(err) {
		t.Error("a file that the program removed is still there")
	}
}

// A cancelled lab ends at once, and so does its QEMU.
func TestCancel(t *testing.T) {
	opt := boots(t, "2x1")
	t.Setenv("TMPDIR", t.TempDir())
	opt.Command = []string{"sleep", "1000"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	_, err := Run(ctx, opt)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
