package pmu

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// opened is what of a perf_event_open tests look at.
type opened struct {
	Type                     uint32
	Config, Config1, Config2 uint64
	Precise                  int
	User                     bool
	PID, CPU                 int
	Grouped                  bool
}

// kernel answers perf_event_open: err, or a descriptor.
func kernel(t *testing.T, calls *[]opened, answer func(c opened) error) Opener {
	return func(a *unix.PerfEventAttr, pid, cpu, group, _ int) (int, error) {
		c := opened{a.Type, a.Config, a.Ext1, a.Ext2, int(a.Bits / unix.PerfBitPreciseIPBit1 & 3), a.Bits&unix.PerfBitExcludeKernel != 0, pid, cpu, group >= 0}
		*calls = append(*calls, c)
		if err := answer(c); err != nil {
			return -1, err
		}
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.Dup(int(f.Fd()))
		f.Close()
		return fd, err
	}
}

// TestOpen holds what the kernel is asked before perf is run: the same as by perf.
func TestOpen(t *testing.T) {
	anything := func(opened) error { return nil }
	for _, c := range []struct {
		machine string
		pid     int
		answer  func(opened) error
		want    []opened
	}{
		{"skylake-sp", 0, func(c opened) error { // stores are less precise there
			if c.Config == 0x82d0 && c.Precise == 3 {
				return unix.EOPNOTSUPP
			}
			return nil
		}, []opened{
			{Type: 4, Config: 0x1cd, Config1: 3, Precise: 3, User: true, CPU: -1},
			{Type: 4, Config: 0x82d0, Precise: 3, User: true, CPU: -1},
			{Type: 4, Config: 0x82d0, Precise: 2, User: true, CPU: -1},
		}},
		{"sapphire-rapids", 77, anything, []opened{
			{Type: 4, Config: 0x8203, Precise: 3, User: true, PID: 77, CPU: -1},
			{Type: 4, Config: 0x1cd, Config1: 3, Precise: 3, User: true, PID: 77, CPU: -1, Grouped: true},
			{Type: 4, Config: 0x2cd, Precise: 3, User: true, PID: 77, CPU: -1},
		}},
		{"zen2", 77, anything, []opened{{Type: 9, Config: 0x80000, PID: -1, CPU: 0}}},
	} {
		t.Run(c.machine, func(t *testing.T) {
			m := machine(t, c.machine)
			r, err := Choose(m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var calls []opened
			if err := m.Open(r, c.pid, kernel(t, &calls, c.answer)); err != nil {
				t.Fatal(err)
			}
			if c.machine == "zen2" {
				c.want[0].Type = calls[0].Type // the kernel numbers it
			}
			if d := cmp.Diff(c.want, calls); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestOpenErrors holds the words for every answer: call, errno, cause, the one fix.
func TestOpenErrors(t *testing.T) {
	const call = "perf_event_open of mem-loads: "
	for _, c := range []struct {
		machine, paranoid, status string
		pid                       int
		errno                     error
		want                      string
	}{
		{"skylake-sp", "4", "", 0, unix.EACCES, call + "EACCES (13): kernel.perf_event_paranoid is 4: sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON for perf and numaopt"},
		{"zen4", "2", "", 0, unix.EACCES, "perf_event_open of ibs_op: EACCES (13): kernel.perf_event_paranoid is 2: sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON for perf and numaopt"},
		{"zen2", "1", "", 0, unix.EACCES, "perf_event_open of ibs_op: EACCES (13): kernel.perf_event_paranoid is 1: sysctl kernel.perf_event_paranoid=0, or CAP_PERFMON for perf and numaopt"},
		{"skylake-sp", "2", "", 7, unix.EACCES, call + "EACCES (13): process 7 belongs to another user, or may not be traced: run numaopt as its user, or with CAP_PERFMON"},
		{"skylake-sp", "2", "Name:\tx\nSeccomp:\t2\n", 0, unix.EPERM, call + "EPERM (1): a seccomp filter, as containers have, forbids it: docker run --cap-add PERFMON (podman and Kubernetes: the capability PERFMON)"},
		{"skylake-sp", "2", "Name:\tx\nSeccomp:\t0\n", 0, unix.EPERM, call + "EPERM (1): a security policy of this system forbids it: run numaopt with CAP_PERFMON"},
		{"skylake-sp", "2", "", 0, unix.ENOENT, call + "ENOENT (2): the processor, as this kernel sees it, cannot sample this event: use --source faults or emulate"},
		{"skylake-sp", "2", "", 0, unix.EOPNOTSUPP, call + "EOPNOTSUPP (95): the processor, as this kernel sees it, cannot sample this event: use --source faults or emulate"},
		{"skylake-sp", "2", "", 0, unix.ENODEV, call + "ENODEV (19): the processor, as this kernel sees it, cannot sample this event: use --source faults or emulate"},
		{"skylake-sp", "2", "", 0, unix.EBUSY, call + "EBUSY (16): another user has the counter: sysctl kernel.nmi_watchdog=0, and end other profilers"},
		{"skylake-sp", "2", "", 0, unix.EINVAL, call + "EINVAL (22): the kernel does not know the event in this form: use a newer kernel, or --source faults"},
		{"skylake-sp", "2", "", 0, unix.EMFILE, call + "EMFILE (24): the limit of open files (RLIMIT_NOFILE) is reached: ulimit -n with a greater number"},
		{"skylake-sp", "2", "", 0, unix.ENOSYS, call + "ENOSYS (38): this kernel has no performance events: use --source emulate"},
		{"skylake-sp", "2", "", 7, unix.ESRCH, call + "ESRCH (3): there is no process 7"},
	} {
		root := tree(t, c.machine)
		put(t, root, "proc/sys/kernel/perf_event_paranoid", c.paranoid)
		put(t, root, "proc/self/status", c.status)
		m := Read(os.DirFS(root))
		r, err := Choose(m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var calls []opened
		err = m.Open(r, c.pid, kernel(t, &calls, func(opened) error { return c.errno }))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s, paranoid %s:\n got %v\nwant %s", c.machine, c.paranoid, err, c.want)
		}
		if open := (*OpenError)(nil); !errors.As(err, &open) || !errors.Is(err, c.errno) {
			t.Errorf("%v is not an OpenError of %v", err, c.errno)
		}
	}
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOpenFaults opens page faults for real, which this machine has unless a
// container forbids it.
func TestOpenFaults(t *testing.T) {
	m := Read(os.DirFS("/"))
	if err := m.Open(Faults(), 0, unix.PerfEventOpen); errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		t.Skip("no permission to record: ", err)
	} else if err != nil {
		t.Error(err)
	}
	if err := m.Open(Faults(), 1<<22+1, unix.PerfEventOpen); !errors.Is(err, unix.ESRCH) {
		t.Errorf("no such process: %v", err)
	}
}
