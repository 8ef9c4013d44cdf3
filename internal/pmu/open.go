package pmu

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Opener is the system call perf_event_open; unix.PerfEventOpen is the kernel's.
type Opener func(attr *unix.PerfEventAttr, pid, cpu, group, flags int) (fd int, err error)

// OpenError is an event that the kernel does not open, why, and the one fix.
type OpenError struct {
	Event string
	Errno syscall.Errno
	Why   string
	Fix   string
}

func (e *OpenError) Error() string {
	name := unix.ErrnoName(e.Errno)
	if e.Errno == unix.EOPNOTSUPP {
		name = "EOPNOTSUPP" // as perf_event_open(2) has it; x/sys prefers the other name
	}
	text := fmt.Sprintf("perf_event_open of %s: %s (%d): %s", e.Event, name, int(e.Errno), e.Why)
	if e.Fix != "" {
		text += ": " + e.Fix
	}
	return text
}

// Unwrap returns the errno.
func (e *OpenError) Unwrap() error { return e.Errno }

// Open opens the recipe's events as perf will, and closes them again: the kernel's
// answer says what perf's words would leave to guess. pid is the process to attach
// to; 0 is one that is still to be started. The error is an *OpenError.
func (m *Machine) Open(r *Recipe, pid int, open Opener) error {
	leader, cpu := -1, -1
	if r.SystemWide {
		pid, cpu = -1, m.firstCPU()
	}
	defer func() { closeEvent(leader) }()
	for i := range r.Events {
		fd, err := m.open(r, &r.Events[i], pid, cpu, leader, open)
		if err != nil {
			return m.openError(r, &r.Events[i], pid, err)
		}
		closeEvent(leader)
		if leader = -1; r.Events[i].Role == Auxiliary {
			leader = fd // of the group with the next one
			continue
		}
		closeEvent(fd)
	}
	return nil
}

func closeEvent(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}

// open tries the most precise form first, as perf does for the modifier P
// (evsel__precise_ip_fallback of tools/perf/util/evsel.c).
func (m *Machine) open(r *Recipe, e *Event, pid, cpu, leader int, open Opener) (fd int, err error) {
	attr := m.attr(r, e)
	precise := 0
	if r.Kind == pebs {
		precise = 3
	}
	for ; precise >= 0; precise-- {
		attr.Bits = attr.Bits&^(unix.PerfBitPreciseIPBit1|unix.PerfBitPreciseIPBit2) | uint64(precise)*unix.PerfBitPreciseIPBit1
		fd, err = open(attr, pid, cpu, leader, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil || !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EOPNOTSUPP) {
			break
		}
	}
	return fd, err
}

// CounterAttr is the event for counting, which reads as value, time enabled and time
// running.
func (m *Machine) CounterAttr(e *Event) *unix.PerfEventAttr {
	kind := m.number(path.Join(devices, e.Device, "type"))
	if e.Device == software {
		kind = unix.PERF_TYPE_SOFTWARE
	}
	a := &unix.PerfEventAttr{Type: uint32(kind), Config: e.Config, Ext1: e.Config1, Ext2: e.Config2,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING}
	a.Size = uint32(unsafe.Sizeof(*a))
	return a
}

// ProgramAttr is the counter of a program that is still to be started, with all that it
// starts in turn, in user space: more than that an ordinary user may not count.
func (m *Machine) ProgramAttr(e *Event) *unix.PerfEventAttr {
	a := m.CounterAttr(e)
	a.Bits = unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	return a
}

// CounterError explains why the kernel does not open a counter, of the program or
// of the whole machine.
func (m *Machine) CounterError(e *Event, machine bool, err error) error {
	return m.openError(&Recipe{UserOnly: true, SystemWide: machine, Kind: counting}, e, 0, err)
}

// counting is the kind of a recipe that only counts.
const counting = "counting"

// attr is the event as perf asks the kernel for it.
func (m *Machine) attr(r *Recipe, e *Event) *unix.PerfEventAttr {
	a := m.CounterAttr(e)
	a.Sample, a.Sample_type, a.Bits = r.Period, unix.PERF_SAMPLE_ADDR, unix.PerfBitDisabled
	if r.Period == 0 {
		a.Sample, a.Bits = r.Frequency, a.Bits|unix.PerfBitFreq
	}
	if r.UserOnly {
		a.Bits |= unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv
	}
	return a
}

func (m *Machine) firstCPU() int {
	var cpu int
	fmt.Sscanf(m.text("sys/devices/system/cpu/online"), "%d", &cpu) //nolint:errcheck // CPU 0
	return cpu
}

// openError explains the kernel's answer (its meanings: perf_event_open(2)).
func (m *Machine) openError(r *Recipe, e *Event, pid int, err error) error {
	out := &OpenError{Event: e.Name, Why: err.Error()}
	if !errors.As(err, &out.Errno) {
		return err
	}
	switch out.Errno {
	case unix.EACCES, unix.EPERM:
		out.Why, out.Fix = m.forbidden(r, pid)
	case unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP:
		out.Why, out.Fix = "the processor, as this kernel sees it, cannot sample this event", "use --source faults or emulate"
		if r.Kind == counting {
			out.Why, out.Fix = "the processor, as this kernel sees it, does not have this event", "use numaopt profile"
		}
	case unix.EBUSY:
		out.Why, out.Fix = "another user has the counter", "sysctl kernel.nmi_watchdog=0, and end other profilers"
	case unix.EINVAL:
		out.Why, out.Fix = "the kernel does not know the event in this form", "use a newer kernel, or --source faults"
	case unix.EMFILE:
		out.Why, out.Fix = "the limit of open files (RLIMIT_NOFILE) is reached", "ulimit -n with a greater number"
	case unix.ENOSYS:
		out.Why, out.Fix = "this kernel has no performance events", "use --source emulate"
	case unix.ESRCH:
		out.Why, out.Fix = fmt.Sprintf("there is no process %d", pid), ""
	}
	return out
}

// forbidden is why the kernel refuses. Its setting allows up to 2 a process of the
// user's own in user space, 1 in the kernel too, 0 the whole machine.
func (m *Machine) forbidden(r *Recipe, pid int) (why, fix string) {
	need := 2
	switch {
	case r.SystemWide:
		need = 0
	case !r.UserOnly:
		need = 1
	}
	level, err := strconv.Atoi(m.text("proc/sys/kernel/perf_event_paranoid"))
	switch {
	case err == nil && level > need:
		return fmt.Sprintf("kernel.perf_event_paranoid is %d", level), fmt.Sprintf("sysctl kernel.perf_event_paranoid=%d, or CAP_PERFMON for perf and numaopt", need)
	case pid > 0:
		return fmt.Sprintf("process %d belongs to another user, or may not be traced", pid), "run numaopt as its user, or with CAP_PERFMON"
	case strings.Contains(m.text("proc/self/status"), "\nSeccomp:\t2"):
		return "a seccomp filter, as containers have, forbids it", "docker run --cap-add PERFMON (podman and Kubernetes: the capability PERFMON)"
	}
	return "a security policy of this system forbids it", "run numaopt with CAP_PERFMON"
}
