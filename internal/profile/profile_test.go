package profile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/ident"
	"numaopt/internal/programs"
	"numaopt/internal/topo"
)

// sample is a small profile with something in every field.
func sample() *Profile {
	code := ident.Code{Module: 0, Offset: 0x1136, Symbol: "main", Inlined: []ident.Location{{Function: "main", File: "a.c", Line: 7, FunctionLine: 3}}}
	return &Profile{
		Run: Run{
			Source: "emulate", Command: []string{"./a", "--n", "5"}, Dir: "/home/u", Host: "h", Version: "1",
			Start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Elapsed: time.Second,
			Topology: topo.Topology{Nodes: []topo.Node{{OS: 0, CPUs: []int{0}}, {OS: 2, CPUs: []int{1}, Distances: []int{21, 10}}}},
			Bind:     "compact", Pinned: []string{"OMP_PROC_BIND=close"}, Cache: topo.DefaultCaches(), Period: 1, IntervalWidth: 4096, IntervalClock: Accesses,
			Plan: "a.plan.yaml", Complete: true, ExitStatus: 3, Processes: 2, OtherAccesses: 9,
		},
		Modules: []ident.Module{{Path: "/home/u/a", BuildID: "0a1b"}},
		Sites:   []Site{{Frames: []ident.Code{code}}},
		Places:  []ident.Code{code},
		Objects: []Object{
			{Kind: Heap, Name: "a.c:7 (main)", Site: 0, Module: -1, Bytes: 8192, Head: 16},
			{Kind: Global, Name: "u in a.c", Site: -1, Rank: -1, Ordinal: -1, Symbol: "u", File: "a.c", Offset: 0x4000, Bytes: 4096},
			{Kind: Unknown, Name: "unknown", Site: -1, Module: -1},
		},
		Regions: []Region{
			{Kind: Function, Name: "main", Code: code, Function: "main", File: "a.c", Line: 3},
			{Kind: Loop, Name: "a.c:9 (main)", Code: code, Function: "main", File: "a.c", Line: 9, Entries: 4},
		},
		Threads: []Thread{{Rank: 0, CPU: 0, Node: 0}, {Rank: 1, CPU: 1, Node: 1, Pinned: true}},
		Pages: []Page{
			{Object: 0, Index: 0, Home: 0, Thread: 0, Region: 0, Place: 0, Serial: true},
			{Object: 0, Index: 2, Home: 1, Thread: 1, Region: 1, Place: -1},
			{Object: 2, Index: 123456789, Home: topo.Unknown, Thread: -1, Region: -1, Place: -1},
		},
		Rows: []Row{
			{Page: 0, Thread: 0, Region: 0, Op: Store, Level: DRAM, Count: 1},
			{Page: 0, Thread: 1, Region: 1, Op: Load, Level: L1, Count: math.MaxInt64 - 12, Latency: 77},
			{Page: 1, Thread: 1, Region: 1, Op: Load, Level: LLC, Count: 5},
			{Page: 2, Thread: 0, Region: 0, Op: Load, Level: L2, Count: 6},
		},
		Latencies: []Latency{
			{Object: 0, Region: 1, Served: ServedRemoteDRAM, From: 1, To: 0, Bucket: LatencyBucket(300), Samples: 2, Accesses: 2000, Cycles: 600_000},
			{Object: 2, Region: 0, Served: ServedCXL, From: 0, To: topo.Unknown, Bucket: Buckets - 1, Samples: 1, Accesses: 1, Cycles: math.MaxInt64 - 600_000},
		},
		Lines: []LineUse{
			{Object: 0, Offset: 4096 + 64, Node: 0, Region: 1, Place: 0, Written: 1 << 63, Read: 1, Loads: 9, Stores: 4, HITM: 3},
			{Object: 2, Offset: 123456789 * 4096, Node: 1, Region: 0, Place: -1, Written: 1, Stores: 1},
		},
		Codes: []ident.Code{code, {Module: -1, Offset: 0x99}},
		CodeUses: []CodeUse{
			{Code: 0, Object: 0, Region: 1, Op: Load, Local: 1, Remote: 1 << 40, Unknown: 2, Latency: 900, Loads: 3},
			{Code: 0, Object: 2, Region: 0, Op: Load, Local: 5},
			{Code: 1, Object: 2, Region: 0, Op: Store, Unknown: 7},
		},
		Intervals: []Interval{
			{Thread: 0, At: 3, Region: 0, Home: topo.Unknown, Work: 99},
			{Thread: 0, At: 3, Region: 0, Home: 1, Count: 4},
			{Thread: 1, At: 0, Region: 1, Home: 0, Count: 1, Work: 1},
		},
		Warnings: []string{"something"},
	}
}

