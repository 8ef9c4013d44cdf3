package export

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// profiles are the ordinary one and the odd ones.
func profiles() map[string]*profile.Profile {
	ordinary := func() *profile.Profile {
		p := profiletest.Draw(4, 2, "u in grid.c heap: 0!64 1 640 7 | 1 0 0 9/0 3 | ? 5", "v global: 2 0 0 0 0 8")
		p.Rows[1].Level, p.Rows[1].Latency = profile.LLC, 4000
		p.Rows[2].Latency = 300_000
		return p
	}
	odd := ordinary()
	odd.Objects[0].Name = "=cmd|' /C calc'!A0, \"quoted\"\r\nand\xff more"
	odd.Regions[profiletest.Work].Name = "@" + strings.Repeat("größe<script>alert(1)</script>", 40)
	odd.Run.Command = []string{"./\xffapp"}
	nameless := ordinary()
	nameless.Regions[profiletest.Work].Name, nameless.Regions[profiletest.Work].Code = "", ident.Code{Module: -1}
	nameless.Modules[0].BuildID = ident.ContentPrefix + "00ff"
	lines := ordinary()
	lines.Codes = lines.Places
	lines.CodeUses = []profile.CodeUse{
		{Code: 1, Object: 0, Region: profiletest.Work, Local: 2, Remote: 647, Unknown: 5, Latency: 300_001, Loads: 654},
		{Code: 1, Object: 1, Region: profiletest.Work, Local: 8},
	}
	return map[string]*profile.Profile{
		"ordinary": ordinary(), "odd names": odd, "nameless": nameless, "lines": lines, "empty": profiletest.Draw(2, 1),
		"one node": profiletest.Draw(1, 1, "u heap: 0 7"), "512 threads": profiletest.Draw(8, 64, "u heap: 0"+strings.Repeat(" 3", 512)),
	}
}

