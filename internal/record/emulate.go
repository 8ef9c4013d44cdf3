package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"numaopt/internal/runfile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Emulate runs the command in the emulator and returns what it left behind. An
// error means that the program was not started. The end of ctx ends the
// program; what it has counted by then is in the result.
func Emulate(ctx context.Context, qemu Emulator, opt Options) (raw *Raw, err error) {
	program, err := Resolve(opt.Command[0])
	if err != nil {
		return nil, err
	}
	dir, err := runDir()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &session{dir: dir, qemu: qemu, opt: opt}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	defer s.inbox.close()
	return s.run(ctx, program)
}

// runDir makes the run's directory, in memory where that can be had: it holds a
// hundred small files. QEMU splits its arguments at commas, the dynamic linker
// its list at colons and spaces, and a socket's name is short.
func runDir() (string, error) {
	if os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp("/dev/shm", "numaopt-"); err == nil {
			return dir, nil
		}
	}
	base := os.TempDir()
	if strings.ContainsAny(base, ",: \t\n") || len(base) > 60 || !filepath.IsAbs(base) {
		base = "/tmp"
	}
	return os.MkdirTemp(base, "numaopt-")
}

type session struct {
	dir   string
	qemu  Emulator
	opt   Options
	args  []string // of QEMU, before the program
	env   []string
	set   []string
	inbox *inbox
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }

// prepare fills the run's directory.
func (s *session) prepare() error {
	for _, name := range []string{"emulate.so", runfile.Runtime} {
		lib, err := runfile.Lib(name)
		if err != nil {
			return err
		}
		if _, err := os.Stat(lib); err != nil {
			return err
		}
		if err := os.Symlink(lib, s.path(name)); err != nil {
			return err
		}
	}
	if err := topo.FakeSysfs(s.path("root"), s.opt.Topology); err != nil {
		return err
	}
	order, err := s.opt.Topology.Order(s.opt.Bind)
	if err != nil {
		return err
	}
	if err := s.writeRun(order); err != nil {
		return err
	}
	s.args = []string{"-plugin", s.path("emulate.so") + ",conf=" + s.path("emulate"), "-L", s.path("root")}
	if s.inbox, err = listen(s.path("sock")); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("emulate"), []byte(s.config(order)), 0o600); err != nil {
		return err
	}
	return s.environment()
}

