package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// load is n samples of one access, of so many cycles each.
func load(served profile.Served, from, to topo.NodeID, cycles, n uint64) profile.Latency {
	return profile.Latency{Served: served, From: from, To: to, Bucket: profile.LatencyBucket(cycles), Samples: n, Accesses: n, Cycles: n * cycles}
}

func of(list ...profile.Latency) *profile.Profile {
	p := profiletest.Draw(2, 1, "u heap: 0!1 1 1", "v heap: 0!1 1 1")
	p.Latencies = list
	return p
}

const (
	l1     = profile.ServedL1
	local  = profile.ServedLocalDRAM
	remote = profile.ServedRemoteDRAM
	cache  = profile.ServedRemoteCache
)

func TestHistogram(t *testing.T) {
	h := Total(of(load(l1, 0, -1, 4, 6), load(l1, 0, -1, 0, 9), load(local, 0, 0, 200, 2), load(remote, 0, 1, 12, 2)))
	if h.Accesses != 10 || h.Untimed != 9 || h.Mean() != (6*4+2*200+2*12)/10.0 {
		t.Errorf("%d loads and %d without, mean %v", h.Accesses, h.Untimed, h.Mean())
	}
	for q, want := range map[float64]float64{0.1: 4, 0.5: 4, 0.6: 4, 0.61: 12, 0.8: 12, 0.9: 193 + 0.5*15, 1: 208} {
		if got := h.Quantile(q); math.Abs(got-want) > 1e-9 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if d := cmp.Diff([]Point{{4, 0.6}, {12, 0.8}, {208, 1}}, h.CDF()); d != "" {
		t.Errorf("CDF (-want +got):\n%s", d)
	}
	want := []Range{{3, 4, 6, 24}, {9, 16, 2, 24}, {129, 256, 2, 400}}
	if d := cmp.Diff(want, h.Ranges()); d != "" {
		t.Errorf("ranges (-want +got):\n%s", d)
	}
	var none Histogram
	if !math.IsNaN(none.Mean()) || !math.IsNaN(none.Quantile(0.5)) || none.CDF() != nil || none.Ranges() != nil {
		t.Error("a histogram of nothing has figures")
	}
}

// TestQuantiles: those of the histogram are those of the latencies within an eighth.
func TestQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var list []uint64
	var cells []profile.Latency
	for range 10_000 {
		c := uint64(4 * math.Exp(6*rnd.Float64()))
		list = append(list, c)
		cells = append(cells, load(l1, 0, -1, c, 1))
	}
	slices.Sort(list)
	h := Total(of(cells...))
	for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99} {
		got, want := h.Quantile(q), float64(list[int(q*10_000)])
		if math.Abs(got-want) > want/8 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if n := len(h.Ranges()); h.Ranges()[n-1].Most != 2048 {
		t.Errorf("the last range is %+v", h.Ranges()[n-1])
	}
}

// TestOctaves: ranges end with powers of two, and the longest has an end.
func TestOctaves(t *testing.T) {
	for _, c := range []struct{ cycles, least, most uint64 }{
		{1, 1, 1}, {2, 2, 2}, {3, 3, 4}, {32, 17, 32}, {33, 33, 64}, {1 << 63, 1<<62 + 1, 1 << 63}, {1<<63 + 1, 1<<63 + 1, math.MaxUint64},
	} {
		if r := octave(c.cycles); r.Least != c.least || r.Most != c.most {
			t.Errorf("%d: %d to %d, want %d to %d", c.cycles, r.Least, r.Most, c.least, c.most)
		}
	}
}

// TestPairs: by nodes, and without what is of no known node or contradicts itself.
func TestPairs(t *testing.T) {
	p := FindPairs(of(load(local, 0, 0, 100, 5), load(local, 1, 1, 200, 5), load(remote, 1, 0, 300, 3), load(profile.ServedCXL, 0, 1, 400, 1),
		load(l1, 0, 0, 4, 9), load(remote, 0, topo.Unknown, 500, 9), load(local, 0, 1, 500, 9), load(remote, 1, 1, 500, 9)))
	var got []float64
	for i := range p.Of {
		got = append(got, p.Of[i].Mean())
	}
	if d := cmp.Diff([]float64{100, 400, 300, 200}, got); d != "" {
		t.Errorf("means (-want +got):\n%s", d)
	}
}

// TestCosts: what remote loads take beyond the thread's own memory, caches of other
// nodes included; what takes less in all costs nothing.
func TestCosts(t *testing.T) {
	list := []profile.Latency{
		load(local, 0, 0, 100, Enough), load(local, 1, 1, 200, Enough), // by what is compared
		load(remote, 0, 1, 160, 10), load(remote, 1, 0, 160, 10), load(cache, 1, topo.Unknown, 250, 4),
		load(profile.ServedPMEM, 0, 1, 130, 1), load(profile.ServedPMEM, 0, 0, 900, 1), load(profile.ServedL3, 0, 1, 900, 1),
		load(remote, 0, 1, 0, 7), // without a latency
		load(remote, 1, 0, 160, 1),
	}
	list[4].Object, list[len(list)-1].Object = 1, 2
	got := Costs(of(list...), 3, func(l *profile.Latency) int { return int(l.Object) })
	if d := cmp.Diff([]uint64{10*60 - 10*40 + 30, 4 * 50, 0}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	few := of(load(local, 0, 0, 100, 1), load(local, 1, 1, 300, 3), load(remote, 0, 1, 350, 1))
	if got := Costs(few, 1, func(*profile.Latency) int { return 0 }); got[0] != 100 {
		t.Errorf("%v beyond the mean of all nodes, want 100", got)
	}
	if got := Costs(of(load(remote, 0, 1, 350, 1)), 1, func(*profile.Latency) int { return 0 }); got != nil {
		t.Errorf("%v beyond nothing", got)
	}
}

func TestRatios(t *testing.T) {
	list := []profile.Latency{load(local, 0, 0, 100, Enough), load(local, 1, 1, 200, Enough), load(remote, 0, 1, 160, Enough), load(remote, 1, 0, 300, Enough)}
	if d := cmp.Diff([]float64{1, 1.6, 1.5, 1}, Ratios(of(list...))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	mixed := append(slices.Clone(list), load(profile.ServedPMEM, 0, 1, 900, 9*Enough))
	if d := cmp.Diff([]float64{1, 1.6, 1.5, 1}, Ratios(of(mixed...))); d != "" {
		t.Errorf("with other memory (-want +got):\n%s", d)
	}
	mixed[2] = load(profile.ServedCXL, 0, 1, 300, Enough) // all of node 1's memory is
	mixed = mixed[:4]
	if d := cmp.Diff([]float64{1, 3, 1.5, 1}, Ratios(of(mixed...))); d != "" {
		t.Errorf("of CXL alone (-want +got):\n%s", d)
	}
	list[3].Samples--
	if got := Ratios(of(list...)); got != nil {
		t.Errorf("%v of too few samples", got)
	}
	p := of(list...)
	p.Run.Topology.Nodes[0].NoMemory = true // then nobody asks for loads from it
	p.Latencies = list[1:3]
	if got := Ratios(p); got != nil {
		t.Errorf("%v without a local latency", got)
	}
}
