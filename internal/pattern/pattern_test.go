package pattern

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// array is NX × NY × NZ elements in memory order, head bytes behind a page's begin.
type array struct {
	nx, ny, nz, elem int64
	head             int
}

func (a array) bytes() int64     { return a.nx * a.ny * a.nz * a.elem }
func (a array) strides() []int64 { return []int64{a.ny * a.nz * a.elem, a.nz * a.elem} }

func (a array) String() string {
	return fmt.Sprintf("%dx%dx%d:%d+%d", a.nx, a.ny, a.nz, a.elem, a.head)
}

// kernel says which node a loop accesses an element from; -1 is not at all.
type kernel func(a array, nodes int64, x, y, z int64, random *rand.Rand) int64

// chunk is the node of iteration i of an unchunked static loop over [from, to), by
// two threads a node, as OpenMP divides it.
func chunk(i, from, to, nodes int64) int64 {
	if i < from || i >= to {
		return -1
	}
	threads := 2 * nodes
	n, i := (to - from), i-from
	each, rest := n/threads, n%threads
	if i < (each+1)*rest {
		return i / (each + 1) / 2
	}
	return (rest + (i-(each+1)*rest)/each) / 2
}

var kernels = map[string]kernel{
	"x sweep":  func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return chunk(x, 0, a.nx, p) },
	"x inside": func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return chunk(x, 1, a.nx-1, p) },
	"y sweep":  func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return chunk(y, 0, a.ny, p) },
	"y inside": func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return chunk(y, 1, a.ny-1, p) },
	"z sweep":  func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return chunk(z, 0, a.nz, p) },
	"x down":   func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return p - 1 - chunk(x, 0, a.nx, p) },
	"y down":   func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return p - 1 - chunk(y, 0, a.ny, p) },
	"x turned": func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return (chunk(x, 0, a.nx, p) + 1) % p },
	// Threads that the program starts are numbered from 1: the last one is on node 0.
	"started": func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return (x*2*p/a.nx + 1) / 2 % p },
	// Node 0 does more, and what it does lies at both ends of the parts.
	"uneven": func(a array, p, x, y, z int64, r *rand.Rand) int64 {
		if x < 3 || x > a.nx-6 {
			return 0
		}
		return chunk(x, 0, a.nx, p)
	},
	"cyclic 3": func(a array, p, x, y, z int64, _ *rand.Rand) int64 { return x / 3 % p },
	"cyclic from 1": func(a array, p, x, y, z int64, _ *rand.Rand) int64 {
		return (x + 3) / 4 % p
	},
	"square": func(a array, p, x, y, z int64, _ *rand.Rand) int64 {
		return (chunk(x, 0, a.nx, p) + chunk(y, 0, a.ny, p)) % p
	},
	"square inside": func(a array, p, x, y, z int64, _ *rand.Rand) int64 {
		if x == 0 || y == 0 || x == a.nx-1 || y == a.ny-1 {
			return -1
		}
		return (p + chunk(x, 1, a.nx-1, p) - chunk(y, 1, a.ny-1, p)) % p
	},
	"all":    func(a array, p, x, y, z int64, r *rand.Rand) int64 { return r.Int64N(p) },
	"single": func(a array, p, x, y, z int64, r *rand.Rand) int64 { return p - 1 },
	"random pages": func(a array, p, x, y, z int64, r *rand.Rand) int64 {
		page := (((x*a.ny+y)*a.nz+z)*a.elem + int64(a.head)) / 4096
		h := (uint64(page) + 1) * 0xbf58476d1ce4e5b9 // splitmix64: a product alone is a period
		h = (h ^ h>>27) * 0x94d049bb133111eb
		return int64(h>>40) % p
	},
}

// run counts what a kernel does to an array in sweeps sweeps, a line at a time, one
// access in period.
func run(name string, a array, nodes int, sweeps, period, seed uint64) Use {
	random := rand.New(rand.NewPCG(seed, 7))
	u := Use{Nodes: nodes, Head: a.head, Bytes: a.bytes(), Period: period}
	k := kernels[name]
	counts := make([]uint64, (a.bytes()/4096+2)*int64(nodes))
	line := max(1, 64/a.elem)
	for e := int64(0); e < a.nx*a.ny*a.nz; e += line {
		n := k(a, int64(nodes), e/(a.ny*a.nz), e/a.nz%a.ny, e%a.nz, random)
		if n < 0 {
			continue
		}
		page := (e*a.elem + int64(a.head)) / 4096
		if random.Uint64N(period) < sweeps { // of sweeps accesses hardly two are sampled
			counts[page*int64(nodes)+n] += period
		}
	}
	for i, c := range counts {
		if c > 0 {
			u.Cells = append(u.Cells, Cell{i / nodes, i % nodes, c})
		}
	}
	return u
}

