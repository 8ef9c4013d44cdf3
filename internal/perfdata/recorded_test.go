package perfdata_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/perfdata"
)

// TestRecorded records page faults of a command by the perf at hand, in every way
// that perf stores them, and holds samples and header against what perf itself
// says of the file.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"plain", nil},
		{"compressed", []string{"-z"}},
		{"call chains", []string{"-g"}},
		{"threads", []string{"--threads"}},
		{"two events", []string{"-e", "cpu-clock:u", "-k", "CLOCK_MONOTONIC"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "perf.data")
			args := append([]string{"record", "-q", "-o", file, "-e", "page-faults:u", "-c", "1", "-d", "--sample-cpu"}, c.args...)
			if out, err := exec.Command("perf", append(args, "--", "ls", "-l", "/usr/bin")...).CombinedOutput(); err != nil {
				t.Skipf("perf cannot record here: %v\n%s", err, out[max(0, len(out)-300):])
			}
			f, err := perfdata.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var got []string
			for _, s := range read(t, f, 2) {
				got = append(got, fmt.Sprintf("%d %d %d.%09d %s %x", s.TID, s.CPU, s.Time/1e9, s.Time%1e9, f.Events[s.Event].Name, s.Addr))
			}
			if d := cmp.Diff(recorded(t, file), got); d != "" || len(got) == 0 {
				t.Errorf("%d samples (-perf script +read):\n%s", len(got), d)
			}
			compareHeader(t, file, &f.Info)
		})
	}
}

var recordedLine = regexp.MustCompile(`^\s*(\d+)\s+\[(\d+)\]\s+(\S+):\s+(\S+):\s+([0-9a-f]+)$`)

func recorded(t *testing.T, file string) []string {
	t.Helper()
	out, err := exec.Command("perf", "script", "--ns", "-G", "-i", file, "-F", "tid,cpu,time,event,addr").Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		m := recordedLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("perf script says %q", line)
		}
		cpu, _ := strconv.Atoi(m[2])
		lines = append(lines, fmt.Sprintf("%s %d %s %s %s", m[1], cpu, m[3], m[4], m[5]))
	}
	return lines
}

// compareHeader holds what the header tells of the machine against perf's report.
func compareHeader(t *testing.T, file string, i *perfdata.Info) {
	t.Helper()
	out, err := exec.Command("perf", "report", "--header-only", "-I", "-i", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	want := []string{"hostname : " + i.Host, "os release : " + i.Release, "perf version : " + i.PerfVersion, "arch : " + i.Arch,
		"nrcpus online : " + strconv.Itoa(i.CPUs), "cpudesc : " + i.CPU, "cpuid : " + i.CPUID, "cmdline : " + strings.Join(i.Command, " ")}
	for _, n := range i.Nodes {
		want = append(want, "node"+strconv.Itoa(n.ID)+" cpu list : "+n.CPUs)
	}
	if i.MemoryBlock > 0 {
		want = append(want, fmt.Sprintf("memory nodes (nr %d, block size 0x%x)", len(i.Memory), i.MemoryBlock))
	}
	for _, w := range want {
		if !strings.Contains(strings.ReplaceAll(string(out), "  ", " "), w) {
			t.Errorf("perf does not say %q of the file", w)
		}
	}
	if i.Host != host || len(i.Nodes) == 0 {
		t.Errorf("host %q, %d nodes", i.Host, len(i.Nodes))
	}
}
