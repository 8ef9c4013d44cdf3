package perfdata_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
)

const memory = pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc | pt.PhysAddr | pt.DataPageSize

var ignore = cmpopts.IgnoreUnexported(perfdata.Sample{})

// layouts are shapes of samples that real recordings have.
var layouts = []struct {
	name   string
	events []pt.Event
	v      pt.Variable
}{
	{"mem", []pt.Event{event("cpu/mem-loads,ldlat=30/P", memory, 1), event("cpu/mem-stores/P", memory, 10)}, pt.Variable{}},
	{"one event without ids", []pt.Event{{Name: "ibs_op//", Attr: attr(memory &^ pt.Identifier)}}, pt.Variable{}},
	{"old weight", []pt.Event{event("mem-loads", memory&^pt.WeightStruct|pt.Weight, 1)}, pt.Variable{}},
	{"id, not identifier", []pt.Event{event("a", memory&^pt.Identifier|pt.ID|pt.StreamID, 1), event("b", memory&^pt.Identifier|pt.ID|pt.StreamID, 10)}, pt.Variable{}},
	{"call chains", []pt.Event{event("c", memory|pt.Callchain|pt.Raw|pt.Transaction|pt.Cgroup|pt.CodePageSize, 1)},
		pt.Variable{Callchain: []uint64{^uint64(511), 0x400100, 0x400200}, Raw: make([]byte, 12)}},
	{values, []pt.Event{event("v", memory|pt.Read|pt.Raw, 1)}, pt.Variable{Raw: make([]byte, 4)}},
	{"everything", []pt.Event{event("e", memory|pt.Callchain|pt.BranchStack|pt.RegsUser|pt.StackUser|pt.RegsIntr, 1)},
		pt.Variable{Callchain: []uint64{1, 2}, Branches: 3, UserRegs: true, Stack: 64}},
	{"two kinds of sample", []pt.Event{event("a", memory, 1), event("b", memory&^(pt.WeightStruct|pt.PhysAddr|pt.DataPageSize), 10)}, pt.Variable{}},
}

// values is a shape that perf script shows otherwise: it makes periods of the values.
const values = "counters' values"

func attr(kind uint64) perfdata.Attr {
	return perfdata.Attr{Type: 1, Config: 9, Period: 1, SampleType: kind, ReadFormat: 4, Flags: pt.SampleIDAll, RegsUser: 0xff}
}

func event(name string, kind uint64, id uint64) pt.Event {
	return pt.Event{Name: name, Attr: attr(kind), IDs: []uint64{id, id + 1, id + 2, id + 3}}
}

// samples are n samples of the events, each field at random but of the size that
// it has in life.
func samples(n int, events []pt.Event) []perfdata.Sample {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([]perfdata.Sample, n)
	for i := range out {
		e := r.IntN(len(events))
		kind := events[e].Attr.SampleType
		s := perfdata.Sample{Event: e, Mode: 2, PID: 4000, TID: 4000 + uint32(r.IntN(8)), CPU: uint32(r.IntN(4)), Time: 1e9 + uint64(i)*1000,
			IP: 0x400000 + uint64(r.IntN(4096)), Addr: 0x7f0000000000 + uint64(r.IntN(1<<24)), Period: 1 + uint64(r.IntN(9))}
		if kind&(pt.Weight|pt.WeightStruct) != 0 {
			s.Latency = uint64(3 + r.IntN(1000))
		}
		if kind&pt.WeightStruct != 0 {
			s.Issue, s.Retire = uint16(r.IntN(100)), uint16(r.IntN(100))
		}
		if kind&pt.PhysAddr != 0 {
			s.Phys = uint64(r.IntN(1 << 36))
		}
		if kind&pt.DataPageSize != 0 {
			s.PageSize = 4096
		}
		s.Source = perfdata.DataSrc(r.Uint64() >> (64 - 46))
		out[i] = s
	}
	return out
}

