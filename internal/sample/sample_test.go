package sample

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/arena"
	"numaopt/internal/eventlog"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

const kind = pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | pt.Period | pt.WeightStruct | pt.DataSrc

func events(sampleType uint64) []pt.Event {
	a := perfdata.Attr{Type: 4, Config: 0x1cd, Period: 1000, SampleType: sampleType, ReadFormat: 4, Flags: pt.SampleIDAll}
	st := a
	st.Config = 0x82d0
	return []pt.Event{{Name: "cpu/mem-loads,ldlat=3/P", Attr: a, IDs: []uint64{1}}, {Name: "cpu/mem-stores/P", Attr: st, IDs: []uint64{2}}}
}

// Sources of samples as processors give them: Skylake fills both forms.
const (
	localRAM  = perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelLocalRAM)<<5 | perfdata.NumRAM<<33)
	remoteRAM = perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelRemRAM1)<<5 | perfdata.NumRAM<<33 | 1<<37)
	hitL1     = perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL1)<<5 | perfdata.NumL1<<33)
	storeL1   = perfdata.DataSrc(perfdata.OpStore | (perfdata.LevelHit|perfdata.LevelL1)<<5)
)

func read(t *testing.T, w *pt.Writer, opt Options) (*Table, *Stats) {
	t.Helper()
	f, err := perfdata.Parse("test", w.File())
	if err != nil {
		t.Fatal(err)
	}
	opt.Machine, err = topo.Parse("2x2")
	if err != nil {
		t.Fatal(err)
	}
	table, stats, err := Read(f, opt)
	if err != nil {
		t.Fatal(err)
	}
	return table, stats
}

// at is a sample of thread tid on a CPU.
func at(tid, cpu uint32, time, addr uint64, source perfdata.DataSrc, latency uint64) perfdata.Sample {
	s := perfdata.Sample{Mode: 2, PID: 100, TID: tid, CPU: cpu, Time: time, Addr: addr, IP: 0x401000, Period: 1000, Latency: latency, Source: source}
	if source.Op()&perfdata.OpStore != 0 {
		s.Event = 1
	}
	return s
}

const (
	heapA = 0x7f0000000000
	heapB = 0x7f0000100000
)

func recording() *pt.Writer {
	w := &pt.Writer{Events: events(kind)}
	w.Comm(100, 100, 1, "app")
	w.Mmap(100, 100, 2, heapA, 0x10000, 0, "//anon")
	w.Mmap(100, 100, 500, heapB, 0x10000, 0, "//anon")
	w.Mmap(100, 100, 900, heapA, 0x10000, 0, "//anon") // the same place again
	return w
}

