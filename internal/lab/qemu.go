package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// ErrNoQEMU says that the emulator is missing; its message has the cure.
var ErrNoQEMU = errors.New("qemu-system-x86_64 is missing: apt-get install qemu-system-x86")

// errQEMU is a QEMU that ended before the guest had anything to say.
var errQEMU = errors.New("QEMU ended")

const emulator = "qemu-system-x86_64"

// Ports at 10.0.2.100 that the guest connects to, and the sockets behind them.
var ports = []struct {
	port int
	name string
}{{2048, "mount"}, {2049, "nfs"}, {2050, "control"}}

// guest is one boot.
type guest struct {
	dir     string // of this lab: sockets, console, images, counts
	plugin  string // lab.so
	kernel  Kernel
	nodes   int
	cpus    int // per node
	memory  units.Bytes
	caches  topo.CacheModel
	only    bool
	pages   bool
	thp     string // never, always, madvise
	balance bool

	bootSilence, runSilence time.Duration
}

// nodeBytes is each node's memory: whole sections of 128 MiB, as Linux counts it.
func (g *guest) nodeBytes() units.Bytes {
	const section = 128 * units.MiB
	return max((g.memory/units.Bytes(g.nodes)+section-1)/section, 2) * section
}

func (g *guest) countsPrefix() string { return filepath.Join(g.dir, "counts") }
func (g *guest) console() string      { return filepath.Join(g.dir, "console") }

// comma doubles the commas of a path, as QEMU's options want.
func comma(s string) string { return strings.ReplaceAll(s, ",", ",,") }

// args is QEMU's command line.
func (g *guest) args() []string {
	node, n := g.nodeBytes(), g.nodes*g.cpus
	a := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max",
		"-smp", fmt.Sprintf("%d,sockets=%d,cores=%d,threads=1", n, g.nodes, g.cpus),
		"-m", fmt.Sprintf("%dM", node*units.Bytes(g.nodes)/units.MiB),
	}
	for i := range g.nodes {
		a = append(a,
			"-object", fmt.Sprintf("memory-backend-ram,size=%dM,id=m%d", node/units.MiB, i),
			"-numa", fmt.Sprintf("node,nodeid=%d,memdev=m%d,cpus=%d-%d", i, i, i*g.cpus, (i+1)*g.cpus-1))
	}
	net := "user,id=net,restrict=on"
	for _, p := range ports {
		net += fmt.Sprintf(",guestfwd=tcp:10.0.2.100:%d-unix:%s", p.port, comma(filepath.Join(g.dir, p.name)))
	}
	return append(a,
		"-kernel", g.kernel.Image, "-initrd", filepath.Join(g.dir, "initramfs"), "-append", g.commandLine(),
		"-chardev", "file,id=console,path="+comma(g.console()), "-serial", "chardev:console",
		"-drive", "if=none,id=scratch,format=raw,cache=unsafe,file="+comma(filepath.Join(g.dir, "scratch")),
		"-device", "nvme,serial=scratch,drive=scratch",
		"-netdev", net, "-device", "virtio-net-pci,netdev=net,romfile=",
		"-plugin", g.pluginArg(),
	)
}

func (g *guest) pluginArg() string {
	bit := map[bool]int{true: 1}
	return fmt.Sprintf("%s,nodes=%d,cpus=%d,node-bytes=%d,l1=%s,l2=%s,llc=%s,only=%d,pages=%d,out=%s", comma(g.plugin), g.nodes, g.cpus,
		g.nodeBytes(), cacheArg(g.caches.L1), cacheArg(g.caches.L2), cacheArg(g.caches.LLC), bit[g.only], bit[g.pages], comma(g.countsPrefix()))
}

func cacheArg(c topo.Cache) string { return fmt.Sprintf("%d:%d", c.Bytes, c.Ways) }