// The arrays: rows of whole pages, rows that are no multiple of a page, and rows
// of one page for each of eight nodes.
var (
	whole  = array{128, 128, 64, 8, 0}
	broken = array{102, 102, 102, 8, 16}
	long   = array{16, 16, 4096, 8, 0}
	flat   = array{256, 8192, 1, 8, 16}
	odd    = array{500, 2001, 1, 8, 128}
)

type question struct {
	kernel string
	arrays []array
	want   Kind
}

// on is the answer on a machine of nodes.
func (q question) on(nodes int) Kind {
	if nodes == 2 && q.want == Permuted {
		return Inverse // of two, turned and reversed are the same
	}
	return q.want
}

var questions = []question{
	{"x sweep", []array{whole, broken, flat, odd}, XWise},
	{"x inside", []array{whole, broken, flat, odd}, XWise},
	{"y sweep", []array{whole, broken, flat}, YWise},
	{"y inside", []array{whole, broken, flat}, YWise},
	{"z sweep", []array{long}, ZWise},
	{"z sweep", []array{whole}, AllToAll},
	{"x down", []array{whole, broken, flat, odd}, Inverse},
	{"y down", []array{whole, broken, flat}, Inverse},
	{"x turned", []array{whole, broken, flat, odd}, Permuted},
	{"cyclic 3", []array{whole, broken, flat, odd}, BlockCyclic},
	{"cyclic from 1", []array{whole, broken, flat, odd}, BlockCyclic},
	{"square", []array{whole, broken, flat}, BlockExclusive},
	{"square inside", []array{whole, broken, flat}, BlockExclusive},
	{"all", []array{whole, odd}, AllToAll},
	{"single", []array{whole, broken, flat, odd}, Single},
	{"random pages", []array{whole, odd}, None},
}

func TestKernels(t *testing.T) {
	for _, q := range questions {
		for i, a := range q.arrays {
			if testing.Short() && i > 0 {
				break
			}
			for _, nodes := range []int{4, 2, 8} {
				if testing.Short() && nodes != 4 {
					break
				}
				for _, period := range []uint64{1, 1000} {
					name := fmt.Sprintf("%s of %v by %d, 1 in %d", q.kernel, a, nodes, period)
					sweeps := uint64(1)
					if period > 1 {
						sweeps = 20
					}
					u := run(q.kernel, a, nodes, sweeps, period, 3)
					check(t, name, q.kernel, q.on(nodes), a, a.strides(), Find(u, a.strides()))
					if period > 1 {
						check(t, name+", no strides", q.kernel, q.on(nodes), a, nil, Find(u, nil))
					}
				}
			}
		}
	}
}

// Where all has been seen, a less simple fit that is a little likelier leaves no doubt;
// of samples it may be the true one.
func TestRivalFit(t *testing.T) {
	for period, sure := range map[uint64]bool{1: true, 1000: false} {
		tab := newTable(run("x sweep", whole, 4, 1, period, 1))
		f := tab.fitParts(tab.size)
		rival := *f
		rival.likelihood += clearlyBetter * tab.ceiling() / 4
		if c := tab.confidence(f, &rival); (c >= MinConfidence) != sure {
			t.Errorf("one of %d accesses: confidence %.3f", period, c)
		}
	}
}

// What wraps around the object's ends is x-wise.
func TestWrapped(t *testing.T) {
	for _, kernel := range []string{"started", "uneven"} {
		for _, a := range []array{whole, broken, flat} {
			if r := Find(run(kernel, a, 4, 1, 1, 1), a.strides()); r.Kind != XWise || r.Confidence < MinConfidence {
				t.Errorf("%s %v: %s every %d of %d, sure %.3f", kernel, a, r.Kind, r.Period, a.bytes(), r.Confidence)
			}
		}
	}
}

func check(t *testing.T, name, kernel string, want Kind, a array, strides []int64, r Result) {
	t.Helper()
	if strides == nil && (want == YWise || want == ZWise) {
		want = BlockCyclic
	}
	if r.Kind != want {
		t.Errorf("%s: %s, want %s (period %d, explains %.3f, confidence %.3f, %d samples, need %d)", name, r.Kind, want, r.Period, r.Explains, r.Confidence, r.Samples, r.Need)
		return
	}
	period := map[byte]int64{'x': a.bytes(), 'y': a.strides()[0], 'z': a.strides()[1], 's': a.strides()[0],
		'c': a.strides()[0] * 3 * int64(len(r.Order()))}[kernel[0]]
	if kernel == "cyclic from 1" {
		period = a.strides()[0] * 4 * int64(len(r.Order()))
	}
	if r.Divides() && r.Kind != Single && !near(r.Period, period, a.bytes()) {
		t.Errorf("%s: period %d, want %d", name, r.Period, period)
	}
	if r.Kind != None && !(r.Explains > 0.8) || !(r.Confidence > 0.95) {
		t.Errorf("%s: explains %.3f, confidence %.3f", name, r.Explains, r.Confidence)
	}
}

