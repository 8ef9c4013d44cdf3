package pattern

import (
	"cmp"
	"math"
	"slices"

	"numaopt/internal/units"
)

// Cell is the accesses of one node to one page.
type Cell struct {
	Page, Node int
	Count      uint64 // in accesses: a sample of period N counts N
}

// Use is what one loop did to one object. Page 0 is the page of the object's
// first byte, which lies Head bytes into it.
type Use struct {
	Nodes int   // of the machine
	Head  int   // 0 <= Head < 4096
	Bytes int64 // of the object; cells beyond its end are left out
	// Period is the accesses for which one sample stands; 0 and 1 are a full trace.
	Period uint64
	// Cells may be in any order and repeat.
	Cells []Cell
}

func (u *Use) period() float64 { return float64(max(1, u.Period)) }

// table is a Use as fits read it: one entry per touched page, ascending.
type table struct {
	size    int64
	all     int       // nodes of the machine
	nodes   []int     // that take part
	lo, hi  []int64   // bytes of each page that are of the object
	page    []int     // its number
	weight  float64   // of all pages
	weights []float64 // of each page, at most 1
	share   []float64 // share[i*all+n] is node n's part of weights[i]
	count   []float64 // the same in accesses
	total   float64   // accesses
	mean    []float64 // share of each node in weight
	// logWhole[n] is the logarithm of the likelihood of n's accesses to pages that it owns.
	logWhole []float64
	samples  uint64
	period   float64 // accesses per sample
}

func newTable(u Use) *table {
	t := &table{size: max(1, u.Bytes), all: u.Nodes, period: u.period(), mean: make([]float64, u.Nodes)}
	cells := slices.Clone(u.Cells)
	slices.SortFunc(cells, func(a, b Cell) int { return cmp.Compare(a.Page, b.Page) })
	for _, c := range cells {
		lo := max(0, int64(c.Page)*units.PageSize-int64(u.Head))
		hi := min(t.size, int64(c.Page+1)*units.PageSize-int64(u.Head))
		if lo >= hi || c.Count == 0 {
			continue
		}
		if n := len(t.page); n == 0 || t.page[n-1] != c.Page {
			t.page, t.lo, t.hi = append(t.page, c.Page), append(t.lo, lo), append(t.hi, hi)
			t.count = append(t.count, make([]float64, u.Nodes)...)
		}
		t.count[(len(t.page)-1)*t.all+c.Node] += float64(c.Count)
	}
	t.weigh()
	t.samples = uint64(math.Round(t.total / t.period))
	return t
}

// weigh fills in what follows from lo, hi, page and count.
func (t *table) weigh() {
	t.share, t.weights = make([]float64, len(t.count)), make([]float64, len(t.page))
	for i := range t.page {
		var sum float64
		counts := t.count[i*t.all : (i+1)*t.all]
		for _, c := range counts {
			sum += c
		}
		t.weights[i] = min(1, sum/t.period)
		for n, c := range counts {
			t.share[i*t.all+n] = t.weights[i] * c / sum
			t.mean[n] += t.weights[i] * c / sum
		}
		t.weight += t.weights[i]
		t.total += sum
	}
	for n := range t.mean {
		if t.weight > 0 {
			t.mean[n] /= t.weight
		}
		if t.mean[n] >= takesPart {
			t.nodes = append(t.nodes, n)
		}
		t.logWhole = append(t.logWhole, math.Log(noise+(1-noise)/t.mean[n]))
	}
}

// most is the node with most accesses, and its share of them.
func (t *table) most() (node int, share float64) {
	sums := make([]float64, t.all)
	for i, c := range t.count {
		sums[i%t.all] += c
	}
	for n, s := range sums {
		if s > sums[node] {
			node = n
		}
	}
	return node, sums[node] / t.total
}

// maxWindow is the most pages whose spectrum is looked at.
const maxWindow = 1 << 16

// window is t restricted to the pages that lie within [lo, hi), maxWindow of them
// at most. The nodes that take part stay those of t.
func (t *table) window(lo, hi int64) *table {
	from, _ := slices.BinarySearch(t.lo, lo)
	to := from
	for to < len(t.page) && t.hi[to] <= hi && t.page[to]-t.page[from] < maxWindow {
		to++
	}
	w := *t
	w.lo, w.hi, w.page, w.weights = t.lo[from:to], t.hi[from:to], t.page[from:to], t.weights[from:to]
	w.share, w.count = t.share[from*t.all:to*t.all], t.count[from*t.all:to*t.all]
	w.weight = 0
	for _, x := range w.weights {
		w.weight += x
	}
	return &w
}