// writeRun writes the runtime's run file.
func (s *session) writeRun(order []topo.CPU) error {
	r := s.opt.Run
	r.Mode, r.System = runfile.Track, runfile.Emulated
	r.CPUs, r.Nodes = nil, nil
	for _, c := range order {
		r.CPUs = append(r.CPUs, runfile.CPU{ID: c.ID, Node: int(c.Node)})
	}
	for _, n := range s.opt.Topology.Nodes {
		r.Nodes = append(r.Nodes, n.OS)
	}
	r.Summary = s.path("summary")
	f, err := os.OpenFile(s.path("run"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := runfile.Write(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// config is the plugin's configuration (runtime-c/plugin/config.c).
func (s *session) config(order []topo.CPU) string {
	var b strings.Builder
	fmt.Fprintf(&b, "numaopt-emulate 1\n")
	for _, c := range order {
		fmt.Fprintf(&b, "cpu %d %d\n", c.ID, c.Node)
	}
	fmt.Fprintf(&b, "nodes %d\nperiod %d\n", len(s.opt.Topology.Nodes), s.opt.Period)
	m := s.opt.Cache
	for _, level := range []struct {
		name string
		c    topo.Cache
	}{{"l1", m.L1}, {"l2", m.L2}, {"llc", m.LLC}} {
		fmt.Fprintf(&b, "%s %d:%d\n", level.name, level.c.Bytes, level.c.Ways)
	}
	fmt.Fprintf(&b, "socket %s\nqemu %s\npreload %s\nrun %s\n", s.path("sock"), s.qemu.Path, s.path(runfile.Runtime), s.path("run"))
	for _, a := range s.args {
		fmt.Fprintf(&b, "arg %s\n", a)
	}
	return b.String()
}

// environment divides the program's variables: those of the dynamic linker
// would act on QEMU itself and go to the program alone, by -E.
func (s *session) environment() error {
	environ := s.opt.Env
	if environ == nil {
		environ = os.Environ()
	}
	environ, err := runfile.Env(environ, s.path(runfile.Runtime), s.path("run"))
	if err != nil {
		return err
	}
	// Threads that spin at barriers would be most of the accesses of 8 threads
	// on few real CPUs.
	environ, s.set = runfile.Quiet(environ)
	for _, kv := range environ {
		if strings.HasPrefix(kv, "LD_") {
			if strings.Contains(kv, ",") {
				return fmt.Errorf("%s: QEMU splits variables of the dynamic linker at commas: set it without one", kv)
			}
			s.args = append(s.args, "-E", kv)
		} else {
			s.env = append(s.env, kv)
		}
	}
	return nil
}

// run starts the program, collects arenas and waits for its end.
func (s *session) run(ctx context.Context, program string) (*Raw, error) {
	program, argv, err := unfold(program, s.opt.Command)
	if err != nil {
		return nil, err
	}
	args := append(append(append([]string{}, s.args...), "-0", argv[0], program), argv[1:]...)
	cmd := exec.Command(s.qemu.Path, args...)
	cmd.Env = s.env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.opt.Stdin, s.opt.Stdout, s.opt.Stderr
	// Without numaopt, were it killed, nobody would take the profile: the program
	// ends, too. The kernel watches the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	raw := &Raw{Start: time.Now(), Set: s.set}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ticks := 0
	raw.Status, err = Wait(ctx, cmd, func() {
		s.inbox.condense()
		if ticks++; s.opt.Progress != nil && ticks%5 == 0 {
			s.opt.Progress(s.inbox.accesses(), time.Since(raw.Start))
		}
	})
	raw.Elapsed = time.Since(raw.Start)
	s.inbox.drain()
	raw.Arenas, raw.Processes, raw.OtherAccesses = s.inbox.take()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		raw.Signal = ws.Signal()
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return raw, nil
}

// Wait waits for a program that was started, passing signals on to it, and returns
// its exit status, 128+signal where a signal ended it. tick is called five times a
// second. The end of ctx ends the program.
func Wait(ctx context.Context, cmd *exec.Cmd, tick func()) (status int, err error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	err = await(ctx, cmd.Process, done, tick)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// await waits for the program's end, and calls tick five times a second. Signals that a
// terminal sends go to the program as well; others are passed on to it.
func await(ctx context.Context, p *os.Process, done <-chan error, tick func()) error {
	signals := make(chan os.Signal, 16)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) { // as under nohup
			signal.Notify(signals, sig)
		}
	}
	defer signal.Stop(signals)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	cancelled := ctx.Done()
	for {
		select {
		case err := <-done:
			return err
		case sig := <-signals:
			if !fromTerminal(sig) {
				p.Signal(sig) //nolint:errcheck // it may have ended just now
			}
		case <-cancelled:
			cancelled = nil
			p.Signal(syscall.SIGTERM) //nolint:errcheck // as above
		case <-ticker.C:
			tick()
		}
	}
}

// fromTerminal reports whether the terminal has sent the signal to the whole
// foreground group, the program included.
func fromTerminal(sig os.Signal) bool {
	if sig != syscall.SIGINT && sig != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// ParseCache reads a cache such as "16K:8": bytes and ways.
func ParseCache(text string) (topo.Cache, error) {
	size, ways, ok := strings.Cut(text, ":")
	bytes, err := units.ParseBytes(size)
	var n int
	if _, errWays := fmt.Sscanf(ways, "%d", &n); !ok || err != nil || errWays != nil || fmt.Sprint(n) != ways {
		return topo.Cache{}, fmt.Errorf("cache %q: want BYTES:WAYS, such as 16K:8", text)
	}
	if n < 1 || n > 32 {
		return topo.Cache{}, fmt.Errorf("cache %q: %d ways, want 1 to 32", text, n)
	}
	if bytes <= 0 || int64(bytes) > 1<<32 || int64(bytes)%int64(64*n) != 0 {
		return topo.Cache{}, fmt.Errorf("cache %q: the size must be a multiple of %d bytes (ways of 64-byte lines), up to 4G", text, 64*n)
	}
	return topo.Cache{Bytes: int64(bytes), Ways: n}, nil
}
