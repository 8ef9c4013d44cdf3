package export

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
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

// TestPprofLines: a line of source is where the accesses are; code without one goes by
// its symbol, or its file.
func TestPprofLines(t *testing.T) {
	p := profiles()["lines"]
	p.Codes = append(p.Codes, ident.Code{Module: 0, Offset: 0x500, Symbol: "_ZN4grid4stepEv"}, ident.Code{Module: 0, Offset: 0x600}, ident.Code{Module: -1})
	for code := range int32(3) {
		p.CodeUses = append(p.CodeUses, profile.CodeUse{Code: 3 + code, Object: 0, Region: profiletest.Back, Remote: uint64(100 + code)})
	}
	got := map[string]int64{}
	for _, s := range buildPprof(p).Sample {
		l := s.Location[0].Line[0]
		got[fmt.Sprintf("%s:%d %s", l.Function.Filename, l.Line, l.Function.Name)] += s.Value[lineRemoteDRAM]
	}
	for at, want := range map[string]int64{"work.c:21 work": 647, ":0 grid::step": 100, ":0 app": 101, ":0 work.c:30 (back)": 102} {
		if got[at] != want {
			t.Errorf("%s: %d, want %d; have %v", at, got[at], want, got)
		}
	}
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