// TestTable holds rows, homes, threads and objects of a recording that is small
// enough to work out by hand.
func TestTable(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{},
		at(100, 0, 10, heapA, localRAM, 200),
		at(100, 0, 11, heapA+8, remoteRAM, 400), // one vote against
		at(100, 0, 12, heapA, localRAM, 220),
		at(101, 2, 20, heapA+64, remoteRAM, 380),
		at(101, 2, 21, heapA+64, hitL1, 5),
		at(101, 2, 600, heapB, localRAM, 210),
		at(101, 2, 601, heapB, storeL1, 0),
		at(100, 1, 950, heapA, localRAM, 230), // of the second mapping there
		perfdata.Sample{Mode: 1, PID: 100, TID: 100, Time: 30, Addr: heapA, Period: 1000, Source: hitL1},
		perfdata.Sample{Mode: 2, PID: 100, TID: 100, Time: 31, Period: 1000, Source: hitL1},
		perfdata.Sample{Mode: 2, PID: 100, TID: 100, CPU: 77, Time: 32, Addr: heapA, Period: 1000, Source: hitL1},
		perfdata.Sample{Mode: 2, PID: 200, TID: 200, Time: 33, Addr: heapA, Period: 1000, Source: hitL1},
	)
	table, stats := read(t, w, Options{})
	want := &Stats{Samples: 12, Used: 8, Elsewhere: 1, Kernel: 1, NoAddress: 1, NoThread: 1, Processes: 2, Latencies: true, Sources: true,
		Others: "200", First: 10, Last: 950}
	if d := cmp.Diff(want, stats); d != "" {
		t.Errorf("stats (-want +got):\n%s", d)
	}
	threads, _ := table.Threads()
	wantThreads := []arena.Thread{{Rank: 0, CPU: 0, Node: 0}, {Rank: 0, CPU: 1, Node: 0}, {Rank: 1, CPU: 2, Node: 1}}
	if d := cmp.Diff(wantThreads, threads); d != "" {
		t.Errorf("threads (-want +got):\n%s", d)
	}
	var pages []arena.Page
	table.EachPage(func(_ int, p arena.Page) { pages = append(pages, p) }) //nolint:errcheck // memory
	wantPages := []arena.Page{
		{Number: heapA >> 12, Object: 1, Home: 0, Thread: -1, Module: -1},
		{Number: heapB >> 12, Object: 2, Home: 1, Thread: -1, Module: -1},
		{Number: heapA >> 12, Object: 3, Home: 0, Thread: -1, Module: -1},
	}
	if d := cmp.Diff(wantPages, pages); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	type row struct {
		page, thread   int
		level          profile.Level
		op             profile.Op
		count, latency uint64
	}
	var rows []row
	table.EachBlock(func(b *arena.Block) { //nolint:errcheck // memory
		for level := range b.Count {
			for op, n := range b.Count[level] {
				if n > 0 {
					rows = append(rows, row{b.Page, b.Thread, profile.Level(level), profile.Op(op), n, b.Latency[level][op]})
				}
			}
		}
	})
	wantRows := []row{
		{1, 0, profile.DRAM, profile.Load, 3000, 820_000},
		{1, 2, profile.L1, profile.Load, 1000, 5_000},
		{1, 2, profile.DRAM, profile.Load, 1000, 380_000},
		{2, 2, profile.L1, profile.Store, 1000, 0},
		{2, 2, profile.DRAM, profile.Load, 1000, 210_000},
		{3, 1, profile.DRAM, profile.Load, 1000, 230_000},
	}
	if d := cmp.Diff(wantRows, rows, cmp.AllowUnexported(row{})); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

// TestPhysical takes homes from physical addresses where there are any, and counts
// where the processor says otherwise.
func TestPhysical(t *testing.T) {
	w := recording()
	w.Events = events(kind | pt.PhysAddr)
	// MEM_TOPOLOGY: version 1, blocks of 128 MiB, node 0 has block 0, node 1 block 1.
	w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)}
	on := func(s perfdata.Sample, phys uint64) perfdata.Sample {
		s.Phys = phys
		return s
	}
	w.Add(pt.Variable{},
		on(at(100, 0, 10, heapA, localRAM, 200), 130<<20),
		on(at(100, 0, 600, heapB, remoteRAM, 400), 131<<20))
	table, stats := read(t, w, Options{})
	var homes []int
	table.EachPage(func(_ int, p arena.Page) { homes = append(homes, p.Home) }) //nolint:errcheck // memory
	if d := cmp.Diff([]int{1, 1}, homes); d != "" || stats.Disagree != 1 {
		t.Errorf("homes %v, want both on node 1; %d pages where the processor disagrees, want 1", homes, stats.Disagree)
	}
}

