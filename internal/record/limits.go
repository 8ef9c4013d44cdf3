package record

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"numaopt/internal/units"
)

// Limits are those of the kernel that a recording meets.
type Limits struct {
	// Files is how many descriptors perf needs: an event on each CPU, or for an
	// attached process in each of its threads, is one.
	Files uint64
	// MlockKB is kernel.perf_event_mlock_kb; empty is not known.
	MlockKB string
}

// NewLimits are those for so many events on so many CPUs, in a process of so many
// threads; root is "/" of the machine.
func NewLimits(root fs.FS, events, cpus, threads int) Limits {
	const own = 64 // perf's other files, and events of its own
	mlock, _ := fs.ReadFile(root, "proc/sys/kernel/perf_event_mlock_kb")
	return Limits{Files: uint64((events+1)*cpus*max(1, threads) + own), MlockKB: strings.TrimSpace(string(mlock))}
}

// Threads counts those of a process.
func Threads(pid int) int {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return len(tasks)
}

// raise raises the limit of open files for the programs that are started from now
// on, if it is too low for perf and may be raised, and says so.
func (l Limits) raise() []string {
	var limit syscall.Rlimit
	soft := softFiles()
	if l.Files <= soft || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max <= soft {
		return nil
	}
	limit.Cur = min(limit.Max, l.Files)
	// With syscall's own call, programs that are started get this limit too.
	if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	return []string{fmt.Sprintf("the limit of open files is %d instead of %d for perf and the program: perf opens every event on every CPU", limit.Cur, soft)}
}

// softFiles is the limit of open files that a program is started with: that of a Go
// program itself is raised when it starts.
func softFiles() uint64 {
	out, err := exec.Command("sh", "-c", "ulimit -Sn").Output()
	n, errText := strconv.ParseUint(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || errText != nil {
		return math.MaxUint64 // unlimited
	}
	return n
}

// buffer is perf's argument for buffers of so many pages for each CPU, none for 0.
func (l Limits) buffer(pages int, options []string) []string {
	if pages == 0 {
		return nil
	}
	text := strconv.Itoa(pages)
	if strings.Contains(strings.Join(options, " "), "arm_spe_") {
		text += "," + text // that of the trace, too
	}
	return []string{"-m", text}
}

// memory names the limits of locked memory.
func (l Limits) memory() string {
	text := "RLIMIT_MEMLOCK is unlimited"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err == nil && limit.Cur != unix.RLIM_INFINITY {
		text = fmt.Sprintf("RLIMIT_MEMLOCK is %v", units.Bytes(limit.Cur))
	}
	if l.MlockKB != "" {
		text = fmt.Sprintf("kernel.perf_event_mlock_kb is %s, %s", l.MlockKB, text)
	}
	return text
}

// errLocked is that the kernel locks no more memory for perf's buffers.
var errLocked = errors.New("perf's buffers cannot be mapped")

// explain tells the two refusals that only perf meets, and that its words name
// (tools/perf: record__mmap_evlist, evsel__open_strerror), from the others.
func (l Limits) explain(err error, said string) error {
	switch {
	case strings.Contains(said, "perf_event_mlock_kb"), strings.Contains(said, "failed to mmap"):
		return fmt.Errorf("mmap of an event's buffer: EPERM (1): %w: %s: sysctl kernel.perf_event_mlock_kb=516, or ulimit -l with a greater number", errLocked, l.memory())
	case strings.Contains(said, "Too many events are opened"), strings.Contains(said, "Too many open files"):
		return fmt.Errorf("perf_event_open: EMFILE (24): perf needs %d descriptors, and RLIMIT_NOFILE is %d: ulimit -n %d", l.Files, softFiles(), l.Files)
	}
	return err
}

// noRoom is an error where there is no room left in a directory of perf's files: perf
// itself says so not always, and not where.
func noRoom(dir string) error {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil || st.Bavail > 0 {
		return nil
	}
	return fmt.Errorf("%w: make room in %s, or name another directory by TMPDIR", syscall.ENOSPC, filepath.Dir(dir))
}
