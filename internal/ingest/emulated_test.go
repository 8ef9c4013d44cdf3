package ingest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"numaopt/internal/profile"
	"numaopt/internal/programs"
	"numaopt/internal/record"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
)

// emulator prepares what the tests that run the real emulator need.
func emulator(t *testing.T) record.Emulator {
	t.Helper()
	if testing.Short() {
		t.Skip("runs programs in the emulator")
	}
	qemu, err := record.FindEmulator()
	if err != nil {
		t.Skip(err)
	}
	if os.Getenv(runfile.LibDir) == "" {
		build := filepath.Join(programs.Root(), "build")
		out, err := exec.Command("make", "-s", "-C", filepath.Join(programs.Root(), "runtime-c"), "BUILD="+build, "all").CombinedOutput()
		if err != nil {
			t.Fatalf("make runtime-c: %v\n%s", err, out)
		}
		t.Setenv(runfile.LibDir, filepath.Join(build, "lib", "numaopt"))
	}
	return qemu
}

// compile builds testdata/NAME.c.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return compileWith(t, "gcc", name, flags...)
}

func compileWith(t *testing.T, compiler, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	args := append(append([]string{"-O1", "-g", "-o", out}, flags...), filepath.Join("testdata", name+".c"))
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

type result struct {
	*profile.Profile
	raw *record.Raw
	out string
}

// emulate runs a command on 4x2 and returns its profile.
func emulate(t *testing.T, qemu record.Emulator, change func(*record.Options), command ...string) result {
	t.Helper()
	return emulateIn(context.Background(), t, qemu, change, command...)
}

func emulateIn(ctx context.Context, t *testing.T, qemu record.Emulator, change func(*record.Options), command ...string) result {
	t.Helper()
	machine, err := topo.Parse("4x2")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	opt := record.Options{Command: command, Topology: machine, Bind: topo.BindCompact, Cache: topo.DefaultCaches(), Period: 1, Stdout: &out, Stderr: &out}
	if change != nil {
		change(&opt)
	}
	raw, err := record.Emulate(ctx, qemu, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	p, err := Emulated(raw, profile.Run{Command: command, Topology: opt.Topology, Bind: string(opt.Bind), Cache: opt.Cache, Period: opt.Period})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return result{p, raw, out.String()}
}

// object returns the index of the one object of this name with pages.
func (r result) object(t *testing.T, name string) int {
	t.Helper()
	for i, o := range r.Objects {
		if o.Name == name {
			return i
		}
	}
	var have []string
	for _, o := range r.Objects {
		have = append(have, o.Name)
	}
	t.Fatalf("no object %q among\n%s", name, strings.Join(have, "\n"))
	return -1
}

// counts are accesses to an object by page, thread's rank and operation.
type countKey struct{ page, rank, op int }

func (r result) counts(object int) map[countKey]uint64 {
	out := map[countKey]uint64{}
	for _, row := range r.Rows {
		if g := r.Pages[row.Page]; g.Object == object {
			out[countKey{g.Index, r.Threads[row.Thread].Rank, int(row.Op)}] += row.Count
		}
	}
	return out
}

func TestCountsAreExact(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "static", "-fopenmp")
	r := emulate(t, qemu, nil, app)
	if r.out != "131072\n" && r.out != "524288\n" {
		t.Errorf("the program printed %q", r.out)
	}
	heap, global := r.object(t, "static.c:11 (grid)"), r.object(t, "table in static.c")
	var want, have [2]uint64
	want = [2]uint64{3*65536 + 65536, 65536 + 3*65536}
	for k, n := range r.counts(heap) {
		have[k.op] += n
		if k.op == int(profile.Store) && k.rank == k.page/16 && k.rank != 0 && n != 3*512 {
			t.Errorf("page %d: %d stores by its owner %d, want %d", k.page, n, k.rank, 3*512)
		}
	}
	if have != want {
		t.Errorf("loads and stores of the heap object: %d, want %d", have, want)
	}
	var stores uint64
	for k, n := range r.counts(global) {
		stores += n
		if k.op != int(profile.Store) || k.rank != k.page/16 && k.page != 0 && k.page%16 != 0 {
			t.Errorf("table: page %d, rank %d, op %d: %d", k.page, k.rank, k.op, n)
		}
	}
	if stores != 3*65536 {
		t.Errorf("table: %d stores, want %d", stores, 3*65536)
	}
	for _, g := range r.Pages {
		switch g.Object {
		case heap:
			if g.Home != 0 || !g.Serial || r.Regions[g.Region].Name != "grid" || r.Threads[g.Thread].Rank != 0 || g.Place < 0 {
				t.Fatalf("heap page %+v of region %q", g, r.Regions[g.Region].Name)
			}
		case global:
			if g.Serial || r.Regions[g.Region].Kind != profile.Loop || r.Regions[g.Region].Entries != 3 {
				t.Fatalf("global page %+v of region %+v", g, r.Regions[g.Region])
			}
		}
	}
}

func TestSameCountsTwice(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "static", "-fopenmp")
	var before map[countKey]uint64
	var dram [2]float64
	for run := range dram {
		r := emulate(t, qemu, nil, app)
		all := map[countKey]uint64{}
		for i, name := range []string{"static.c:11 (grid)", "table in static.c"} {
			for k, n := range r.counts(r.object(t, name)) {
				k.page += i << 20
				all[k] = n
			}
		}
		if run > 0 && !equal(before, all) {
			t.Error("counts of two runs differ")
		}
		before, dram[run] = all, remoteDRAM(r.Profile)
	}
	if math.Abs(dram[0]-dram[1]) > 2 {
		t.Errorf("remote DRAM accesses of two runs: %.2f %% and %.2f %%", dram[0], dram[1])
	}
}