// TestMoved holds that a page which was on two nodes is a page of each, with the
// accesses that were made then: the fault that moved it is of the first, as is the first
// touch, which is in no count.
func TestMoved(t *testing.T) {
	w := &pt.Writer{Events: faultEvents("minor-faults", 5, pt.PhysAddr)}
	w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)}
	w.Mmap(100, 100, 2, heapA, 0x10000, 0, "//anon")
	fault := func(tid, cpu uint32, time, phys uint64) perfdata.Sample {
		return perfdata.Sample{Mode: 2, PID: 100, TID: tid, CPU: cpu, Time: time, Addr: heapA, Phys: phys, IP: 0x401000}
	}
	kernel := fault(100, 0, 9, 130<<20)
	kernel.Mode = 1
	w.Add(pt.Variable{}, fault(101, 3, 50, 0), fault(100, 1, 60, 1<<20), kernel, fault(100, 0, 10, 130<<20),
		fault(101, 2, 20, 130<<20), fault(101, 2, 30, 1<<20), fault(100, 1, 40, 1<<20))
	table, stats := read(t, w, Options{})
	var pages []arena.Page
	table.EachPage(func(_ int, p arena.Page) { pages = append(pages, p) }) //nolint:errcheck // memory
	want := []arena.Page{
		{Number: heapA >> 12, Object: 1, Home: 1, Thread: 0, Module: -1, Serial: true, Kernel: true},
		{Number: heapA >> 12, Object: 1, Home: 0, Thread: -1, Module: -1},
	}
	if d := cmp.Diff(want, pages); d != "" || stats.Moved != 1 || stats.Kernel != 0 {
		t.Errorf("%d moved, %d of the kernel's left out; pages (-want +got):\n%s", stats.Moved, stats.Kernel, d)
	}
	counts := map[int]uint64{}
	table.EachBlock(func(b *arena.Block) { counts[b.Page] += b.Count[profile.DRAM][profile.Load] }) //nolint:errcheck // memory
	if d := cmp.Diff(map[int]uint64{1: 3, 2: 3}, counts); d != "" {
		t.Errorf("accesses by page (-want +got):\n%s", d)
	}
}

// TestStays: two pages move to a user that stays, and one fault of the two is counted
// before and one after; a page whose users come and go was used before it moved.
func TestStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		later [2]uint32 // CPUs of the faults that follow
		want  map[int]uint64
	}{
		{"a user that stays", [2]uint32{2, 3}, map[int]uint64{0: 1, 1: 5}},
		{"others", [2]uint32{0, 2}, map[int]uint64{0: 2, 1: 4}},
	} {
		w := &pt.Writer{Events: faultEvents("minor-faults", 5, pt.PhysAddr)}
		w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)}
		w.Mmap(100, 100, 2, heapA, 0x10000, 0, "//anon")
		for page := range uint64(2) {
			for i, cpu := range []uint32{0, 2, c.later[0], c.later[1]} {
				phys := page << 12
				if i > 0 {
					phys += 128 << 20
				}
				w.Add(pt.Variable{}, perfdata.Sample{Mode: 2, PID: 100, TID: 100 + cpu, CPU: cpu, Time: 10 + uint64(i), Addr: heapA + page<<12, Phys: phys + 1, IP: 0x401000})
			}
		}
		table, _ := read(t, w, Options{})
		var homes []int
		table.EachPage(func(_ int, p arena.Page) { homes = append(homes, p.Home) }) //nolint:errcheck // memory
		counts := map[int]uint64{}
		table.EachBlock(func(b *arena.Block) { counts[homes[b.Page-1]] += b.Count[profile.DRAM][profile.Load] }) //nolint:errcheck // memory
		if d := cmp.Diff(c.want, counts); d != "" {
			t.Errorf("%s: faults by home (-want +got):\n%s", c.name, d)
		}
	}
}

func faultEvents(name string, config, fields uint64) []pt.Event {
	return []pt.Event{{Name: name, Attr: perfdata.Attr{Type: 1, Config: config, Period: 1, ReadFormat: 4,
		SampleType: pt.Identifier | pt.IP | pt.TID | pt.Time | pt.Addr | pt.CPU | fields, Flags: pt.SampleIDAll}, IDs: []uint64{1}}}
}