func TestCSV(t *testing.T) {
	for name, p := range profiles() {
		var b bytes.Buffer
		if err := WriteCSV(&b, p); err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(b.Bytes()) {
			t.Errorf("%s: not UTF-8", name)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := "object,kind,instance,page,thread,rank,cpu,node,home,region,region_kind,op,level,accesses,latency_cycles"; strings.Join(lines[0], ",") != want {
			t.Errorf("%s: columns %q", name, lines[0])
		}
		var local, known, all uint64
		for _, l := range lines[1:] {
			for i, field := range l {
				if field != "" && strings.ContainsAny(field[:1], "=+-@\t\r") {
					t.Errorf("%s: a spreadsheet takes %q in column %d for a formula", name, field, i)
				}
			}
			n, err := strconv.ParseUint(l[13], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			all += n
			if l[8] != "" {
				known += n
			}
			if l[8] == l[7] {
				local += n
			}
		}
		if want := access.Total(p).All; all != want.Total() || known != want.Known() || local != want.Local {
			t.Errorf("%s: %d accesses, %d with a home, %d local; want %+v", name, all, known, local, want)
		}
	}
}

// TestInert: the name that a reader sees is the one that was there.
func TestInert(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSV(&b, profiles()["odd names"]); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	// encoding/csv reads the line's end in quotes as LF.
	if want := "'=cmd|' /C calc'!A0, \"quoted\"\nand\uFFFD more"; lines[1][0] != want {
		t.Errorf("%q, want %q", lines[1][0], want)
	}
	if r := lines[2][9]; !strings.HasPrefix(r, "'@größe<script>") {
		t.Errorf("%q", r)
	}
}

// TestParquet: what is read back are the records.
func TestParquet(t *testing.T) {
	for name, p := range profiles() {
		var b bytes.Buffer
		if err := WriteParquet(&b, p); err != nil {
			t.Fatal(err)
		}
		got, err := parquet.Read[Record](bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := make([]Record, len(p.Rows))
		n := findNames(p)
		for i := range want {
			n.record(p, i, &want[i])
		}
		if d := cmp.Diff(want, got); d != "" && len(want)+len(got) > 0 {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

// large is a profile of n rows.
func large(n int) *profile.Profile {
	p := profiletest.Draw(4, 2, "u heap: 0 1", "v in a \"file\", heap: 1 1", "größe heap: ? 1")
	p.Pages, p.Rows = nil, make([]profile.Row, 0, n)
	for i := range (n + 7) / 8 {
		p.Pages = append(p.Pages, profile.Page{Object: i % 3, Index: i, Home: topo.NodeID(i%5 - 1), Thread: -1, Region: -1, Place: -1})
	}
	for i := range n {
		p.Rows = append(p.Rows, profile.Row{Page: int32(i / 8), Thread: int32(i % 8), Region: int32(i % 3), Op: profile.Op(i % 2), Level: profile.Level(i % 4), Count: uint64(i), Latency: uint64(3 * i)})
	}
	return p
}

// peak notes how much memory is live while something is written.
type peak struct {
	most    uint64
	written int
}

func (p *peak) Write(b []byte) (int, error) {
	const often = 1 << 19
	if p.written += len(b); p.written >= often {
		p.written = 0
		p.most = max(p.most, live())
	}
	return len(b), nil
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory: what writing takes does not grow with the table. A record takes some 200
// bytes, so that a million of them would show.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a million rows")
	}
	for name, write := range map[string]func(io.Writer, *profile.Profile) error{"csv": WriteCSV, "parquet": WriteParquet} {
		p := large(1_000_000)
		before := live()
		var seen peak
		if err := write(&seen, p); err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(p)
		if seen.most == 0 {
			t.Errorf("%s: nothing measured", name)
		}
		if taken := seen.most - min(seen.most, before); taken > 64<<20 {
			t.Errorf("%s: a million rows take %d MiB", name, taken>>20)
		} else {
			t.Logf("%s: %d MiB", name, taken>>20)
		}
	}
}

// readers is a Python that has duckdb and pandas, from scripts/setup test.
func readers(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(cache, "numaopt", "readers")
	if _, err := os.Stat(filepath.Join(dir, "installed")); err != nil {
		t.Skip("no duckdb and pandas: scripts/setup test fetches them")
	}
	return filepath.Join(dir, "bin", "python3")
}

const readParquet = `
import sys, duckdb, pandas
file = sys.argv[1]
for row in duckdb.sql(f"""select object, level, count(*), sum(accesses), sum(latency_cycles), sum(accesses) filter (home != node),
		count(*) filter (home is null) from '{file}' group by all order by all""").fetchall():
	print("|".join(str(x) for x in row))
d = pandas.read_parquet(file)
d["remote"] = d.accesses.where(d.home.notna() & (d.home != d.node), 0)
d["homeless"] = d.home.isna()
for (o, l), g in d.groupby(["object", "level"]):
	print("|".join(str(x) for x in (o, l, len(g), g.accesses.sum(), g.latency_cycles.sum(), int(g.remote.sum()), g.homeless.sum())))
`

// TestReaders: DuckDB and pandas open the file and add up the same.
func TestReaders(t *testing.T) {
	python := readers(t)
	p := large(200_000)
	file := filepath.Join(t.TempDir(), "t.parquet")
	var b bytes.Buffer
	if err := WriteParquet(&b, p); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", readParquet, file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := expected(p)
	if got := string(out); got != want+want {
		t.Errorf("%s\nwant twice\n%s", got, want)
	}
}

// expected is what readParquet prints of p, once.
func expected(p *profile.Profile) string {
	var out strings.Builder
	for _, object := range []int{2, 0, 1} { // by name: größe, u, v
		for _, level := range []profile.Level{profile.DRAM, profile.L1, profile.L2, profile.LLC} {
			var rows, sum, cycles, remote, homeless uint64
			for i := range p.Rows {
				r := &p.Rows[i]
				page := &p.Pages[r.Page]
				if page.Object != object || r.Level != level {
					continue
				}
				rows, sum, cycles = rows+1, sum+r.Count, cycles+r.Latency
				switch page.Home {
				case topo.Unknown:
					homeless++
				case p.Threads[r.Thread].Node:
				default:
					remote += r.Count
				}
			}
			fmt.Fprintf(&out, "%s|%s|%d|%d|%d|%d|%d\n", p.Objects[object].Name, levels[level], rows, sum, cycles, remote, homeless)
		}
	}
	return out.String()
}

// TestWriteErrors: a disk that is full is an error of each format.
func TestWriteErrors(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for name, write := range map[string]func(io.Writer, *profile.Profile) error{"csv": WriteCSV, "parquet": WriteParquet, "pprof": WritePprof} {
		if err := write(full, large(20_000)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	p := large(1_000_000)
	for name, write := range map[string]func(io.Writer, *profile.Profile) error{"csv": WriteCSV, "parquet": WriteParquet, "pprof": WritePprof} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := write(io.Discard, p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/math.Max(1, float64(b.N*len(p.Rows))), "ns/row")
		})
	}
}