func equal(a, b map[countKey]uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for k, n := range a {
		if b[k] != n {
			return false
		}
	}
	return true
}

func remoteDRAM(p *profile.Profile) float64 {
	var remote, all float64
	for _, r := range p.Rows {
		g := p.Pages[r.Page]
		if r.Level == profile.DRAM && g.Home != topo.Unknown {
			all += float64(r.Count)
			if g.Home != p.Threads[r.Thread].Node {
				remote += float64(r.Count)
			}
		}
	}
	return 100 * remote / all
}

func TestSampling(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "static", "-fopenmp")
	sum := func(p *profile.Profile) (n float64) {
		for _, r := range p.Rows {
			n += float64(r.Count)
		}
		return n
	}
	full := emulate(t, qemu, nil, app)
	some := emulate(t, qemu, func(o *record.Options) { o.Period = 97 }, app)
	if a, b := sum(full.Profile), sum(some.Profile); math.Abs(a-b) > 0.05*a {
		t.Errorf("%.0f accesses, %.0f by sampling", a, b)
	}
}

func TestSystemCallsTouch(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "calls", "-fopenmp")
	for _, c := range []struct {
		what string
		home topo.NodeID
	}{
		{"write", 2}, {"malloc", 2}, {"read", 2}, {"readv", 2}, {"populate", 2}, {"dontneed", 2}, {"mremap", 2}, {"zero", topo.Unknown},
		{"file-read", 2}, {"file-shared", 2}, {"file-before", 0}, {"file-copied", 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(file, make([]byte, 64*4096), 0o600); err != nil {
				t.Fatal(err)
			}
			r := emulate(t, qemu, nil, app, c.what, file)
			for _, o := range r.Objects {
				if o.FileBacked && (o.Kind != profile.Mapping || !strings.HasPrefix(c.what, "file")) {
					t.Errorf("file-backed: %+v", o)
				}
			}
			found := map[topo.NodeID]int{}
			for _, row := range r.Rows {
				// The reads of main at the end are what counts.
				g := r.Pages[row.Page]
				if r.Regions[row.Region].Name == "read_all" && r.Objects[g.Object].Kind != profile.Stack && r.Objects[g.Object].Kind != profile.Image {
					found[g.Home] += int(row.Count)
				}
			}
			if n := found[c.home]; n < 64*64 || len(found) > 1 && n < 64*64 {
				t.Errorf("reads by home: %v, want %d of home %d", found, 64*64, c.home)
			}
		})
	}
}