// TestFaults takes the first fault of a page for its first touch and home; that which
// brings code in is no access to data.
func TestFaults(t *testing.T) {
	w := &pt.Writer{Events: faultEvents("page-faults:u", 2, 0)}
	w.Mmap(100, 100, 2, heapA, 0x10000, 0, "//anon")
	fault := func(tid, cpu uint32, time, addr uint64) perfdata.Sample {
		return perfdata.Sample{Mode: 2, PID: 100, TID: tid, CPU: cpu, Time: time, Addr: addr, IP: 0x401000}
	}
	w.Add(pt.Variable{}, fault(100, 0, 50, heapA), fault(101, 3, 10, heapA+100), fault(100, 0, 60, heapA+4096), fault(100, 0, 70, 0x401008))
	table, stats := read(t, w, Options{})
	var pages []arena.Page
	table.EachPage(func(_ int, p arena.Page) { pages = append(pages, p) }) //nolint:errcheck // memory
	want := []arena.Page{
		{Number: heapA >> 12, Object: 1, Home: 1, Thread: 1, Module: -1},
		{Number: heapA>>12 + 1, Object: 1, Home: 0, Thread: 0, Module: -1, Serial: true},
	}
	if d := cmp.Diff(want, pages); d != "" || !stats.Faults || stats.Fetches != 1 {
		t.Errorf("%d of code; pages (-want +got):\n%s", stats.Fetches, d)
	}
	told := 0                                            // which faults count is not known of each
	table.EachUse(func(*arena.Use) { told++ })           //nolint:errcheck // memory
	table.EachInterval(func(*arena.Interval) { told++ }) //nolint:errcheck // memory
	if told != 0 {
		t.Errorf("%d lines of source and parts of the run", told)
	}
}

// TestWorkers holds that the table does not depend on how many read: not with pages in
// all shards, some of which grow, nor with pages that moved.
func TestWorkers(t *testing.T) {
	w := recording()
	w.Events = events(kind | pt.PhysAddr)
	w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)}
	for i := range uint64(300_000) {
		addr := uint64(heapA + i*64%0x10000)
		if i%3 == 0 {
			addr = heapA + i*4160%(4<<20) + i/50_000<<30
		}
		s := at(100+uint32(i%5), uint32(i%4), 1000+i, addr, []perfdata.DataSrc{localRAM, remoteRAM, hitL1, storeL1}[i*7/3%4], i%500)
		if i%11 == 0 {
			s.Phys = 1<<20 + i%2*(128<<20)
		}
		w.Add(pt.Variable{}, s)
	}
	dump := func(workers int) (out []any) {
		table, stats := read(t, w, Options{Workers: workers})
		if stats.Moved == 0 || stats.Disagree == 0 || table.NumPages() < 5000 {
			t.Errorf("%d pages moved, on %d there is no agreement, %d records", stats.Moved, stats.Disagree, table.NumPages())
		}
		threads, _ := table.Threads()
		out = append(out, threads, table.Accesses())
		table.EachPage(func(i int, p arena.Page) { out = append(out, i, p) }) //nolint:errcheck // memory
		table.EachBlock(func(b *arena.Block) { out = append(out, *b) })       //nolint:errcheck // memory
		return append(out, *stats, histograms(table))
	}
	one := dump(1)
	for _, workers := range []int{2, 5} {
		if !reflect.DeepEqual(one, dump(workers)) {
			t.Errorf("one worker and %d differ", workers)
		}
	}
	var rows, cells uint64
	table, _ := read(t, w, Options{})
	table.EachBlock(func(b *arena.Block) { //nolint:errcheck // memory
		for _, l := range b.Latency {
			rows += l[profile.Load]
		}
	})
	table.EachLatency(func(l Latency) { cells += l.Cycles })
	if rows == 0 || rows != cells {
		t.Errorf("%d cycles in the rows, %d in the histograms", rows, cells)
	}
}

