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
	"regexp"
	"runtime"
	"slices"
	"strconv"
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
	if errors.Is(err, syscall.EMFILE) {
		return Perf{}, fmt.Errorf("%w: the limit of open files (RLIMIT_NOFILE) is reached: ulimit -n with a greater number", err)
	}
	if err != nil {
		return Perf{}, fmt.Errorf("%s --version: %w: it does not run here; on Ubuntu, install linux-tools-$(uname -r)", path, err)
	}
	return Perf{path, strings.TrimSpace(strings.TrimPrefix(string(out), "perf version"))}, nil
}

// PerfOptions say what perf is to record: a command, a process (PID), or without
// either the whole machine, the latter two until ctx is done.
type PerfOptions struct {
	Command []string
	PID     int
	// Select are the arguments that name events and their period.
	Select []string
	// Better are such arguments that are tried first; nil for none.
	Better []string
	// SystemWide records all processes.
	SystemWide bool
	// Duration ends the recording of what runs already; 0 is not by time.
	Duration time.Duration
	Limits   Limits

	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Recording is a file of perf's, and how the program ended. Close removes it.
type Recording struct {
	File    string
	Start   time.Time
	Elapsed time.Duration
	Status  int // 128+signal where a signal ended the program
	// PID is perf's own: the program is its child.
	PID int
	// Notes are the limits that it was fitted to, one sentence each.
	Notes []string
	// Migrated is how many pages NUMA balancing moved meanwhile, of all processes.
	Migrated uint64

	dir string
}

// Close removes the file.
func (r *Recording) Close() { os.RemoveAll(r.dir) }

// quiet leaves the program's stderr to the program. perf is silent about refusals,
// too, then.
const quiet = "-q"

// always is what every recording has: data addresses, the CPU, and the clock that
// the runtime reads, too.
var always = []string{"-d", "--sample-cpu", "-k", "CLOCK_MONOTONIC"}

// extras are what a recording has beside that where the kernel allows it: first
// physical addresses, from which homes are known, which it gives to administrators.
var extras = [][]string{{"--phys-data"}, nil}

// Record records as opt says. Before that it records nothing (the program true) in
// the same way: what the kernel or perf refuses is an error with their own words,
// and the command has not run.
func (p Perf) Record(ctx context.Context, opt PerfOptions) (*Recording, error) {
	options := append(append([]string{}, always...), opt.Select...)
	if opt.SystemWide {
		options = append(options, "-a")
	}
	if err := p.lacks(ctx, options); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "numaopt-perf-")
	if err != nil {
		return nil, err
	}
	r := &Recording{File: filepath.Join(dir, "perf.data"), dir: dir, Notes: opt.Limits.raise()}
	args, err := p.fit(ctx, r, opt)
	if args = append(args, opt.target()...); err == nil && len(opt.Command) > 0 {
		err = p.run(ctx, r, append([]string{args[0], quiet}, args[1:]...), opt)
	} else if err == nil {
		err = p.attach(ctx, r, args, opt)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// target is what perf is to follow, as its arguments.
func (opt *PerfOptions) target() []string {
	switch {
	case len(opt.Command) > 0:
		return append([]string{"--"}, opt.Command...)
	case opt.SystemWide:
		return nil
	}
	return []string{"-p", strconv.Itoa(opt.PID)}
}

var optionText = regexp.MustCompile(`^-[a-zA-Z]$|^--[a-z-]+$`)

// lacks is an error where perf is so old that it has not all options; what its help
// does not list, it does not know.
func (p Perf) lacks(ctx context.Context, options []string) error {
	help, _ := exec.CommandContext(ctx, p.Path, "record", "-h").CombinedOutput() // its status is that of a mistake
	if !bytes.Contains(help, []byte("--output")) {
		return nil // a help that is written otherwise tells nothing
	}
	for _, o := range options {
		listed := regexp.MustCompile(`(?m)^\s*(-\w, )?` + regexp.QuoteMeta(o) + `\b`)
		if optionText.MatchString(o) && !listed.Match(help) {
			return fmt.Errorf("perf %s is too old: perf record has no %s; install the perf of a newer kernel (any newer perf works with this kernel)", p.Version, o)
		}
	}
	return nil
}

// buffers are the sizes of perf's buffer for each CPU, in pages, that are tried: its
// own choice, then less, for kernels that let a user lock little memory.
var buffers = []int{0, 64, 32, 16, 8, 4}

// fit finds what the kernel allows and returns perf's arguments before its target.
func (p Perf) fit(ctx context.Context, r *Recording, opt PerfOptions) ([]string, error) {
	base := append([]string{"record", "-o", r.File}, always...)
	var refused error
	for _, pages := range buffers {
		for _, way := range opt.ways() {
			args := slices.Concat(base, way, opt.Limits.buffer(pages, slices.Concat(base, way)))
			if refused = p.try(ctx, r.File, args, opt.Limits); refused == nil {
				if pages > 0 {
					r.Notes = append(r.Notes, fmt.Sprintf("perf's buffers have only %d pages for each CPU, as the kernel lets this user lock no more memory (%s): samples may be lost", pages, opt.Limits.memory()))
				}
				return args, nil
			}
		}
		if !errors.Is(refused, errLocked) {
			break
		}
	}
	return nil, refused
}

// ways are the arguments to try, best first.
func (opt *PerfOptions) ways() [][]string {
	var out [][]string
	if opt.Better != nil {
		out = append(out, opt.Better)
	}
	for _, extra := range extras {
		out = append(out, slices.Concat(opt.Select, extra))
	}
	for i := range out {
		if opt.SystemWide {
			out[i] = append(out[i], "-a")
		}
	}
	return out
}

// try records the program true in file.
func (p Perf) try(ctx context.Context, file string, args []string, limits Limits) error {
	cmd := exec.CommandContext(ctx, p.Path, append(append([]string{}, args...), "--", "true")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	os.Remove(file) // or it would pass for the program's, were perf to write none
	if err == nil {
		return nil
	}
	return limits.explain(fmt.Errorf("perf %s cannot record here (%w). perf says:\n%s", p.Version, err, strings.TrimSpace(said.String())), said.String())
}

// run runs perf on the command. Signals of the terminal reach the program as they
// would alone; perf writes its file when that has ended.
func (p Perf) run(ctx context.Context, r *Recording, args []string, opt PerfOptions) (err error) {
	cmd := exec.Command(p.Path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = opt.Stdin, opt.Stdout, opt.Stderr
	r.Start = time.Now()
	before := migrated(os.DirFS("/"))
	if err := cmd.Start(); err != nil {
		return err
	}
	r.PID = cmd.Process.Pid
	r.Status, err = Wait(ctx, cmd, func() {})
	r.Elapsed, r.Migrated = time.Since(r.Start), migrated(os.DirFS("/"))-before
	return err
}

// attach runs perf on what runs already, until that, the time or ctx ends. perf is
// out of the terminal's reach, whose hangup would end it without its file, and ends
// with numaopt.
func (p Perf) attach(ctx context.Context, r *Recording, args []string, opt PerfOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if opt.Duration > 0 {
		go func() { awaitBegin(ctx, r.File); pause(ctx, opt.Duration); stop() }()
	}
	if opt.SystemWide && opt.PID != 0 {
		go func() { awaitEnd(ctx, opt.PID); stop() }()
	}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Cancel = func() error {
		patience, enough := context.WithTimeout(context.Background(), 10*time.Second)
		defer enough()
		awaitBegin(patience, r.File)
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	runtime.LockOSThread() // Pdeathsig is of the thread that starts it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	r.Start = time.Now()
	err := cmd.Run()
	r.Elapsed = time.Since(r.Start)
	if err == nil || ctx.Err() != nil && cmd.ProcessState != nil && ended(cmd.ProcessState) {
		return nil
	}
	if opt.PID != 0 && syscall.Kill(opt.PID, 0) == syscall.ESRCH {
		return fmt.Errorf("process %d ended before perf had begun", opt.PID)
	}
	return opt.Limits.explain(fmt.Errorf("perf %s: %w. It says:\n%s", p.Version, err, strings.TrimSpace(said.String())), said.String())
}

// ended is whether perf ended as it was told to: it dies of the signal once its file
// is written.
func ended(state *os.ProcessState) bool {
	ws, ok := state.Sys().(syscall.WaitStatus)
	return state.Success() || ok && ws.Signaled() && ws.Signal() == syscall.SIGTERM
}

// awaitBegin returns when perf has begun to write its file, or with ctx: before that
// it does not heed signals yet, and would die of one without a file.
func awaitBegin(ctx context.Context, file string) {
	for ctx.Err() == nil {
		if st, err := os.Stat(file); err == nil && st.Size() > 0 {
			return
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// awaitEnd returns when the process has ended, or with ctx.
func awaitEnd(ctx context.Context, pid int) {
	for ctx.Err() == nil && syscall.Kill(pid, 0) != syscall.ESRCH {
		pause(ctx, 100*time.Millisecond)
	}
}

// pause waits for a time, or for ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