// What libc or the kernel touches first is the doing of the function that called it.
func TestFirstTouchOfCaller(t *testing.T) {
	qemu := emulator(t)
	want := map[string]string{"set": "call_memset", "copied": "call_memcpy", "tail": "jump_memset", "filled": "call_read",
		"pointed": "call_pointer", "own": "store"}
	for _, build := range [][]string{{"gcc", "-O2"}, {"gcc", "-O2", "-fno-plt"}, {"clang", "-O2"}} {
		app := compileWith(t, build[0], "caller", append(build[1:], "-fopenmp")...)
		r := emulate(t, qemu, nil, app)
		found := map[string]map[string]int{}
		for _, g := range r.Pages {
			object, where := r.Objects[g.Object].Name, "nowhere"
			if g.Place >= 0 && g.Region >= 0 {
				function, _, _ := strings.Cut(r.Places[g.Place].Symbol, ".") // of a clone
				where = function + " in " + r.Regions[g.Region].Name
			}
			if found[object] == nil {
				found[object] = map[string]int{}
			}
			found[object][where]++
		}
		for object, f := range want {
			// The array's first and last page may be a neighbour's, too.
			if by := found[object+" in caller.c"]; by[f+" in "+f] < 62 {
				t.Errorf("%v: pages of %s first touched by %v, want 64 by %s", build, object, by, f)
			}
		}
	}
}

// Threads take part in what they share as if each had a CPU, however few there are. On a
// busy machine one may get no CPU for so long that the others go on without it; that
// does not happen in every run.
func TestTogether(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "together", "-fopenmp")
	var wrong string
	for range 5 {
		if wrong = together(t, emulate(t, qemu, nil, app)); wrong == "" {
			return
		}
		t.Log(wrong)
	}
	t.Error(wrong)
}

func together(t *testing.T, r result) (wrong string) {
	if r.out != "sum 8808\n" || r.raw.Status != 0 {
		t.Fatalf("status %d\n%s", r.raw.Status, r.out)
	}
	by, all := make([]uint64, 8), uint64(0)
	for k, n := range r.counts(r.object(t, "work in together.c")) {
		by[k.rank] += n
		all += n
	}
	for rank, n := range by {
		if rank > 0 && (20*n < all || 4*n > all) { // the main thread also adds it up
			wrong = fmt.Sprintf("rank %d made %d of %d accesses", rank, n, all)
		}
	}
	// Without pace.c a quarter of them.
	o, late := r.object(t, "raced in together.c"), 0
	for _, g := range r.Pages {
		if g.Object == o && int(g.Home) != g.Index/32%8/2 {
			late++
		}
	}
	if late > 8*256/6 {
		wrong = fmt.Sprintf("on %d of 8*256 pages the thread that ended there came first", late)
	}
	return wrong
}

// Nothing that the threads or the emulator do is held up because threads wait for each
// other.
func TestNobodyIsHeldUp(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "together", "-fopenmp", "-Wno-attributes")
	for _, what := range []string{"fork", "exit", "split", "fresh", "moves", "computes"} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r := emulateIn(ctx, t, qemu, nil, app, what)
			if r.raw.Status != 0 || ctx.Err() != nil {
				t.Errorf("status %d, %v\n%s", r.raw.Status, ctx.Err(), r.out)
			}
		})
	}
}