// TestLevels holds what sources mean. The expected words are those that perf
// script prints for these bits (tools/perf/util/mem-events.c).
func TestLevels(t *testing.T) {
	lvl := func(l uint64) perfdata.DataSrc { return perfdata.DataSrc(perfdata.OpLoad | l<<5) }
	num := func(n uint64, remote uint64) perfdata.DataSrc {
		return perfdata.DataSrc(perfdata.OpLoad | n<<33 | remote<<37)
	}
	for _, c := range []struct {
		name   string
		d      perfdata.DataSrc
		level  profile.Level
		remote bool
	}{
		{"L1 hit", lvl(perfdata.LevelHit | perfdata.LevelL1), profile.L1, false},
		{"LFB hit", lvl(perfdata.LevelHit | perfdata.LevelLFB), profile.L2, false},
		{"L2 hit", lvl(perfdata.LevelHit | perfdata.LevelL2), profile.L2, false},
		{"L3 hit", lvl(perfdata.LevelHit | perfdata.LevelL3), profile.LLC, false},
		{"L3 miss", lvl(perfdata.LevelMiss | perfdata.LevelL3), profile.DRAM, false},
		{"Local RAM hit", localRAM, profile.DRAM, false},
		{"Remote RAM (1 hop) hit", remoteRAM, profile.DRAM, true},
		{"Remote RAM (2 hops)", lvl(perfdata.LevelHit | perfdata.LevelRemRAM2), profile.DRAM, true},
		{"Remote Cache (1 hop) hit", lvl(perfdata.LevelHit | perfdata.LevelRemCache1), profile.LLC, true},
		{"RAM, by number alone", num(perfdata.NumRAM, 0), profile.DRAM, false},
		{"Remote RAM, by number alone", num(perfdata.NumRAM, 1), profile.DRAM, true},
		{"Remote Any cache", num(perfdata.NumAnyCache, 1), profile.LLC, true},
		{"CXL", num(perfdata.NumCXL, 0), profile.DRAM, false},
		{"nothing said", perfdata.DataSrc(perfdata.OpLoad | 1<<5 | perfdata.NumNone<<33), profile.L1, false},
	} {
		if level, remote := Level(c.d); level != c.level || remote != c.remote {
			t.Errorf("%s: level %d, remote %v; want %d, %v", c.name, level, remote, c.level, c.remote)
		}
	}
}

// TestRefused lists recordings that cannot be used, and what is said.
func TestRefused(t *testing.T) {
	plain := &pt.Writer{Events: events(kind &^ pt.Addr)}
	plain.Add(pt.Variable{}, at(100, 0, 1, 0, hitL1, 0))
	noCPU := &pt.Writer{Events: events(kind &^ pt.CPU)}
	noCPU.Add(pt.Variable{}, at(100, 0, 1, heapA, hitL1, 0))
	noThread := &pt.Writer{Events: events(kind &^ pt.TID)}
	noThread.Add(pt.Variable{}, at(100, 0, 1, heapA, hitL1, 0))
	unknown := recording()
	unknown.Add(pt.Variable{}, at(100, 99, 1, heapA, hitL1, 0))
	empty := recording()
	kernel := recording()
	kernel.Add(pt.Variable{}, perfdata.Sample{Mode: 1, PID: 100, TID: 100, Addr: heapA, Period: 1})
	pid := recording()
	pid.Add(pt.Variable{}, at(100, 0, 1, heapA, hitL1, 0))
	for _, c := range []struct {
		name string
		w    *pt.Writer
		opt  Options
		want string
	}{
		{"no addresses", plain, Options{}, "no data addresses in this file: it was recorded without -d"},
		{"no CPU", noCPU, Options{}, "--sample-cpu"},
		{"no thread", noThread, Options{}, "do not say on which CPU they were made"},
		{"CPUs that the machine does not have", unknown, Options{}, "a CPU that the machine does not have"},
		{"no samples", empty, Options{}, "there are no samples in it"},
		{"kernel only", kernel, Options{}, "made in the kernel"},
		{"another process", pid, Options{PID: 5}, "no samples of process 5; there are some of 100 (app)"},
	} {
		f, err := perfdata.Parse("test", c.w.File())
		if err != nil {
			t.Fatal(err)
		}
		c.opt.Machine, _ = topo.Parse("2x2")
		if _, _, err := Read(f, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something with %q", c.name, err, c.want)
		}
	}
}

