package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

// A stand-in for perf: this test's own program, when it is started by that name. It
// writes down how it was called and writes a recording as perf would, or behaves
// as STANDIN says.
const (
	standinMode = "STANDIN"     // what goes wrong
	standinLog  = "STANDIN_LOG" // file: one JSON list of arguments a line
	standinPID  = "STANDIN_PID" // the process that a recording of the whole machine sees beside others
)

// standIn puts the stand-in first in PATH and returns its calls so far.
func standIn(t *testing.T, mode string) (calls func() [][]string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "perf")); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "calls")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(standinMode, mode)
	t.Setenv(standinLog, log)
	return func() [][]string {
		text, _ := os.ReadFile(log)
		var out [][]string
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var args []string
			json.Unmarshal([]byte(line), &args) //nolint:errcheck // ours
			out = append(out, args)
		}
		return out
	}
}

// recordHelp is as much of perf record -h as numaopt looks for.
const recordHelp = ` Usage: perf record [<options>] [<command>]
    -a, --all-cpus        system-wide collection from all CPUs
    -c, --count <n>       event period to sample
    -d, --data            Record the sample addresses
    -e, --event <event>   event selector. use 'perf list' to list available events
    -F, --freq <freq or 'max'>
    -k, --clockid <clockid>
    -o, --output <file>   output file name
    -W, --weight          sample by weight (on special events only)
        --control <fd:ctl-fd[,ack-fd] or fifo:ctl-fifo[,ack-fifo]>
        --phys-data       Record the sample physical addresses
        --sample-cpu      Record the sample cpu
`

func standinPerf(args []string) int {
	mode := os.Getenv(standinMode)
	switch {
	case slices.Equal(args, []string{"--version"}):
		fmt.Println("perf version 6.8.12")
		return 0
	case slices.Equal(args, []string{"record", "-h"}):
		help := recordHelp
		if mode == "old" {
			help = strings.Replace(help, "    -k, --clockid <clockid>\n", "", 1)
		}
		fmt.Fprint(os.Stderr, help)
		return 129
	}
	note(args)
	if words, status := refusal(mode, args); status != 0 {
		fmt.Fprintln(os.Stderr, words)
		return status
	}
	if slices.Contains(args, "--") { // numaopt's trial
		writeRecording(mode, args, uint32(os.Getpid()))
		return 0
	}
	return standinAttached(mode, args)
}

// note adds a call to the log.
func note(args []string) {
	log, err := os.OpenFile(os.Getenv(standinLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err == nil {
		json.NewEncoder(log).Encode(args) //nolint:errcheck // the test misses it
		log.Close()
	}
}

// refusal is what perf says in a mode, in its own words.
func refusal(mode string, args []string) (words string, status int) {
	switch {
	case mode == "gone" && !slices.Contains(args, "--"):
		return "", 255
	case mode == "refuses":
		return "Error:\nThe sys_perf_event_open() syscall returned with 22 (Invalid argument) for event (x).", 255
	case mode == "files":
		return "Error:\nToo many events are opened.\nProbably the maximum number of open file descriptors has been reached.", 255
	case mode == "mlock" && !slices.Contains(args, "16"), mode == "mlock-never":
		return "Permission error mapping pages.\nConsider increasing /proc/sys/kernel/perf_event_mlock_kb,\nor try again with a smaller value of -m/--mmap_pages.", 255
	case mode == "no-phys" && slices.Contains(args, "--phys-data"):
		return "Error:\nNo permission.", 255
	}
	return "", 0
}

// dieOf ends this process by a signal, in a shell's place: a Go program prints its
// stacks at some.
func dieOf(sig syscall.Signal) {
	signal.Reset()
	syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("kill -%d $$", sig)}, nil) //nolint:errcheck // the test sees it
}

// standinAttached records until it is told to end, or its process has ended.
func standinAttached(mode string, args []string) int {
	signals := make(chan os.Signal, 1)
	time.Sleep(100 * time.Millisecond) // before it heeds signals, as perf takes some time
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	pid, followed := standinTarget(args)
	standinBegins(args)
	switch mode {
	case "dies":
		syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // it is us
	case "full":
		fmt.Fprintln(os.Stderr, "failed to write perf data, error: No space left on device")
		return 228
	}
	for !followed || syscall.Kill(pid, 0) == nil {
		select {
		case sig := <-signals:
			writeRecording(mode, args, uint32(pid))
			dieOf(sig.(syscall.Signal))
		case <-time.After(10 * time.Millisecond):
		}
	}
	writeRecording(mode, args, uint32(pid))
	return 0
}

// standinTarget is the process that a recording is of: one that perf follows or, in a
// recording of the whole machine, the one that the test names, else numaopt's other child.
func standinTarget(args []string) (pid int, followed bool) {
	for _, flag := range []string{"-p", "-t"} {
		if i := slices.Index(args, flag); i >= 0 {
			pid, _ = strconv.Atoi(args[i+1])
			return pid, true
		}
	}
	if pid, err := strconv.Atoi(os.Getenv(standinPID)); err == nil {
		return pid, false
	}
	parent := os.Getppid()
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(text)) {
			if n, _ := strconv.Atoi(child); n != os.Getpid() {
				return n, false
			}
		}
	}
	return parent, false
}

// standinBegins answers on the descriptors of --control when it is asked.
func standinBegins(args []string) {
	var ask, answer uintptr
	if i := slices.Index(args, "--control"); i >= 0 {
		fmt.Sscanf(args[i+1], "fd:%d,%d", &ask, &answer)
	}
	asked := make([]byte, 16)
	if n, _ := os.NewFile(ask, "ask").Read(asked); string(asked[:n]) == "enable\n" {
		os.NewFile(answer, "answer").WriteString("ack\n") //nolint:errcheck // the test misses it
	}
}

// writeRecording writes 40 samples of a process; system-wide, also 100 of perf's own
// and of a bystander.
func writeRecording(mode string, args []string, pid uint32) {
	const fields = pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc
	w := &pt.Writer{Events: []pt.Event{{Name: "mem-loads", IDs: []uint64{1},
		Attr: perfdata.Attr{Type: 4, Period: 1000, SampleType: fields, ReadFormat: 4, Flags: pt.SampleIDAll}}}}
	perf := uint32(os.Getpid())
	const time = 1_000_000
	fork := func(pid, parent uint32) {
		b := w.U64(w.U32(nil, pid, parent, pid, parent), time)
		w.Record(7, 0, w.Trailer(b, pid, pid, time), nil)
	}
	add := func(pid uint32, name string, n int) {
		w.Comm(pid, pid, time, name)
		w.Mmap(pid, pid, time, 0x7f0000000000, 0x100000, 0, "//anon")
		if mode == "idle" {
			n = 0
		}
		for i := range n {
			w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: pid, TID: pid, Time: time + uint64(i+1)*1e6, Addr: 0x7f0000000000 + uint64(i)<<12, IP: 0x401000,
				Period: 1000, Latency: 200, Source: perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5 | perfdata.NumRAM<<33)})
		}
	}
	fork(pid, perf)
	add(pid, "app", 40)
	if slices.Contains(args, "-a") {
		add(perf, "perf", 100)
		add(1, "bystander", 100)
	}
	text := w.File()
	if mode == "cut" {
		text = text[:len(text)*2/3]
	}
	os.WriteFile(args[slices.Index(args, "-o")+1], text, 0o666) //nolint:errcheck // the test misses it
}

// errOnly is a stdio whose stderr is kept.
func errOnly(b io.Writer) *stdio { return &stdio{out: io.Discard, err: b} }
