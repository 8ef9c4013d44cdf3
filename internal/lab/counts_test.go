package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const counted = `numaopt-lab-counts 1
opened 1
accesses 90 30 5
cell 0 0 10 0 0 10
cell 0 1 0 0 0 30
cell 1 0 20 0 0 0
cell 1 1 0 5 5 40
page 7f10 1 2 3 4
end
`

func TestReadCounts(t *testing.T) {
	for _, c := range []struct{ name, text, err string }{
		{"whole", counted, ""},
		{"cut short", strings.TrimSuffix(counted, "end\n"), "ends early"},
		{"other version", strings.Replace(counted, "counts 1", "counts 2", 1), "not a file"},
		{"empty", "", "not a file"},
		{"plugin's complaint", "numaopt-lab-counts 1\nerror no probe\nend\n", "lab.so: no probe"},
		{"bad number", "numaopt-lab-counts 1\nopened x\nend\n", "expected integer"},
		{"page without counts", "numaopt-lab-counts 1\npage 7f10\nend\n", "a page has 0 counts"},
		{"unknown line", "numaopt-lab-counts 1\nwhat 1\nend\n", "unknown line"},
	} {
		path := filepath.Join(t.TempDir(), "counts")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readCounts(path)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
	}
}

// Two nodes of one CPU: node 0 has 10 DRAM accesses at home and 30 away, node 1
// 40 at home; 50 of all 120 are remote.
func TestCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counts")
	if err := os.WriteFile(path, []byte(counted), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := readCounts(path)
	if err != nil {
		t.Fatal(err)
	}
	var r RunResult
	r.count(c, 2, 1)
	if *r.RemoteDRAMPct != 100*30.0/80 || *r.RemoteAccessPct != 100*50.0/120 {
		t.Errorf("remote %v and %v", *r.RemoteDRAMPct, *r.RemoteAccessPct)
	}
	if r.DRAMAccesses != 80 || r.Accesses != 125 || r.Unknown != 5 || r.L1Hits != 30 {
		t.Errorf("dram %d, all %d, unknown %d, l1 %d", r.DRAMAccesses, r.Accesses, r.Unknown, r.L1Hits)
	}
	if r.Matrix[0][1] != 30 || r.AccessMatrix[1][0] != 20 {
		t.Errorf("matrices %v, %v", r.Matrix, r.AccessMatrix)
	}
	if *r.Imbalance != 70.0/40 {
		t.Errorf("imbalance %v", *r.Imbalance)
	}
	if d := cmp.Diff([]Page{{0x7f10, [][]uint64{{1, 2}, {3, 4}}}}, r.Pages); d != "" {
		t.Error(d)
	}
	var none RunResult
	none.count(&counts{}, 2, 1)
	if none.RemoteDRAMPct != nil || none.RemoteAccessPct != nil || none.Imbalance != nil {
		t.Error("a percentage of nothing")
	}
}

func TestRuntimeSummary(t *testing.T) {
	var r RunResult
	r.runtime([]byte(`{"pid":1,"threads":8,"objects":[{"id":0,"name":"a","touched":30,"on_plan":30},{"id":1,"name":"b","touched":10,"on_plan":0},{"id":2,"name":"c","touched":0,"on_plan":0}],"warnings":["w"]}
not JSON
{"pid":2,"threads":1,"objects":[]}
`))
	if r.OnPlanPct == nil || *r.OnPlanPct != 75 || r.Threads != 8 || len(r.Objects) != 3 || len(r.Warnings) != 1 {
		t.Fatalf("%+v", r)
	}
	text, err := json.Marshal(r.Objects)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"100", "0", "null"} {
		if got := strings.Split(string(text), `"on_plan_pct":`)[i+1]; !strings.HasPrefix(got, want+"}") {
			t.Errorf("object %d: %s of %s", i, want, text)
		}
	}
}

func TestPrintedLinesEndInText(t *testing.T) {
	matrix := [][]uint64{{1, 2}, {3, 4}}
	r := Result{Runs: []RunResult{{Name: "default", Matrix: matrix, DRAMAccesses: 10, StdoutSame: true}, {Name: "plan", Matrix: matrix}}}
	var b strings.Builder
	if err := Print(&b, &r); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%q ends in blanks", line)
		}
	}
	if !strings.Contains(b.String(), "pages on plan") || !strings.Contains(b.String(), "node 1") {
		t.Errorf("tables are missing:\n%s", &b)
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		wait uint32
		want int
	}{{0, 0}, {3 << 8, 3}, {11, 139}, {9, 137}, {0x80 | 11, 139}} {
		if got := (exit{wait: c.wait}).status(); got != c.want {
			t.Errorf("wait status %#x is %d, want %d", c.wait, got, c.want)
		}
	}
	for _, c := range []struct {
		runs []int
		lost int
		want int
	}{{[]int{0, 0, 0}, 0, 0}, {[]int{1, 0, 0}, 0, 1}, {[]int{1, 0, 7}, 0, 7}, {[]int{0, 0, 0}, 2, 1}, {[]int{0, 0, 7}, 2, 7}} {
		r := Result{FilesLost: c.lost}
		for _, s := range c.runs {
			r.Runs = append(r.Runs, RunResult{Status: s})
		}
		if got := r.Status(); got != c.want {
			t.Errorf("runs %v, %d files lost: status %d, want %d", c.runs, c.lost, got, c.want)
		}
	}
}

func TestUnclosed(t *testing.T) {
	only := Options{Only: []string{"f"}}
	for _, c := range []struct {
		n      uint64
		opt    Options
		run    guestRun
		status int
		want   string
	}{
		{0, Options{}, guestRun{}, 0, ""},
		{2, Options{}, guestRun{}, 1, "2 processes were killed"},
		{1, Options{}, guestRun{}, 139, ""}, // the program itself
		{2, Options{}, guestRun{}, 139, "1 processes"},
		{1, Options{}, guestRun{deaf: "static"}, 0, ""},
		{1, only, guestRun{}, 0, "1 times a named loop"},
	} {
		got := unclosed(c.n, c.opt, c.run, c.status)
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