// TestDRAMPeriods: they are of the samples of DRAM, not of all.
func TestDRAMPeriods(t *testing.T) {
	w := recording()
	for i := range uint64(12) {
		s := at(100, 0, 10+i, heapA+i<<12, localRAM, 200)
		if i >= 4 {
			s.Source, s.Period = localRAM&^0x1f|perfdata.OpStore, 7000
		}
		w.Add(pt.Variable{}, s, at(100, 0, 100+i, heapA+i<<12, hitL1, 5))
	}
	table, _ := read(t, w, Options{})
	// 4 samples of 1000 and 8 of 7000 accesses.
	if mean, even := table.DRAMPeriods(); mean != 5000 || even != (4*1e6+8*49e6)/60000 {
		t.Errorf("%v and %v", mean, even)
	}
}

// TestAlternating: what is known of a process is there when its next sample comes, for so
// many processes as there is room for.
func TestAlternating(t *testing.T) {
	r := &reader{spaces: map[uint32]*space{}}
	for pid := range uint32(3 * mostFinders) {
		r.spaces[pid] = &space{heap: newLifetimes(make([]eventlog.Object, 1))}
	}
	w := newWorker(r)
	w.enter(1)
	first := w.heap
	w.enter(2)
	w.enter(1)
	if w.heap != first {
		t.Error("the finder of process 1 is another than before")
	}
	for pid := range uint32(len(r.spaces)) {
		w.enter(pid)
		n := 0
		for _, p := range w.processes {
			if p.heap != nil {
				n++
			}
		}
		if w.heap == nil || n > mostFinders {
			t.Fatalf("process %d: has a finder: %v; %d have", pid, w.heap != nil, n)
		}
	}
}

// TestLost: what the kernel says of a full buffer and what it says of an event's samples
// are the same losses, and the larger count is the one that misses none.
func TestLost(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{}, at(100, 0, 10, heapA, localRAM, 200))
	lose := func(kind uint32, body ...uint64) {
		w.Record(kind, 0, w.Trailer(w.U64(nil, body...), 100, 100, 20), nil)
	}
	lose(2, 1, 300) // PERF_RECORD_LOST: id, lost
	lose(2, 1, 40)
	lose(13, 335) // PERF_RECORD_LOST_SAMPLES
	if _, stats := read(t, w, Options{}); stats.Lost != 340 {
		t.Errorf("%d lost, want 340", stats.Lost)
	}
}

// TestForked: of processes with as many samples each the ancestor is taken; of those that
// it forked, the ones that the recording does not see end are named.
func TestForked(t *testing.T) {
	w := &pt.Writer{Events: events(kind)}
	task := func(kind, pid, parent uint32) {
		w.Record(kind, 0, w.Trailer(w.U64(w.U32(nil, pid, parent, pid, parent), 1), pid, pid, 1), nil)
	}
	w.Comm(300, 300, 1, "app")
	const fork, exit = 7, 4
	task(fork, 200, 300) // numbers are used again: a child's may be smaller
	task(fork, 201, 200)
	task(fork, 202, 300)
	task(fork, 9, 8) // of somebody else
	task(exit, 202, 300)
	task(exit, 300, 1)
	for _, pid := range []uint32{200, 300, 201} {
		s := at(pid, 0, 10, heapA, localRAM, 200)
		s.PID = pid
		w.Add(pt.Variable{}, s)
	}
	table, stats := read(t, w, Options{})
	if table.PID != 300 || stats.Running != "200 (app), 201 (app)" {
		t.Errorf("process %d, running %q", table.PID, stats.Running)
	}
}

