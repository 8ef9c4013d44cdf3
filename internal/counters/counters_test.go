package counters

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"numaopt/internal/golden"
	"numaopt/internal/pmu"
	"numaopt/internal/topo"
)

// faults counts page faults in the place of local DRAM: every kernel has them.
func faults(t *testing.T, open pmu.Opener, command ...string) Options {
	t.Helper()
	machine, err := topo.Parse("2x2")
	if err != nil {
		t.Fatal(err)
	}
	e := pmu.Faults().Events[0]
	e.Role = pmu.LocalDRAM
	return Options{Machine: pmu.Read(os.DirFS("/")), Topology: machine, Counters: &pmu.Counters{Events: []pmu.Event{e}, What: "page faults"},
		Open: open, Command: command, Stdout: io.Discard, Stderr: io.Discard}
}

// kernelCount counts for real, where that is allowed.
func kernelCount(t *testing.T, command ...string) *Traffic {
	t.Helper()
	got, _, err := Count(context.Background(), faults(t, unix.PerfEventOpen, command...))
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		t.Skip("no permission to count: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCount: of the program, all that it starts, and nothing of numaopt's own.
func TestCount(t *testing.T) {
	small := kernelCount(t, "true").LocalDRAM
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	again := kernelCount(t, "true").LocalDRAM
	if small < 20 || small > 1000 || math.Abs(again-small) > 50 {
		t.Errorf("%v and %v faults of true", small, again)
	}
	one := kernelCount(t, "sh", "-c", "true; exit 0").LocalDRAM
	children := kernelCount(t, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/ls / >/dev/null; done").LocalDRAM
	if children < one+10*20 {
		t.Errorf("%v faults with ten children, %v without", children, one)
	}
}

// TestStatus: the program's end is told as a shell tells it.
func TestStatus(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -SEGV $$": 139} {
		if got := kernelCount(t, "sh", "-c", script).Status; got != want {
			t.Errorf("%s: %d, want %d", script, got, want)
		}
	}
}

// script answers with counters that read as given: value, enabled, running.
func script(t *testing.T, reads map[uint64][3]uint64, errs map[uint64]error) pmu.Opener {
	return func(a *unix.PerfEventAttr, pid, cpu, _, _ int) (int, error) {
		if err := errs[a.Config]; err != nil {
			return -1, err
		}
		fd, err := unix.MemfdCreate("counter", 0)
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for _, v := range reads[a.Config] {
			b = binary.NativeEndian.AppendUint64(b, v)
		}
		if pid == 0 != (a.Bits&unix.PerfBitEnableOnExec != 0) || pid == 0 != (cpu == -1) {
			t.Errorf("config %#x: opened for process %d, CPU %d, with bits %#x", a.Config, pid, cpu, a.Bits)
		}
		_, err = unix.Pwrite(fd, b, 0)
		return fd, err
	}
}

// twoNodes counts with a machine whose controllers and links are counted on CPUs 0
// and 2, one of each node.
func twoNodes(t *testing.T, open pmu.Opener) Options {
	opt := faults(t, open, "true")
	opt.Counters = &pmu.Counters{What: "loads that retired", Events: []pmu.Event{
		{Device: "cpu", Name: "LOCAL_DRAM", Role: pmu.LocalDRAM, Config: 0x1d3, From: "libpfm4 skx"},
		{Device: "cpu", Name: "REMOTE_DRAM", Role: pmu.RemoteDRAM, Config: 0x2d3, From: "libpfm4 skx"},
		{Device: "cpu", Name: "REMOTE_HITM", Role: pmu.RemoteCache, Config: 0x4d3, From: "libpfm4 skx"},
		{Device: "cpu", Name: "REMOTE_FWD", Role: pmu.RemoteCache, Config: 0x8d3, From: "libpfm4 skx"},
	}, Uncore: []pmu.Event{
		{Device: "uncore_imc_0", Name: "read", Role: pmu.MemoryRead, Config: 0x304},
		{Device: "uncore_imc_0", Name: "write", Role: pmu.MemoryWrite, Config: 0xc04},
		{Device: "uncore_upi_0", Name: "data", Role: pmu.Link, Config: 0xf02},
	}, UncoreCPUs: map[string][]int{"uncore_imc_0": {0, 2}, "uncore_upi_0": {0, 2}}}
	return opt
}

var reads = map[uint64][3]uint64{
	0x1d3: {600_000, 1000, 1000}, 0x2d3: {100_000, 1000, 500}, // on a counter for half of the time: 200,000
	0x4d3: {150_000, 1000, 1000}, 0x8d3: {50_000, 1000, 1000},
	0x304: {1 << 20, 9, 9}, 0xc04: {1 << 19, 9, 9}, 0xf02: {9 << 14, 9, 9},
}

// TestResult holds the arithmetic, and what is printed of it.
func TestResult(t *testing.T) {
	opt := twoNodes(t, script(t, reads, nil))
	a, warnings, err := Count(context.Background(), opt)
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	if a.LocalDRAM != 600_000 || a.RemoteDRAM != 200_000 || a.RemoteCache != 200_000 || a.Running != 0.5 || a.Remote() != 40 {
		t.Errorf("%+v", a)
	}
	if want := (Node{Node: 1, Read: 64 << 20, Written: 32 << 20, Sent: 1 << 20}); len(a.Nodes) != 2 || a.Nodes[1] != want {
		t.Errorf("%+v", a.Nodes)
	}
	b := *a
	b.LocalDRAM = 800_000
	r := NewResult(opt, []Traffic{*a, b}, nil)
	var out bytes.Buffer
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/stat.txt", out.Bytes())
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "50 % of the time") {
		t.Error(r.Warnings)
	}
	out.Reset()
	if err := r.WriteJSON(&out); err != nil || !strings.Contains(out.String(), `"remote_pct": 36.36`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestRefused: without the machine's counters the program's stand alone; without
// those there is nothing.
func TestRefused(t *testing.T) {
	opt := twoNodes(t, script(t, reads, map[uint64]error{0xf02: unix.EACCES}))
	opt.Machine = pmu.Read(os.DirFS(t.TempDir()))
	got, warnings, err := Count(context.Background(), opt)
	if err != nil || len(got.Nodes) != 0 || got.LocalDRAM != 600_000 || len(warnings) != 1 || !strings.Contains(warnings[0], "perf_event_open of data: EACCES (13)") {
		t.Errorf("%+v, %q, %v", got, warnings, err)
	}
	opt.Open = script(t, reads, map[uint64]error{0x2d3: unix.ENOENT})
	if _, _, err = Count(context.Background(), opt); !errors.Is(err, unix.ENOENT) || !strings.Contains(err.Error(), "does not have this event: use numaopt profile") {
		t.Error(err)
	}
	opt.Open, opt.Command = script(t, reads, nil), []string{"/nowhere"}
	if _, _, err = Count(context.Background(), opt); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestFew: the counts, but no percentage of next to nothing.
func TestFew(t *testing.T) {
	opt := twoNodes(t, script(t, map[uint64][3]uint64{0x1d3: {10, 1, 1}, 0x2d3: {0, 1, 1}, 0x4d3: {0, 1, 1}, 0x8d3: {0, 1, 1}}, nil))
	opt.Counters.Uncore = nil
	got, _, err := Count(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	r := NewResult(opt, []Traffic{*got}, nil)
	var table, text bytes.Buffer
	if err := errors.Join(r.WriteText(&table), r.WriteJSON(&text)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table.String(), "remote: too few lines to tell") || strings.Contains(table.String(), "%") || strings.Contains(text.String(), "pct") ||
		!strings.Contains(strings.Join(r.Warnings, " "), "brought 10 lines from memory: too few") {
		t.Errorf("%q\n%s\n%s", r.Warnings, &table, &text)
	}
}

// TestNotCounted: an event that never had a counter is not 0 lines. One of the
// program's is an error, with what is known of the run; one of the machine's a warning.
func TestNotCounted(t *testing.T) {
	without := func(config uint64) Options {
		values := maps.Clone(reads)
		values[config] = [3]uint64{0, 1000, 0}
		return twoNodes(t, script(t, values, nil))
	}
	got, _, err := Count(context.Background(), without(0x2d3))
	if err == nil || !strings.Contains(err.Error(), "REMOTE_DRAM was not counted") || got == nil {
		t.Errorf("%+v, %v", got, err)
	}
	got, warnings, err := Count(context.Background(), without(0xf02))
	if err != nil || len(got.Nodes) != 0 || len(warnings) != 1 || !strings.Contains(warnings[0], "data was not counted") {
		t.Errorf("%+v, %q, %v", got, warnings, err)
	}
}

// TestMeanNodes: by node, wherever it stands in a run.
func TestMeanNodes(t *testing.T) {
	got := mean([]Traffic{{Nodes: []Node{{Node: 1, Read: 10, Sent: 4}}}, {Nodes: []Node{{Node: 0, Written: 2}, {Node: 1, Read: 30}}}}).Nodes
	if want := []Node{{Node: 0, Written: 1}, {Node: 1, Read: 20, Sent: 2}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestNoCaches: what no event counts has no row.
func TestNoCaches(t *testing.T) {
	opt := twoNodes(t, script(t, reads, nil))
	opt.Counters.Events = opt.Counters.Events[:2]
	a, _, err := Count(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := NewResult(opt, []Traffic{*a}, nil)
	if err := r.WriteText(&out); err != nil || r.Caches || strings.Contains(out.String(), "remote caches") || !strings.Contains(out.String(), "remote DRAM") {
		t.Errorf("%v %v\n%s", err, r.Caches, &out)
	}
}
