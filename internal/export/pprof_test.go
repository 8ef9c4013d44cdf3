package export

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"numaopt/internal/access"
)

// TestPprof: the file is valid, and its sums are those of the profile.
func TestPprof(t *testing.T) {
	for name, p := range profiles() {
		var b bytes.Buffer
		if err := WritePprof(&b, p); err != nil {
			t.Fatal(err)
		}
		q, err := pprof.Parse(&b)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := q.CheckValid(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := map[string]int64{}
		for _, s := range q.Sample {
			for i, v := range s.Value {
				got[q.SampleType[i].Type] += v
			}
		}
		sum := access.Total(p)
		want := map[string]uint64{"accesses": sum.All.Total(), "remote_accesses": sum.All.Remote, "dram": sum.DRAM.Total(), "remote_dram": sum.DRAM.Remote}
		for _, u := range p.CodeUses {
			want["line_dram"] += u.Local + u.Remote + u.Unknown
			want["line_remote_dram"] += u.Remote
			want["line_latency"] += u.Latency
		}
		for i := range p.Rows {
			want["latency"] += p.Rows[i].Latency
			if levels[p.Rows[i].Level] == "DRAM" {
				want["dram_latency"] += p.Rows[i].Latency
			}
		}
		for what, n := range want {
			if got[what] != int64(n) {
				t.Errorf("%s: %d %s, want %d", name, got[what], what, n)
			}
		}
	}
}

// TestPprofLabels: a sample says who accessed what from where.
func TestPprofLabels(t *testing.T) {
	q := buildPprof(profiles()["ordinary"])
	text := map[string]string{"object": "u in grid.c", "kind": "heap", "loop": "work.c:20 (work)", "op": "load", "data_src": "Remote DRAM", "comm": "app", "allocated": "init.c:3 (main)"}
	numbers := map[string]int64{"thread": 2, "cpu": 2, "node": 1, "home": 0}
	for _, s := range q.Sample {
		same := s.Value[remoteDRAM] > 0
		for k, v := range text {
			same = same && s.HasLabel(k, v)
		}
		for k, v := range numbers {
			same = same && len(s.NumLabel[k]) == 1 && s.NumLabel[k][0] == v
		}
		if f := s.Location[0].Line[0]; same && f.Function.Name == "work" && f.Function.Filename == "work.c" && f.Line == 20 {
			return
		}
	}
	t.Errorf("no such sample:\n%s", q)
}

// TestGoToolPprof: the tool itself opens the files and prints the same sum.
func TestGoToolPprof(t *testing.T) {
	total := regexp.MustCompile(`([\d.]+)% of (\d+) total`)
	for name, p := range profiles() {
		if len(p.Rows) == 0 {
			continue // the tool says that there is nothing to show
		}
		file := filepath.Join(t.TempDir(), "p.pprof")
		var b bytes.Buffer
		if err := WritePprof(&b, p); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0", "-sample_index=accesses", "-unit=count", file)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		m := total.FindStringSubmatch(string(out))
		if want := number(int64(access.Total(p).All.Total())); m == nil || m[1] != "100" || m[2] != want || !strings.Contains(string(out), "Type: accesses") {
			t.Errorf("%s: want %s accesses:\n%s", name, want, out)
		}
	}
}
