package sample

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	et "numaopt/internal/eventlog/eventlogtest"
	"numaopt/internal/perfdata"
	pt "numaopt/internal/perfdata/perfdatatest"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Sources that say more of caches, as an Ice Lake gives them.
const (
	hitm       = perfdata.DataSrc(perfdata.SnoopHITM << 19)
	l3         = perfdata.DataSrc(perfdata.OpLoad | (perfdata.LevelHit|perfdata.LevelL3)<<5 | perfdata.NumL3<<33)
	remCache   = perfdata.DataSrc(perfdata.OpLoad | perfdata.LevelHit<<5 | perfdata.NumAnyCache<<33 | 1<<37)
	remoteHITM = remCache | hitm
)

func histograms(t *Table) []Latency {
	var out []Latency
	t.EachLatency(func(l Latency) { out = append(out, l) })
	slices.SortFunc(out, func(a, b Latency) int {
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Page, b.Page), cmp.Compare(a.Served, b.Served), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Bucket, b.Bucket))
	})
	return out
}

// TestHistograms: loads are added up by object, level, nodes and bucket; on two nodes
// the processor's word is enough for the node, and stores have no latency.
func TestHistograms(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{},
		at(100, 0, 10, heapA, localRAM, 200),
		at(100, 0, 11, heapA+4096, localRAM, 194), // of the same eighth of an octave
		at(100, 0, 12, heapA, remoteRAM, 400),
		at(101, 2, 20, heapA+64, hitL1, 5),
		at(101, 2, 600, heapB, remoteRAM, 300),
		at(101, 2, 601, heapB, storeL1, 0),
		at(100, 0, 700, 0x1000, l3, 60), // of no mapping
		at(100, 0, 701, 0x2000, l3, 0),
	)
	table, _ := read(t, w, Options{})
	const none = topo.Unknown
	want := []Latency{
		{Object: 0, Served: profile.ServedL3, From: 0, To: none, Bucket: 0, Samples: 1, Accesses: 1000},
		{Object: 0, Served: profile.ServedL3, From: 0, To: none, Bucket: profile.LatencyBucket(60), Samples: 1, Accesses: 1000, Cycles: 60_000},
		{Object: 1, Served: profile.ServedL1, From: 1, To: none, Bucket: 5, Samples: 1, Accesses: 1000, Cycles: 5_000},
		{Object: 1, Served: profile.ServedLocalDRAM, From: 0, To: 0, Bucket: profile.LatencyBucket(200), Samples: 2, Accesses: 2000, Cycles: 394_000},
		{Object: 1, Served: profile.ServedRemoteDRAM, From: 0, To: 1, Bucket: profile.LatencyBucket(400), Samples: 1, Accesses: 1000, Cycles: 400_000},
		{Object: 2, Served: profile.ServedRemoteDRAM, From: 1, To: 0, Bucket: profile.LatencyBucket(300), Samples: 1, Accesses: 1000, Cycles: 300_000},
	}
	if d := gocmp.Diff(want, histograms(table)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHistogramsOfFourNodes: of several remote nodes it is the page's home; where that
// is the thread's own, or not known, the node is not known.
func TestHistogramsOfFourNodes(t *testing.T) {
	w := recording()
	w.Add(pt.Variable{},
		at(100, 0, 10, heapA, remoteRAM, 400),
		at(101, 1, 11, heapA, remoteRAM, 400),
		at(102, 2, 12, heapA, localRAM, 200), // says where the page is
		at(103, 3, 13, heapA, remoteRAM, 600),
		at(102, 2, 14, heapA, remoteRAM, 600), // against it
		at(100, 0, 15, heapA+4096, remoteRAM, 500),
	)
	f, err := perfdata.Parse("test", w.File())
	if err != nil {
		t.Fatal(err)
	}
	machine, err := topo.Parse("4x1")
	if err != nil {
		t.Fatal(err)
	}
	table, _, err := Read(f, Options{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	type way struct {
		from, to topo.NodeID
		cycles   uint64
	}
	var got []way
	for _, l := range histograms(table) {
		got = append(got, way{l.From, l.To, l.Cycles / l.Accesses})
	}
	want := []way{{2, 2, 200}, {0, topo.Unknown, 500}, {0, 2, 400}, {1, 2, 400}, {2, topo.Unknown, 600}, {3, 2, 600}}
	if d := gocmp.Diff(want, got, gocmp.AllowUnexported(way{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestHistogramsOfOtherMemory: persistent memory and CXL are not the thread's own node
// for want of the word remote.
func TestHistogramsOfOtherMemory(t *testing.T) {
	w := recording()
	for i, number := range []uint64{perfdata.NumPMEM, perfdata.NumCXL} {
		w.Add(pt.Variable{}, at(100, 0, 10+uint64(i), heapA, perfdata.DataSrc(perfdata.OpLoad|perfdata.LevelHit<<5|number<<33), 900))
	}
	table, _ := read(t, w, Options{})
	for _, l := range histograms(table) {
		if l.From != 0 || l.To == 0 {
			t.Errorf("%v from node %d to %d", l.Served, l.From, l.To)
		}
	}
}

// TestHistogramsByPhysicalAddress takes the node from it, of caches, too.
func TestHistogramsByPhysicalAddress(t *testing.T) {
	w := recording()
	w.Events = events(kind | pt.PhysAddr)
	w.Features = map[int][]byte{22: w.U64(nil, 1, 128<<20, 2, 0, 64, 64, 1, 1, 64, 64, 2)} // as in TestPhysical
	s := at(100, 0, 10, heapA, l3, 60)
	s.Phys = 130 << 20
	w.Add(pt.Variable{}, s)
	table, _ := read(t, w, Options{})
	if l := histograms(table); len(l) != 1 || l[0].To != 1 {
		t.Errorf("%+v", l)
	}
}

// TestServed holds where sources say that a load was served. The expected words are
// those that perf script and perf mem report print for these bits.
func TestServed(t *testing.T) {
	lvl := func(l uint64) perfdata.DataSrc { return perfdata.DataSrc(perfdata.OpLoad | l<<5) }
	num := func(n, remote, hops uint64) perfdata.DataSrc {
		return perfdata.DataSrc(perfdata.OpLoad | n<<33 | remote<<37 | hops<<43)
	}
	for _, c := range []struct {
		name string
		d    perfdata.DataSrc
		want profile.Served
	}{
		{"L1 hit", hitL1, profile.ServedL1},
		{"LFB hit", lvl(perfdata.LevelHit | perfdata.LevelLFB), profile.ServedLFB},
		{"LFB, by number alone", num(perfdata.NumLFB, 0, 0), profile.ServedLFB},
		{"L2 hit", lvl(perfdata.LevelHit | perfdata.LevelL2), profile.ServedL2},
		{"L3 hit", l3, profile.ServedL3},
		{"L3 hit, HITM", l3 | hitm, profile.ServedLocalHITM},
		{"L3 miss", lvl(perfdata.LevelMiss | perfdata.LevelL3), profile.ServedUnknown},
		{"Remote Cache (1 hop) hit", lvl(perfdata.LevelHit | perfdata.LevelRemCache1), profile.ServedRemoteCache},
		{"Remote Cache (1 hop) hit, HITM", lvl(perfdata.LevelHit|perfdata.LevelRemCache1) | hitm, profile.ServedRemoteHITM},
		{"Remote Any cache", remCache, profile.ServedRemoteCache},
		{"Remote Any cache, HITM", remoteHITM, profile.ServedRemoteHITM},
		{"Remote core, same node Any cache", num(perfdata.NumAnyCache, 1, 1), profile.ServedL3},
		{"Remote core, same node Any cache, HITM", num(perfdata.NumAnyCache, 1, 1) | hitm, profile.ServedLocalHITM},
		{"Remote node, same socket Any cache", num(perfdata.NumAnyCache, 1, 2), profile.ServedRemoteCache},
		{"Local RAM hit", localRAM, profile.ServedLocalDRAM},
		{"Remote RAM hit", remoteRAM, profile.ServedRemoteDRAM},
		{"Remote RAM (2 hops) hit", lvl(perfdata.LevelHit | perfdata.LevelRemRAM2), profile.ServedRemoteDRAM},
		{"PMEM", num(perfdata.NumPMEM, 0, 0), profile.ServedPMEM},
		{"CXL", num(perfdata.NumCXL, 1, 0), profile.ServedCXL},
		{"N/A", num(perfdata.NumNone, 0, 0), profile.ServedUnknown},
	} {
		_, remote := Level(c.d)
		if got := served(c.d, remote); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestParts: parts begin at page borders, and are found whatever was asked before.
func TestParts(t *testing.T) {
	p := parts{starts: []uint64{0, 10, 11, 50}}
	for _, c := range []struct {
		page uint64
		want int32
	}{{0, 0}, {9, 0}, {10, 1}, {11, 2}, {49, 2}, {50, 3}, {1 << 60, 3}} {
		for last := range int32(4) {
			if got := p.of(c.page, last); got != c.want {
				t.Errorf("page %d after part %d: part %d, want %d", c.page, last, got, c.want)
			}
		}
	}
}

// TestSmall: the loads of a site's small allocations are told together, whatever pages
// lie between, and not with those of other memory.
func TestSmall(t *testing.T) {
	const page = 0x10000
	w := recording()
	log := &et.Writer{PID: 100}
	for i, site := range []uint32{1, 2, 1} {
		log.Small = append(log.Small, et.Vote{Page: page + uint64(i), Site: site})
	}
	log.Hello(100, 5)
	prefix := filepath.Join(t.TempDir(), "log")
	log.File(t, prefix)
	for i := range uint64(4) {
		w.Add(pt.Variable{}, at(100, 0, 10+i, (page+i)<<12, hitL1, 10+i))
	}
	table, _ := read(t, w, Options{Log: prefix})
	var pages []uint64
	var cycles []uint64
	for _, l := range histograms(table) {
		pages, cycles = append(pages, l.Page-page), append(cycles, l.Cycles/1000)
	}
	if d := gocmp.Diff([]uint64{0, 0, 1, 3}, pages); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	if d := gocmp.Diff([]uint64{10, 12, 11, 13}, cycles); d != "" {
		t.Errorf("cycles (-want +got):\n%s", d)
	}
}