func writer(l []pt.Event, v pt.Variable, n int) (*pt.Writer, []perfdata.Sample) {
	w := &pt.Writer{Events: l}
	return w, fill(w, v, n)
}

func fill(w *pt.Writer, v pt.Variable, n int) []perfdata.Sample {
	all := samples(n, w.Events)
	w.Comm(4000, 4000, 5e8, "app")
	w.Mmap(4000, 4000, 6e8, 0x400000, 0x10000, 0, "/bin/app")
	w.Add(v, all[:n/2]...)
	w.Record(68, 0, nil, nil) // FINISHED_ROUND
	w.Add(v, all[n/2:]...)
	return all
}

// read is all samples of f, in the order of time.
func read(t testing.TB, f *perfdata.File, workers int) []perfdata.Sample {
	t.Helper()
	parts := make([][]perfdata.Sample, 64)
	if err := f.Samples(workers, func(w int) func(*perfdata.Sample) error {
		return func(s *perfdata.Sample) error {
			parts[w] = append(parts[w], *s)
			return nil
		}
	}); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b perfdata.Sample) int { return int(int64(a.Time) - int64(b.Time)) })
	return all
}

// TestLayouts reads back every shape of sample in every form of file.
func TestLayouts(t *testing.T) {
	for _, l := range layouts {
		for _, form := range forms {
			t.Run(l.name+"/"+form.name, func(t *testing.T) {
				w := &pt.Writer{Events: l.events, Foreign: form.foreign, AttrSize: form.attrSize}
				want := fill(w, l.v, 500)
				f, err := perfdata.Parse("test", form.make(t, w))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, read(t, f, 2), ignore); d != "" {
					t.Errorf("samples (-written +read):\n%s", d)
				}
				if f.Cut || f.Damaged > 0 || len(f.Unknown) > 0 {
					t.Errorf("cut %v, damaged %d, unknown %v", f.Cut, f.Damaged, f.Unknown)
				}
				for i, e := range f.Events {
					if e.Name != l.events[i].Name {
						t.Errorf("event %d is %q, want %q", i, e.Name, l.events[i].Name)
					}
				}
				checkSide(t, f)
			})
		}
	}
}

var forms = []struct {
	name     string
	foreign  bool
	attrSize int
	oracle   bool // perf 6.1 reads it right: no attrs beyond its own, no COMPRESSED2, and half words of foreign streams it swaps
	make     func(*testing.T, *pt.Writer) []byte
}{
	{"file", false, 0, true, func(_ *testing.T, w *pt.Writer) []byte { return w.File() }},
	{"foreign", true, 0, true, func(_ *testing.T, w *pt.Writer) []byte { return w.File() }},
	{"long attr", false, 144, false, func(_ *testing.T, w *pt.Writer) []byte { return w.File() }},
	{"stream", false, 0, true, func(_ *testing.T, w *pt.Writer) []byte { return w.Stream() }},
	{"foreign stream", true, 0, false, func(_ *testing.T, w *pt.Writer) []byte { return w.Stream() }},
	{"compressed", false, 0, true, compressed(81, 1000)},
	{"compressed2", false, 0, false, compressed(83, 30000)},
}

func compressed(kind uint32, chunk int) func(*testing.T, *pt.Writer) []byte {
	return func(t *testing.T, w *pt.Writer) []byte {
		c, err := w.Compressed(kind, chunk)
		if err != nil {
			t.Fatal(err)
		}
		return c.File()
	}
}