func encode(t testing.TB, p *Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	empty := &Profile{Run: Run{Topology: topo.Topology{Nodes: []topo.Node{{CPUs: []int{0}}}}, Period: 1}}
	for _, p := range []*Profile{sample(), empty} {
		file := encode(t, p)
		got, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got); d != "" {
			t.Errorf("read back (-wrote +read):\n%s", d)
		}
		if !bytes.Equal(file, encode(t, got)) {
			t.Error("the same profile gives other bytes")
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.nprof")
	if err := WriteFile(path, sample()); err != nil {
		t.Fatal(err)
	}
	p, sum, err := ReadFileSum(path)
	if err != nil || len(sum) != 64 {
		t.Fatalf("sum %q, err %v", sum, err)
	}
	if d := cmp.Diff(sample(), p); d != "" {
		t.Error(d)
	}
	if _, err := ReadFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := WriteFile(filepath.Join(path, "x"), sample()); err == nil || !strings.Contains(err.Error(), "a.nprof") {
		t.Errorf("unwritable path: %v", err)
	}
}

// TestTruncated cuts the file at every byte: each cut is told from a file that
// is foreign or damaged.
func TestTruncated(t *testing.T) {
	file := encode(t, sample())
	for n := range file {
		p, err := Read(bytes.NewReader(file[:n]))
		want := ErrTruncated
		if n == 0 {
			want = ErrForeign
		}
		if p != nil || !errors.Is(err, want) {
			t.Fatalf("first %d of %d bytes: %v, want %v", n, len(file), err, want)
		}
	}
}

func TestDamaged(t *testing.T) {
	file := encode(t, sample())
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 0x10
		if p, err := Read(bytes.NewReader(bad)); p != nil || err == nil {
			t.Fatalf("byte %d changed: profile %v, err %v", i, p != nil, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	file := encode(t, sample())
	newer := bytes.Clone(file)
	binary.LittleEndian.PutUint32(newer[len(magic):], Version+1)
	huge := bytes.Clone(file)
	binary.LittleEndian.PutUint64(huge[len(magic)+4:], math.MaxUint64)
	for _, c := range []struct {
		name string
		file []byte
		want error
		text string
	}{
		{"elf", []byte("\x7fELF and more"), ErrForeign, "numaopt profile"},
		{"perf.data", bytes.Repeat([]byte("PERFILE2"), 100), ErrForeign, "not a numaopt profile"},
		{"newer", newer, ErrVersion, "format 6, this numaopt reads up to 5"},
		{"newer and short", newer[:len(magic)+4], ErrVersion, "update numaopt"},
		{"length", huge, ErrDamaged, "prefix"},
		{"longer", append(bytes.Clone(file), 0), ErrDamaged, "1 bytes too many"},
	} {
		_, err := Read(bytes.NewReader(c.file))
		var format *FormatError
		if !errors.Is(err, c.want) || !errors.As(err, &format) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.want, c.text)
		}
	}
}

// TestVersion1 reads a file that knows no worksharing loops.
func TestVersion1(t *testing.T) {
	p, err := ReadFile(filepath.Join("testdata", "version-1.nprof"))
	if err != nil {
		t.Fatal(err)
	}
	r := &p.Regions[0]
	if r.Name != "a.c:7 (f)" || r.Entries != 3 || r.Site.Module != -1 || r.Worksharing() || len(p.Rows) != 1 {
		t.Errorf("region %+v, %d rows", r, len(p.Rows))
	}
}

// TestVersion2 reads a file whose rows say nothing of sweeps.
func TestVersion2(t *testing.T) {
	p, err := ReadFile(filepath.Join("testdata", "version-2.nprof"))
	if err != nil {
		t.Fatal(err)
	}
	r := &p.Regions[0]
	if r.Name != "a.c:7 (f)" || !r.Worksharing() || r.Invocations != 9 || r.Sweep != 0 || len(p.Rows) == 0 || p.Rows[0].Count == 0 {
		t.Errorf("region %+v, rows %+v", r, p.Rows)
	}
}

// TestVersion3 reads a file without latencies and lines.
func TestVersion3(t *testing.T) {
	p, err := ReadFile(filepath.Join("testdata", "version-3.nprof"))
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	want.Rows[0].First, want.Rows[0].Last = 85, SweepParts-1
	want.Latencies, want.Lines = nil, nil
	withoutCode(want)
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestVersion4 reads a file without lines of source and parts of the run.
func TestVersion4(t *testing.T) {
	p, err := ReadFile(filepath.Join("testdata", "version-4.nprof"))
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	withoutCode(want)
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// withoutCode takes from p what version 5 of the format brought.
func withoutCode(p *Profile) {
	p.Codes, p.CodeUses, p.Intervals = nil, nil, nil
	p.Run.IntervalWidth, p.Run.IntervalClock = 0, ""
}

func TestWorksharing(t *testing.T) {
	p := sample()
	p.Regions[0] = Region{Kind: Loop, Code: p.Regions[0].Code, Site: ident.Code{Module: 0, Offset: 0x88}, Runtime: "libomp", Schedule: "static", Group: 2, Invocations: 9, Sweep: 3}
	p.Rows[0].First, p.Rows[0].Last = 85, SweepParts-1
	q, err := Read(bytes.NewReader(encode(t, p)))
	if err != nil {
		t.Fatal(err)
	}
	if r := &q.Regions[0]; !r.Worksharing() || r.Site.Offset != 0x88 || r.Group != 2 || r.Invocations != 9 || r.Sweep != 3 || q.Rows[0] != p.Rows[0] {
		t.Errorf("region %+v, row %+v", r, q.Rows[0])
	}
	p.Regions[0].Site.Module = len(p.Modules)
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "site's module") {
		t.Errorf("site in no module: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for name, break_ := range map[string]func(*Profile){
		"no nodes":        func(p *Profile) { p.Run.Topology.Nodes = nil },
		"period":          func(p *Profile) { p.Run.Period = 0 },
		"site module":     func(p *Profile) { p.Sites[0].Frames[0].Module = 1 },
		"place module":    func(p *Profile) { p.Places[0].Module = -2 },
		"kind":            func(p *Profile) { p.Objects[0].Kind = "heaps" },
		"object site":     func(p *Profile) { p.Objects[0].Site = 1 },
		"object module":   func(p *Profile) { p.Objects[1].Module = 1 },
		"bytes":           func(p *Profile) { p.Objects[0].Bytes = -1 },
		"head":            func(p *Profile) { p.Objects[0].Head = 4096 },
		"rank":            func(p *Profile) { p.Objects[0].Rank = -2 },
		"region kind":     func(p *Profile) { p.Regions[0].Kind = "" },
		"region module":   func(p *Profile) { p.Regions[0].Code.Module = 1 },
		"thread rank":     func(p *Profile) { p.Threads[0].Rank = -1 },
		"thread node":     func(p *Profile) { p.Threads[0].Node = 2 },
		"page object":     func(p *Profile) { p.Pages[0].Object = 3 },
		"page index":      func(p *Profile) { p.Pages[1].Index = 3 },
		"index negative":  func(p *Profile) { p.Pages[2].Index = -1 },
		"page home":       func(p *Profile) { p.Pages[0].Home = 2 },
		"page thread":     func(p *Profile) { p.Pages[0].Thread = 2 },
		"page region":     func(p *Profile) { p.Pages[0].Region = -2 },
		"page place":      func(p *Profile) { p.Pages[0].Place = 1 },
		"row page":        func(p *Profile) { p.Rows[0].Page = 3 },
		"row thread":      func(p *Profile) { p.Rows[0].Thread = -1 },
		"row region":      func(p *Profile) { p.Rows[0].Region = 2 },
		"row sweep":       func(p *Profile) { p.Rows[0].First = 1 },
		"row part":        func(p *Profile) { p.Rows[0].Last = SweepParts },
		"row level":       func(p *Profile) { p.Rows[0].Level = 4 },
		"row op":          func(p *Profile) { p.Rows[0].Op = 2 },
		"latency object":  func(p *Profile) { p.Latencies[0].Object = 3 },
		"latency region":  func(p *Profile) { p.Latencies[0].Region = -1 },
		"latency level":   func(p *Profile) { p.Latencies[0].Served = NumServed },
		"latency from":    func(p *Profile) { p.Latencies[0].From = topo.Unknown },
		"latency to":      func(p *Profile) { p.Latencies[0].To = 2 },
		"bucket":          func(p *Profile) { p.Latencies[0].Bucket = Buckets },
		"few accesses":    func(p *Profile) { p.Latencies[0].Accesses = 1 },
		"cycles overflow": func(p *Profile) { p.Latencies[0].Cycles++ },
		"line object":     func(p *Profile) { p.Lines[0].Object = -1 },
		"line node":       func(p *Profile) { p.Lines[0].Node = 2 },
		"line region":     func(p *Profile) { p.Lines[0].Region = 2 },
		"line place":      func(p *Profile) { p.Lines[0].Place = -2 },
		"line offset":     func(p *Profile) { p.Lines[0].Offset++ },
		"line negative":   func(p *Profile) { p.Lines[1].Offset = -64 },
		"line beyond":     func(p *Profile) { p.Lines[0].Offset = 3 * 4096 },
		"line order":      func(p *Profile) { p.Lines[1].Object, p.Lines[1].Offset = 0, 4096 },
		"line HITM":       func(p *Profile) { p.Lines[0].HITM = 10 },
		"code module":     func(p *Profile) { p.Codes[1].Module = -2 },
		"use code":        func(p *Profile) { p.CodeUses[2].Code = 2 },
		"use object":      func(p *Profile) { p.CodeUses[0].Object = -1 },
		"use region":      func(p *Profile) { p.CodeUses[0].Region = 2 },
		"use op":          func(p *Profile) { p.CodeUses[2].Op = 2 },
		"use order":       func(p *Profile) { p.CodeUses[1].Object = 0; p.CodeUses[1].Region = 1 },
		"use overflow":    func(p *Profile) { p.CodeUses[0].Local = math.MaxInt64 },
		"use loads":       func(p *Profile) { p.CodeUses[1].Loads = 6 },
		"use latency":     func(p *Profile) { p.CodeUses[0].Latency = math.MaxInt64 + 1 },
		"interval part":   func(p *Profile) { p.Intervals[1].At = MostIntervals },
		"interval thread": func(p *Profile) { p.Intervals[2].Thread = 2 },
		"interval region": func(p *Profile) { p.Intervals[0].Region = -1 },
		"interval home":   func(p *Profile) { p.Intervals[2].Home = 2 },
		"interval order":  func(p *Profile) { p.Intervals[1].Home = topo.Unknown },
		"interval width":  func(p *Profile) { p.Run.IntervalWidth = 0 },
		"interval sum":    func(p *Profile) { p.Intervals[0].Work = math.MaxInt64 },
		"counts overflow": func(p *Profile) { p.Rows[0].Count = 2 },
	} {
		p := sample()
		break_(p)
		if p.Check() == nil {
			t.Errorf("%s: passes", name)
		}
		if err := Write(new(bytes.Buffer), p); err == nil {
			t.Errorf("%s: is written", name)
		}
	}
	if err := sample().Check(); err != nil {
		t.Error(err)
	}
}

// FuzzRead: error and nil, or a profile that passes Check and survives another
// round. The checksum is put right so that the fuzzer gets past it.
func FuzzRead(f *testing.F) {
	file := encode(f, sample())
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		if n := len(file) - sumBytes; n > 0 {
			sum := sha256.Sum256(file[:n])
			file = append(file[:n:n], sum[:]...)
		}
		p, err := Read(bytes.NewReader(file))
		if err != nil {
			if p != nil {
				t.Fatal("a profile beside an error")
			}
			return
		}
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		again, err := Read(bytes.NewReader(encode(t, p)))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, again, cmp.FilterPath(func(at cmp.Path) bool { return at.String() == "Run" }, cmp.Ignore())); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	p := sample()
	p.Rows[1].Count = 1
	for i := range 1_000_000 {
		p.Rows = append(p.Rows, Row{Page: int32(i % 3), Thread: int32(i % 2), Region: int32(i % 2), Level: DRAM, Count: uint64(i)})
	}
	var size int
	for b.Loop() {
		file := encode(b, p)
		size = len(file)
		if _, err := Read(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1e6, "bytes/row")
}

// The changelog names the version that is written.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(programs.Root(), "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("File formats: profile %d (1 to %d are read)", Version, Version-1); !strings.Contains(string(text), want) {
		t.Errorf("CHANGELOG.md has no %q", want)
	}
}
