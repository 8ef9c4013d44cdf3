package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"numaopt/internal/counters"
)

// counted is a Skylake-SP whose counters read 600,000 lines of local DRAM and 100,000
// of each other kind, and nothing of the whole machine, which this user may not count.
func counted(t *testing.T) host {
	return countedAs(t, func(config uint64) (lines, running uint64) {
		if config == 0x1d3 {
			return 600_000, 1000
		}
		return 100_000, 1000
	})
}

// countedAs is that with other lines by event, in the part of 1000 that it was running.
func countedAs(t *testing.T, counter func(config uint64) (lines, running uint64)) host {
	h := fixture(t, "skylake-sp", nil)
	h.open = func(a *unix.PerfEventAttr, pid, _, _, _ int) (int, error) {
		if pid == -1 {
			return -1, unix.EACCES
		}
		lines, running := counter(a.Config)
		fd, err := unix.MemfdCreate("counter", 0)
		if err != nil {
			t.Fatal(err)
		}
		var b []byte
		for _, v := range []uint64{lines, 1000, running} {
			b = binary.NativeEndian.AppendUint64(b, v)
		}
		_, err = unix.Pwrite(fd, b, 0)
		return fd, err
	}
	return h
}

// stat runs numaopt stat and returns what was said.
func stat(opt statOptions) (string, error) {
	opt.repeat = max(1, opt.repeat)
	var said bytes.Buffer
	err := runStat(context.Background(), errOnly(&said), opt)
	return said.String(), err
}

// TestStat holds the figures, the gate and the program's status.
func TestStat(t *testing.T) {
	limit := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		name   string
		opt    statOptions
		status int
		said   string
	}{
		{"figures", statOptions{program: []string{"true"}}, 0, "remote: 33.3 % (loads that retired"},
		{"runs", statOptions{program: []string{"true"}, repeat: 3}, 0, "33.3 % to 33.3 % in 3 runs"},
		{"machine not counted", statOptions{program: []string{"true"}}, 0, "warning: memory controllers and links are not counted: perf_event_open of uncore_imc_0-cas_count_read: EACCES (13): kernel.perf_event_paranoid is 2: sysctl kernel.perf_event_paranoid=0"},
		{"within the limit", statOptions{program: []string{"true"}, maxRemote: limit(34)}, 0, "remote: 33.3 %"},
		{"beyond the limit", statOptions{program: []string{"true"}, maxRemote: limit(33)}, exitCheckFailed, "remote: 33.3 %"},
		{"program fails", statOptions{program: []string{"sh", "-c", "exit 9"}, repeat: 5, maxRemote: limit(0)}, 9, "remote: 33.3 %"},
		{"program killed", statOptions{program: []string{"sh", "-c", "kill -9 $$"}}, 137, ""},
		{"no program", statOptions{program: []string{"/no/such"}}, exitUsage, ""},
		{"JSON to nowhere", statOptions{program: []string{"true"}, json: true}, exitUsage, ""},
	} {
		c.opt.host = counted(t)
		if said, err := stat(c.opt); exitCode(err) != c.status || !strings.Contains(said, c.said) {
			t.Errorf("%s: %v (exit status %d)\n%s", c.name, err, exitCode(err), said)
		}
	}
}

// TestStatNotCounted: the gate does not pass on what was not counted, and the program's
// own failure comes first.
func TestStatNotCounted(t *testing.T) {
	limit := 1.0
	never := countedAs(t, func(uint64) (lines, running uint64) { return 0, 0 })
	for script, status := range map[string]int{"exit 0": exitCannot, "exit 9": 9} {
		said, err := stat(statOptions{program: []string{"sh", "-c", script}, maxRemote: &limit, host: never})
		if exitCode(err) != status || !strings.Contains(said+fmt.Sprint(err), "LOCAL_DRAM was not counted") {
			t.Errorf("%s: %v (exit status %d)\n%s", script, err, exitCode(err), said)
		}
	}
}

// TestStatFew: a run of few lines is told, and its status is the program's; only the
// gate cannot be held.
func TestStatFew(t *testing.T) {
	limit := 1.0
	few := countedAs(t, func(uint64) (lines, running uint64) { return 10, 1000 })
	for _, c := range []struct {
		opt    statOptions
		status int
	}{
		{statOptions{program: []string{"true"}}, 0},
		{statOptions{program: []string{"sh", "-c", "exit 9"}, maxRemote: &limit}, 9},
		{statOptions{program: []string{"true"}, maxRemote: &limit}, exitCannot},
	} {
		c.opt.host = few
		if said, err := stat(c.opt); exitCode(err) != c.status || !strings.Contains(said, "remote: too few lines to tell") {
			t.Errorf("%v: %v (exit status %d)\n%s", c.opt.program, err, exitCode(err), said)
		}
	}
}

func TestStatJSON(t *testing.T) {
	out := filepath.Join(t.TempDir(), "stat.json")
	if said, err := stat(statOptions{program: []string{"true"}, json: true, output: out, host: counted(t)}); err != nil {
		t.Fatal(err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var r counters.Result
	if err := json.Unmarshal(text, &r); err != nil || r.Mean.LocalDRAM != 600_000 || len(r.Runs) != 1 || r.Events[0] != "MEM_LOAD_L3_MISS_RETIRED:LOCAL_DRAM (0x1d3, libpfm4 skx)" {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestStatNone: where nothing can be counted, the program does not run.
func TestStatNone(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	for _, h := range []host{fixture(t, "vm", nil), fixture(t, "skylake-sp", unix.EACCES)} {
		_, err := stat(statOptions{program: []string{"touch", ran}, host: h})
		if exitCode(err) != exitCannot {
			t.Errorf("%v", err)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program has run")
	}
}