func TestEnds(t *testing.T) {
	qemu := emulator(t)
	app := compile(t, "ends")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh -e\n"+app+" work\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	suid := filepath.Join(t.TempDir(), "true")
	if out, err := exec.Command("install", "-m", "4755", "/bin/true", suid).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		command   string
		status    int
		complete  bool
		processes int
		warning   string
	}{
		{app + " work", 0, true, 1, ""},
		{app + " status", 7, true, 1, ""},
		{app + " segv", 139, false, 1, "signal 11"},
		{app + " kill", 137, false, 1, "signal 9"},
		{app + " ill", 132, false, 1, "may be an instruction that this QEMU cannot emulate"},
		{app + " fork", 0, true, 2, "2 processes ran"},
		{app + " system", 0, true, 3, "processes ran"},
		{app + " exec", 0, true, 1, ""},
		{app + " become", 0, true, 1, ""},
		{app + " foreign " + suid, 0, true, 1, "ran outside the emulator"},
		{app + " fexec", 0, true, 1, ""},
		{app + " memfd", 0, true, 1, ""},
		{app + " missing", 9, true, 1, ""},
		{"env " + app + " work", 0, true, 1, ""},
		{"env -i " + app + " work", 0, true, 1, ""},
		{script, 0, true, 2, "processes ran"},
	} {
		t.Run(strings.ReplaceAll(filepath.Base(c.command), app, "ends"), func(t *testing.T) {
			r := emulate(t, qemu, nil, strings.Fields(c.command)...)
			if r.raw.Status != c.status || r.Run.Complete != c.complete || r.Run.Processes != c.processes {
				t.Errorf("status %d, complete %v, %d processes, want %d, %v, %d\n%s", r.raw.Status, r.Run.Complete, r.Run.Processes, c.status, c.complete, c.processes, r.out)
			}
			if all := strings.Join(r.Warnings, "\n"); c.warning != "" && !strings.Contains(all, c.warning) || c.warning == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, c.warning)
			}
			var stores uint64
			for i, o := range r.Objects {
				nameless := strings.HasSuffix(c.command, "memfd") // its file is gone, and with it the lines
				if !strings.HasPrefix(o.Name, "ends.c:16 (work)") && !(nameless && o.Kind == profile.Heap) {
					continue
				}
				for k, n := range r.counts(i) {
					if k.op == int(profile.Store) {
						stores += n
					}
				}
			}
			if stores < 4<<17 {
				t.Errorf("%d stores to the block, want %d or more", stores, 4<<17)
			}
		})
	}
}

func TestDynamicLoops(t *testing.T) {
	qemu := emulator(t)
	want := map[string]bool{"plain": false, "fixed": false, "by_environment": false, "dynamic": true, "guided": true, "inside": true, "in_order": true, "across": true, "reduced": true, "reduced_fixed": false,
		"tasks": true, "taskloop": true, "alone": false, "rows": false}
	for _, c := range []struct{ compiler, schedule string }{{"gcc", ""}, {"gcc", "static"}, {"clang", ""}, {"clang", "dynamic,8"}} {
		t.Run(c.compiler+" "+c.schedule, func(t *testing.T) {
			app := compileWith(t, c.compiler, "dynamic", "-fopenmp")
			command := []string{app}
			if c.schedule != "" {
				command = []string{"env", "OMP_SCHEDULE=" + c.schedule, app}
			}
			r := emulate(t, qemu, nil, command...)
			if r.raw.Status != 0 {
				t.Fatalf("status %d\n%s", r.raw.Status, r.out)
			}
			// Without a schedule gcc's runtime is dynamic, clang's static.
			want["by_environment"] = c.compiler == "gcc" && c.schedule == "" || strings.HasPrefix(c.schedule, "dynamic")
			seen, nested := map[string]bool{}, map[uint64]bool{}
			for _, x := range r.Regions {
				if _, ok := want[x.Function]; ok && x.Kind == profile.Loop {
					seen[x.Function] = seen[x.Function] || x.Dynamic // of the region and the loops in it, one
				}
				if x.Function == "nested" && x.Dynamic {
					nested[x.Code.Offset] = true
				}
			}
			for f, is := range seen {
				if is != want[f] {
					t.Errorf("%s: dynamic %v", f, is)
				}
			}
			if len(nested) != 1 {
				t.Errorf("%d of the nested loops are dynamic, want the inner one", len(nested))
			}
			for _, row := range r.Rows {
				if x := r.Regions[row.Region]; x.Function == "row" {
					t.Fatalf("%s has accesses: they are of the loop around its teams of one", x.Name)
				}
			}
			if len(seen) < len(want)-1 { // "alone" may be a call of its body
				t.Errorf("loops of %v only", seen)
			}
		})
	}
}

