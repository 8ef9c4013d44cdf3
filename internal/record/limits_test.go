package record

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"
)

// TestRaise: programs that are started get as many files as perf needs, as far as
// the hard limit goes. It runs in a process of its own: the limit stays raised.
func TestRaise(t *testing.T) {
	if os.Getenv("RAISE") != "" {
		l := NewLimits(fstest.MapFS{}, 3, 16, 2) // (3+1) x 16 x 2 + 64 files
		notes := l.raise()
		os.Stdout.WriteString(strings.Join(notes, "\n") + "\n")
		out, err := exec.Command("sh", "-c", "ulimit -Sn").Output()
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("then " + string(out))
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ soft, hard, want string }{
		{"100", "1000", "the limit of open files is 192 instead of 100 for perf and the program: perf opens every event on every CPU\nthen 192\n"},
		{"100", "150", "is 150 instead of 100"},
		{"200", "1000", "\nthen 200\n"},
		{"150", "150", "\nthen 150\n"},
	} {
		cmd := exec.Command("sh", "-c", "ulimit -Sn $1; ulimit -Hn $2; exec $0 -test.run='^TestRaise$'", self, c.soft, c.hard)
		cmd.Env = append(os.Environ(), "RAISE=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s of %s: %v\n%s", c.soft, c.hard, err, out)
		}
	}
}

// TestExplain: the two refusals that only perf's words tell.
func TestExplain(t *testing.T) {
	l := Limits{Files: 300, MlockKB: "516"}
	other := errors.New("other")
	for said, want := range map[string]string{
		"Consider increasing /proc/sys/kernel/perf_event_mlock_kb,": "mmap of an event's buffer: EPERM (1): perf's buffers cannot be mapped: kernel.perf_event_mlock_kb is 516, RLIMIT_MEMLOCK is ",
		"Too many events are opened.":                               "perf_event_open: EMFILE (24): perf needs 300 descriptors, and RLIMIT_NOFILE is ",
		"something else":                                            "other",
	} {
		err := l.explain(other, said)
		if !strings.HasPrefix(err.Error(), want) || errors.Is(err, errLocked) != strings.Contains(said, "mlock") {
			t.Errorf("%q: %v", said, err)
		}
	}
}
