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
	Env     []string // of the command; nil is that of this process
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
	// PID is the program's; 0 for what ran already.
	PID int
	// Notes are the limits that it was fitted to, one sentence each.
	Notes []string
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

// Record records as opt says. Before that it records nothing (the program true) in
// the same way: what the kernel or perf refuses is an error with their own words,
// and the command has not run.
func (p Perf) Record(ctx context.Context, opt PerfOptions) (*Recording, error) {
	options := slices.Concat(always, opt.Select, control[:1])
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
	moved := migrated(os.DirFS("/"))
	if err == nil && len(opt.Command) > 0 {
		err = p.run(ctx, r, args, opt)
	} else if err == nil {
		err = p.attach(ctx, r, args, opt)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	r.Migrated = migrated(os.DirFS("/")) - moved
	return r, nil
}

// target is what perf is to follow, as its arguments. Of a program that is held that is
// its first thread alone, and what comes of it: the others end with the holder.
func (opt *PerfOptions) target() []string {
	switch pid := strconv.Itoa(opt.PID); {
	case opt.SystemWide:
		return nil
	case len(opt.Command) > 0:
		return []string{"--inherit", "-t", pid}
	default:
		return []string{"-p", pid}
	}
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
	if full := noRoom(filepath.Dir(file)); full != nil {
		return full
	}
	return limits.explain(fmt.Errorf("perf %s cannot record here (%w). perf says:\n%s", p.Version, err, strings.TrimSpace(said.String())), said.String())
}

// run runs the program with perf attached to it. What becomes of perf is no matter of
// the program's.
func (p Perf) run(ctx context.Context, r *Recording, args []string, opt PerfOptions) error {
	runtime.LockOSThread() // Pdeathsig is of the thread that starts them
	defer runtime.UnlockOSThread()
	program, err := hold(ctx, &opt)
	if err != nil {
		return err
	}
	r.PID = program.pid
	opt.PID = program.pid
	f, err := p.follow(args, &opt)
	if err != nil {
		if end := program.abandon(); end.status > 128 { // a signal, which ended perf's process, too
			r.Status, err = end.status, end.err
		}
		return err
	}
	r.Start = time.Now()
	if err := program.release(); err != nil {
		f.stop() //nolint:errcheck // there is nothing to record
		return err
	}
	end := <-program.ended
	r.Elapsed, r.Status = time.Since(r.Start), end.status
	if err := f.stop(); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("perf ended before the program, which was not recorded any more then: %v", err))
	}
	if err := noRoom(r.dir); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the recording may lack its end: %v", err))
	}
	return end.err
}

// attach runs perf on what runs already, until that, the time or ctx ends.
func (p Perf) attach(ctx context.Context, r *Recording, args []string, opt PerfOptions) error {
	runtime.LockOSThread() // Pdeathsig is of the thread that starts it
	defer runtime.UnlockOSThread()
	f, err := p.follow(args, &opt)
	if err != nil {
		if opt.PID != 0 && syscall.Kill(opt.PID, 0) == syscall.ESRCH {
			return fmt.Errorf("process %d ended before perf had begun", opt.PID)
		}
		return err
	}
	r.Start = time.Now()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if opt.Duration > 0 {
		time.AfterFunc(opt.Duration, stop)
	}
	if opt.SystemWide && opt.PID != 0 {
		go func() { awaitEnd(ctx, opt.PID); stop() }()
	}
	select {
	case <-ctx.Done():
	case <-f.ended:
	}
	r.Elapsed = time.Since(r.Start)
	if err := f.stop(); err != nil {
		return opt.Limits.explain(err, f.said.String())
	}
	return nil
}

// follower is perf at work on what runs already.
type follower struct {
	perf  Perf
	cmd   *exec.Cmd
	said  bytes.Buffer
	ended chan struct{} // closed when perf has ended
}

// control is the descriptor by which perf is asked whether it has begun, and answers.
var control = []string{"--control", "fd:3,3"}

// follow starts perf and returns when it has begun to record. perf is out of the
// terminal's reach, whose hangup would end it without its file, and ends with numaopt.
func (p Perf) follow(args []string, opt *PerfOptions) (*follower, error) {
	numaopt, perf, err := socketPair()
	if err != nil {
		return nil, err
	}
	f := &follower{perf: p, cmd: exec.Command(p.Path, slices.Concat(args, control, opt.target())...), ended: make(chan struct{})}
	f.cmd.Stderr = &f.said
	f.cmd.ExtraFiles = []*os.File{perf}
	f.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	err = f.cmd.Start()
	perf.Close()
	if err != nil {
		numaopt.Close()
		return nil, err
	}
	go func() {
		f.cmd.Wait()    //nolint:errcheck // its state says how it ended
		numaopt.Close() // some versions of perf end where nobody can ask any more
		close(f.ended)
	}()
	// perf answers when it records, and heeds signals: one before that would end it
	// without a file.
	io.WriteString(numaopt, "enable\n") //nolint:errcheck // perf may have ended: then there is no answer
	if n, _ := numaopt.Read(make([]byte, 8)); n == 0 {
		<-f.ended
		return nil, opt.Limits.explain(f.failure(), f.said.String())
	}
	return f, nil
}

// stop ends perf, which then has its file written. An error says why it had ended before.
func (f *follower) stop() error {
	told := false
	select {
	case <-f.ended:
	default:
		told = f.cmd.Process.Signal(syscall.SIGTERM) == nil
		<-f.ended
	}
	if f.cmd.ProcessState.Success() || told && terminated(f.cmd.ProcessState) {
		return nil
	}
	return f.failure()
}

// failure is how perf ended, in its own words.
func (f *follower) failure() error {
	return fmt.Errorf("perf %s: %v. It says:\n%s", f.perf.Version, f.cmd.ProcessState, strings.TrimSpace(f.said.String()))
}

// terminated is whether perf ended as it was told to: it dies of the signal once its
// file is written.
func terminated(state *os.ProcessState) bool {
	ws, ok := state.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGTERM
}

// awaitEnd returns when the process has ended, or with ctx.
func awaitEnd(ctx context.Context, pid int) {
	for syscall.Kill(pid, 0) != syscall.ESRCH {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
