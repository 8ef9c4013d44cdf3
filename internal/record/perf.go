package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Perf is the program that has the kernel's samples written down.
type Perf struct{ Path, Version string }

// FindPerf finds perf in PATH.
func FindPerf() (Perf, error) {
	path, err := exec.LookPath("perf")
	if err != nil {
		return Perf{}, fmt.Errorf("perf is not installed: apt-get install linux-perf (Ubuntu: linux-tools-$(uname -r))")
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		return Perf{}, fmt.Errorf("%s --version: %w: it does not run here; on Ubuntu, install linux-tools-$(uname -r)", path, err)
	}
	return Perf{path, strings.TrimSpace(strings.TrimPrefix(string(out), "perf version"))}, nil
}

// PerfOptions say what perf is to record.
type PerfOptions struct {
	Command []string
	// Select are the arguments that name events and their period.
	Select []string
	// Better are such arguments that are tried first; nil for none.
	Better []string
	// SystemWide records all processes.
	SystemWide bool

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Recording is a file of perf's, and how the program ended. Close removes it.
type Recording struct {
	File    string
	Start   time.Time
	Elapsed time.Duration
	Status  int // 128+signal where a signal ended the program
	// Migrated is how many pages NUMA balancing moved meanwhile, of all processes.
	Migrated uint64

	dir string
}

// Close removes the file.
func (r *Recording) Close() { os.RemoveAll(r.dir) }

// always is what every recording has: data addresses, the CPU, and the clock that
// the runtime reads, too.
var always = []string{"-d", "--sample-cpu", "-k", "CLOCK_MONOTONIC"}

// extras are what a recording has beside that where the kernel allows it: first
// physical addresses, from which homes are known, which it gives to administrators.
var extras = [][]string{{"--phys-data"}, nil}

// Record runs the command under perf record. Before that it records nothing (the
// program true) in the same way: what the kernel or perf refuses is an error with
// their own words, and the command has not run.
func (p Perf) Record(ctx context.Context, opt PerfOptions) (*Recording, error) {
	dir, err := os.MkdirTemp("", "numaopt-perf-")
	if err != nil {
		return nil, err
	}
	r := &Recording{File: filepath.Join(dir, "perf.data"), dir: dir}
	var args []string
	var refused error
	for _, way := range opt.ways() {
		args = append(append([]string{"record", "-q", "-o", r.File}, always...), way...)
		if opt.SystemWide {
			args = append(args, "-a")
		}
		if refused = p.try(ctx, args); refused == nil {
			break
		}
	}
	if refused != nil {
		r.Close()
		return nil, refused
	}
	if err := p.run(ctx, r, append(append(args, "--"), opt.Command...), opt); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// ways are the arguments to try, best first.
func (opt *PerfOptions) ways() [][]string {
	var out [][]string
	if opt.Better != nil {
		out = append(out, opt.Better)
	}
	for _, extra := range extras {
		out = append(out, append(slices.Clone(extra), opt.Select...))
	}
	return out
}

// try records the program true.
func (p Perf) try(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, p.Path, append(append([]string{}, args...), "--", "true")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	paranoid, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	return fmt.Errorf("perf %s cannot record here (%w; kernel.perf_event_paranoid is %s). perf says:\n%s", p.Version, err,
		strings.TrimSpace(string(paranoid)), strings.TrimSpace(said.String()))
}

// run runs perf on the command. Signals of the terminal reach the program as they
// would alone; perf writes its file when that has ended.
func (p Perf) run(ctx context.Context, r *Recording, args []string, opt PerfOptions) error {
	cmd := exec.Command(p.Path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = opt.Stdin, opt.Stdout, opt.Stderr
	r.Start = time.Now()
	before := migrated(os.DirFS("/"))
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err := await(ctx, cmd.Process, done, func() {})
	r.Elapsed = time.Since(r.Start)
	r.Migrated = migrated(os.DirFS("/")) - before
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	} else {
		r.Status = cmd.ProcessState.ExitCode()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}