func checkSide(t *testing.T, f *perfdata.File) {
	t.Helper()
	var got []perfdata.Side
	if err := f.Side(func(s perfdata.Side) error {
		got = append(got, s)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []perfdata.Side{
		&perfdata.Comm{PID: 4000, TID: 4000, Time: 5e8, Name: "app"},
		&perfdata.Mmap{PID: 4000, TID: 4000, Time: 6e8, Addr: 0x400000, Len: 0x10000, Name: "/bin/app", Executable: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("records beside samples (-want +got):\n%s", d)
	}
}

// TestPerfScriptAgrees has perf script print the same files, field by field.
func TestPerfScriptAgrees(t *testing.T) {
	for _, l := range layouts {
		for _, form := range forms {
			if !form.oracle || l.name == values {
				continue
			}
			t.Run(l.name+"/"+form.name, func(t *testing.T) {
				w := &pt.Writer{Events: l.events, Foreign: form.foreign, AttrSize: form.attrSize}
				want := fill(w, l.v, 200)
				file := filepath.Join(t.TempDir(), "perf.data")
				if err := os.WriteFile(file, form.make(t, w), 0o666); err != nil {
					t.Fatal(err)
				}
				compareWithScript(t, file, l.events, want, form.foreign)
			})
		}
	}
}

var scriptLine = regexp.MustCompile(`^\s*(\d+)/(\d+)\s+\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\d+)\s+(.*?):\s+([0-9a-f]+)\s+([0-9a-f]+) \|.*$`)

// compareWithScript leaves the names of events out where perf 6.1 itself gets them
// wrong: in files of the other byte order.
func compareWithScript(t *testing.T, file string, events []pt.Event, want []perfdata.Sample, nameless bool) {
	t.Helper()
	fields := "pid,tid,cpu,time,period,event,addr,data_src"
	cmdline := []string{"script", "--ns", "-G", "-f", "-i", file, "-F", fields}
	var stderr bytes.Buffer
	cmd := exec.Command("perf", cmdline...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, &stderr)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		m := scriptLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("perf script says %q", line)
		}
		if nameless {
			m[7] = ""
		}
		got = append(got, strings.Join(m[1:], " "))
	}
	var mine []string
	for _, s := range want {
		name := events[s.Event].Name
		if nameless {
			name = ""
		}
		mine = append(mine, fmt.Sprintf("%d %d %03d %d %09d %d %s %x %x", s.PID, s.TID, s.CPU, s.Time/1e9, s.Time%1e9, s.Period, name, s.Addr, uint64(s.Source)))
	}
	if d := cmp.Diff(mine, got); d != "" {
		t.Errorf("(-written +perf script):\n%s", d)
	}
}

// TestHeadsWithinSamples reads samples that are full of what looks like the heads of
// records: what processors believe to be the beginning of one is none.
func TestHeadsWithinSamples(t *testing.T) {
	raw := make([]byte, 60_004)
	for at := 4; at < len(raw); at += 8 { // behind a length of 4 bytes
		binary.LittleEndian.PutUint64(raw[at:], 8<<48|9)
	}
	w, want := writer([]pt.Event{event("e", memory|pt.Raw, 1)}, pt.Variable{Raw: raw}, 201) // odd: the middle of the file is within one
	for _, workers := range []int{1, 3} {
		f, err := perfdata.Parse("heads", w.File())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, read(t, f, workers), ignore); d != "" || f.Damaged != 0 {
			t.Errorf("%d workers, %d damaged (-want +got):\n%s", workers, f.Damaged, d)
		}
	}
}

// TestProgress: each piece of a file is told once, in order.
func TestProgress(t *testing.T) {
	l := layouts[0]
	w := &pt.Writer{Events: l.events}
	fill(w, l.v, 5000)
	f, err := perfdata.Parse("test", forms[0].make(t, w))
	if err != nil {
		t.Fatal(err)
	}
	told, pieces := 0, 0
	f.Progress = func(begun, all int) {
		if begun != told || pieces > 0 && all != pieces {
			t.Errorf("%d of %d, after %d of %d", begun, all, told, pieces)
		}
		told, pieces = told+1, all
	}
	if got := len(read(t, f, 2)); got != 5000 || told != pieces || told == 0 {
		t.Errorf("%d samples, %d of %d pieces told", got, told, pieces)
	}
}