func TestWorksharingLoops(t *testing.T) {
	qemu := emulator(t)
	// gcc asks for the thread's number once for all loops of an outlined function.
	for compiler, want := range map[string]string{
		"clang": `loops.c:10 (orphan) static group 0, 2 in sweeps of 1, 128 Ki stores
loops.c:20 (region) static group 1, 6 in sweeps of 1, 384 Ki stores
loops.c:23 (region) static group 1, 6 in sweeps of 1, 384 Ki stores
loops.c:28 (region)  group 0, 2 in sweeps of 1, 128 Ki stores
loops.c:36 (sweep) static group 0, 10 in sweeps of 5, 640 Ki stores`,
		"gcc": `loops.c:17 (region)  group 0, 2 in sweeps of 1, 768 Ki stores
loops.c:36 (sweep)  group 0, 10 in sweeps of 5, 640 Ki stores
loops.c:9 (orphan)  group 0, 2 in sweeps of 1, 256 Ki stores`, // and those of the loop after it
	} {
		app := compileWith(t, compiler, "loops", "-fopenmp", "-O2")
		r := emulate(t, qemu, nil, app)
		stores := make([]uint64, len(r.Regions))
		for _, x := range r.Rows {
			if x.Op == profile.Store && strings.HasSuffix(r.Objects[r.Pages[x.Page].Object].Name, "in loops.c") {
				stores[x.Region] += x.Count
			}
		}
		var got []string
		for i, x := range r.Regions {
			if x.Worksharing() {
				got = append(got, fmt.Sprintf("%s %s group %d, %d in sweeps of %d, %d Ki stores", x.Name, x.Schedule, x.Group, x.Invocations, x.Sweep, (stores[i]+512)/1024))
			}
		}
		sort.Strings(got)
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("%s: got\n%s\nwant\n%s", compiler, s, want)
		}
	}
}

// TestSweepParts: the rows of a loop in a serial one say in which part of the sweep
// a thread used the page: of a in one instance, of b in one or two.
func TestSweepParts(t *testing.T) {
	qemu := emulator(t)
	for _, compiler := range []string{"gcc", "clang"} {
		p := emulate(t, qemu, nil, compileWith(t, compiler, "phases", "-fopenmp", "-O2"))
		rows := make(map[string]int)
		for i := range p.Rows {
			r := &p.Rows[i]
			loop, o := &p.Regions[r.Region], &p.Objects[p.Pages[r.Page].Object]
			if !loop.Worksharing() || r.Level == profile.L1 || o.Kind != profile.Global {
				continue
			}
			rows[o.Symbol]++
			page, sweep := p.Pages[r.Page].Index, 30
			first, last := page/8, page/8
			if o.Symbol == "b" {
				sweep, first = 10, (page-p.Threads[r.Thread].Rank+8)%8
				if last = first; first < 2 {
					last += 8
				}
			}
			if loop.Sweep != uint64(sweep) || int(r.First) != first*profile.SweepParts/sweep || int(r.Last) != last*profile.SweepParts/sweep {
				t.Errorf("%s: thread %d, page %d of %s: parts %d to %d, sweeps of %d; want instances %d and %d", compiler, p.Threads[r.Thread].Rank, page, o.Symbol, r.First, r.Last, loop.Sweep, first, last)
			}
		}
		if rows["a"] < 240 || rows["b"] < 64 {
			t.Errorf("%s: rows %v", compiler, rows)
		}
	}
}