// commandLine is the kernel's. Watchdogs are off because the guest is slow, not
// stuck, and the test of the timer's interrupt at boot because on a busy host it
// finds none in time ("MP-BIOS bug: 8254 timer not connected") and the guest
// stays without a tick; mitigations because they cost a page-table switch per
// system call.
//
// The kernel boots on one CPU, and init starts the others when all is set up.
// QEMU 7.2 may translate an instruction that another CPU is changing and keep the
// old one for good: of the breakpoints by which Linux changes its own code while
// it starts, one in the timer's interrupt (sched_clock_tick) stayed on all CPUs,
// which then did nothing else. A single CPU cannot be caught so. lpj spares each of
// the others the measuring of its speed.
func (g *guest) commandLine() string {
	balance := "disable"
	if g.balance {
		balance = "enable"
	}
	return strings.Join([]string{
		"console=ttyS0", "quiet", "panic=-1", "nokaslr", "mitigations=off", "nowatchdog", "no_timer_check", "rcupdate.rcu_cpu_stall_suppress=1",
		"maxcpus=1", "noreplace-smp", "lpj=10000000", "tsc=reliable", "random.trust_cpu=on",
		"transparent_hugepage=" + g.thp, "numa_balancing=" + balance,
	}, " ")
}

// boot runs the guest until it has reported everything to l, serving it the
// host's files meanwhile.
func (g *guest) boot(ctx context.Context, l listener) error {
	files, err := newShare()
	if err != nil {
		return err
	}
	listeners := map[string]net.Listener{}
	for _, p := range ports {
		socket, err := net.Listen("unix", filepath.Join(g.dir, p.name))
		if err != nil {
			return fmt.Errorf("%w (a shorter TMPDIR may help)", err)
		}
		defer socket.Close()
		listeners[p.name] = socket
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := g.start(ctx)
	var serving sync.WaitGroup
	result := make(chan error, 1+len(ports))
	for _, name := range []string{"mount", "nfs"} {
		serving.Go(func() {
			conn, err := listeners[name].Accept()
			if err != nil {
				return
			}
			// A connection that ends ended with QEMU, or the guest falls silent.
			if err := files.serve(conn); errors.Is(err, errCall) {
				result <- err
			}
		})
	}
	go func() {
		socket := listeners["control"]
		socket.(*net.UnixListener).SetDeadline(time.Now().Add(g.bootSilence))
		conn, err := socket.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errSilent
		}
		if err == nil {
			defer conn.Close()
			err = attend(&patient{conn: conn, boot: g.bootSilence, run: g.runSilence}, l)
		}
		result <- err
	}()
	err = g.wait(ctx, ended, result)
	stop()
	<-ended
	for _, socket := range listeners {
		socket.Close()
	}
	served := make(chan struct{})
	go func() {
		serving.Wait()
		files.close()
		close(served)
	}()
	select {
	case <-served:
	case <-time.After(5 * time.Second): // a file system of the host's that does not answer
	}
	return err
}

// wait is the first of: the guest has said everything, QEMU has ended, the user
// has had enough.
func (g *guest) wait(ctx context.Context, ended <-chan error, result <-chan error) error {
	var err error
	select {
	case err = <-result:
		var said errGuest
		if err == nil || errors.As(err, &said) || errors.Is(err, errCall) {
			return err
		}
		if errors.Is(err, errSilent) {
			break
		}
		// The connection broke because QEMU ended, which knows more of it.
		select {
		case err = <-ended:
		case <-time.After(2 * time.Second):
		}
	case err = <-ended:
		// What the guest said last may still be on its way.
		select {
		case said := <-result:
			if _, ok := said.(errGuest); ok || said == nil {
				return said
			}
		case <-time.After(time.Second):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if tail := g.consoleTail(); tail != "" && !errors.Is(err, errSilent) {
		return fmt.Errorf("%w; the guest's console ends with: %s", err, tail)
	}
	return err
}

// start runs QEMU; the channel gets its end, and is then closed. The thread that
// starts it waits for it, because the kernel ends QEMU with that thread: QEMU
// must not outlive numaopt, however that ends.
func (g *guest) start(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		var text bytes.Buffer
		cmd := exec.CommandContext(ctx, emulator, g.args()...)
		cmd.Stdout, cmd.Stderr = &text, &text
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		err := cmd.Run()
		if errors.Is(err, exec.ErrNotFound) {
			err = ErrNoQEMU
		} else if text.Len() > 0 {
			err = fmt.Errorf("%w: %s", errQEMU, lastLine(text.Bytes()))
			if bytes.Contains(text.Bytes(), []byte("cannot set up guest memory")) {
				err = fmt.Errorf("%w: give the guest less with --memory", err)
			}
		} else {
			err = errQEMU
		}
		ended <- err
	}()
	return ended
}

// consoleTail is the last lines of the guest's console, in one.
func (g *guest) consoleTail() string {
	f, err := os.Open(g.console())
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > 4096 {
		f.Seek(-4096, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}