// TestFewSamples holds Find to its promise: with MinPerNode samples and above it
// says what is so, or that it does not know.
func TestFewSamples(t *testing.T) {
	for _, nodes := range []int{4, 2, 8} {
		if testing.Short() && nodes != 4 {
			break
		}
		for _, q := range questions {
			a := q.arrays[0]
			samples := uint64(MinPerNode * nodes * 11 / 10)
			for seed := range uint64(3) {
				u := run(q.kernel, a, nodes, 20, uint64(a.bytes()/64)*20/samples, seed)
				r := Find(u, a.strides())
				if want := q.on(nodes); r.Kind != want && r.Kind != NotEnough {
					t.Errorf("%s by %d, seed %d: %s of %d samples, want %s", q.kernel, nodes, seed, r.Kind, r.Samples, want)
				}
				if r.Kind == NotEnough && r.Need <= r.Samples {
					t.Errorf("%s by %d: %d samples are not enough, but %d would be", q.kernel, nodes, r.Samples, r.Need)
				}
			}
		}
	}
}

func TestTooFewSamples(t *testing.T) {
	u := run("x sweep", whole, 4, 20, uint64(whole.bytes()/64)*20/150, 1)
	if r := Find(u, nil); r.Kind != NotEnough || r.Need != 4*MinPerNode {
		t.Errorf("%s of %d samples, need %d", r.Kind, r.Samples, r.Need)
	}
	if r := Find(Use{Nodes: 4, Bytes: 1 << 20}, nil); r.Kind != NotEnough {
		t.Errorf("nothing at all: %s", r.Kind)
	}
}

func TestConflict(t *testing.T) {
	for _, x := range []struct {
		loops           []string
		nodes           int
		apart, together float64
	}{
		{[]string{"x sweep", "x inside"}, 4, 0, 0.01},
		{[]string{"x sweep", "y sweep"}, 2, 0, 0.25}, // CGO'12 §3.1: half of the pages are shared
		{[]string{"x sweep", "y sweep"}, 4, 0, 0.375},
		{[]string{"x sweep", "x down"}, 4, 0, 0.5},
		{[]string{"x sweep", "all"}, 4, 0, 0},
		{[]string{"x sweep", "x sweep", "x sweep", "y sweep"}, 4, 0, 0.1875},
	} {
		for _, period := range []uint64{1, 1000} {
			var wants []Want
			for _, k := range x.loops {
				u := run(k, whole, x.nodes, 20, period, 5)
				wants = append(wants, Want{Find(u, whole.strides()), 1000, 0, int(whole.bytes()/4096) - 1})
			}
			c := FindConflict(wants, x.nodes, 0, whole.bytes())
			if c.Apart > x.apart+0.02 || c.Together < x.together-0.02 || c.Together > x.together+0.03 || c.Is() != (x.together > 0.05) {
				t.Errorf("%v on %d nodes, 1 in %d: %+v, want %v %v", x.loops, x.nodes, period, c, x.apart, x.together)
			}
		}
	}
}

// TestConflictWhere: loops do not disagree over pages that only one of them touches.
func TestConflictWhere(t *testing.T) {
	half := int(whole.bytes()/4096) / 2
	up := Find(run("x sweep", whole, 2, 1, 1, 1), nil)
	down := Find(run("x down", whole, 2, 1, 1, 1), nil)
	c := FindConflict([]Want{{up, 1000, 0, half - 1}, {down, 1000, half, 2*half - 1}}, 2, 0, whole.bytes())
	if c.Is() || c.Together > 0.01 {
		t.Errorf("%+v, want none", c)
	}
}

// BenchmarkFind is one loop's use of a GiB, the easiest and the hardest patterns.
func BenchmarkFind(b *testing.B) {
	const pages, nodes = 1 << 18, 4
	for name, owner := range map[string]func(page, i int) int{
		"x-wise":     func(page, i int) int { return page * nodes / pages },
		"y-wise":     func(page, i int) int { return page / 3 % nodes },
		"all-to-all": func(page, i int) int { return i },
		"none":       func(page, i int) int { return int(uint32(page*page*2654435761)>>13) % nodes },
	} {
		b.Run(name, func(b *testing.B) {
			u := Use{Nodes: nodes, Bytes: pages * 4096}
			for page := range pages {
				for i := range nodes {
					u.Cells = append(u.Cells, Cell{page, owner(page, i), 10})
				}
			}
			for b.Loop() {
				Find(u, nil)
			}
		})
	}
}