// TestProgram keeps only a program and the processes that descend from it, whatever others
// have, and nothing of what its process was before.
func TestProgram(t *testing.T) {
	w := &pt.Writer{Events: events(kind)}
	for _, p := range []struct{ pid, parent uint32 }{{100, 7}, {101, 100}, {200, 8}} {
		b := w.U64(w.U32(nil, p.pid, p.parent, p.pid, p.parent), 1)
		w.Record(7, 0, w.Trailer(b, p.pid, p.pid, 1), nil) // PERF_RECORD_FORK
	}
	w.Comm(100, 100, 2, "holder")
	w.Mmap(100, 100, 2, heapA, 1<<20, 0, "//anon")
	for i := range 5 {
		w.Add(pt.Variable{}, at(100, 0, uint64(3+i), heapA, localRAM, 200))
	}
	w.Exec(100, 8, "app")
	for pid, n := range map[uint32]int{7: 9, 100: 1, 101: 3, 200: 9} {
		for i := range n {
			s := at(pid, 0, uint64(10+i), heapA, localRAM, 200)
			s.PID = pid
			w.Add(pt.Variable{}, s)
		}
	}
	table, stats := read(t, w, Options{Program: 100})
	if table.Command != "app" {
		t.Errorf("%q, want the name of the process that it was forked from", table.Command)
	}
	if stats.Samples != 22 || stats.Used != 3 || stats.Elsewhere != 19 || stats.Processes != 2 {
		t.Errorf("%+v, want the three samples of 101", stats)
	}
	if objects, err := table.Objects(); err != nil || len(objects) > 1 {
		t.Errorf("objects %v (%v), want none of the holder's", objects, err)
	}
}

// TestJoined holds mappings apart that the kernel has joined: of a mapping that holds
// others, only the rest is new; the heap is one.
func TestJoined(t *testing.T) {
	anon := func(time, lo, hi uint64) *perfdata.Mmap {
		return &perfdata.Mmap{Time: time, Addr: lo << 12, Len: (hi - lo) << 12, Name: anonymous}
	}
	brk := func(time, lo, hi uint64) *perfdata.Mmap {
		m := anon(time, lo, hi)
		m.Name = heap
		return m
	}
	for _, c := range []struct {
		name string
		maps []*perfdata.Mmap
		want string // the objects of pages 0 to 9 in the end
	}{
		{"below", []*perfdata.Mmap{anon(1, 4, 8), anon(2, 2, 8)}, "..221111.."},
		{"above and below", []*perfdata.Mmap{anon(1, 4, 6), anon(2, 2, 8)}, "..221122.."},
		{"between", []*perfdata.Mmap{anon(1, 0, 2), anon(2, 4, 6), anon(3, 0, 6)}, "113322...."},
		{"again", []*perfdata.Mmap{anon(1, 2, 6), anon(2, 2, 6)}, "..2222...."},
		{"again, in one", []*perfdata.Mmap{anon(1, 2, 4), anon(2, 4, 6), anon(3, 2, 6)}, "..3333...."},
		{"a part of it", []*perfdata.Mmap{anon(1, 0, 8), anon(2, 2, 4)}, "11221111.."},
		{"heap", []*perfdata.Mmap{brk(1, 0, 2), brk(2, 0, 5)}, "11111....."},
	} {
		s, got := newSpace(c.maps, nil), ""
		for page := range uint64(10) {
			if p := s.at(page<<12, 9); p != nil {
				got += string(rune('0' + p.object))
			} else {
				got += "."
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		for _, o := range s.objects[1:] {
			if last := s.at(o.Addr+o.Bytes-1, 9); last == nil {
				t.Errorf("%s: %q ends beyond its mapping", c.name, o.Name)
			}
		}
	}
}
