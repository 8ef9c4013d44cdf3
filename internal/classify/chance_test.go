package classify

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

const workers = 8

// sequences of owners as threads divide the chunks of an array.
var sequences = map[string]func(i, n int) int{
	"block":      func(i, n int) int { return i * workers / n },
	"reversed":   func(i, n int) int { return workers - 1 - i*workers/n },
	"cyclic":     func(i, _ int) int { return i % workers },
	"to and fro": func(i, _ int) int { return min(i%(2*workers), 2*workers-1-i%(2*workers)) },
	"tiles":      func(i, n int) int { return 4*(2*i/n) + i%4 },
	"narrow":     func(i, n int) int { return 2*(4*i/n) + i%2 },
}

func TestLooksDealtStatic(t *testing.T) {
	for name, owner := range sequences {
		for _, n := range []int{8, 16, 64, 512} {
			if name == "to and fro" && n == 16 {
				continue // once to and once back could be chance
			}
			list := make([]chunk, n)
			for i := range list {
				list[i] = chunk{owner(i, n), 100}
			}
			if looksDealt(list) {
				t.Errorf("%s, %d chunks: taken for dealt", name, n)
			}
		}
	}
}

// queue is chunks that the threads take as they become free, each after a time
// that varies.
func queue(rng *rand.Rand, n int) []chunk {
	free := make([]float64, workers)
	list := make([]chunk, n)
	for i := range list {
		next := 0
		for w := range free {
			if free[w] < free[next] {
				next = w
			}
		}
		free[next] += 1 + rng.ExpFloat64()
		list[i] = chunk{next, 100}
	}
	return list
}

func TestLooksDealtQueue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ chunks, least int }{{32, 90}, {64, 99}, {512, 100}} {
		found := 0
		for range 100 {
			if looksDealt(queue(rng, c.chunks)) {
				found++
			}
		}
		if found < c.least {
			t.Errorf("%d chunks: %d of 100 queues found, want %d", c.chunks, found, c.least)
		}
	}
	// Blocks of which other threads steal the last tenth.
	for range 100 {
		var list []chunk
		for w := range workers {
			list = append(list, chunk{w, 900}, chunk{rng.IntN(workers), 50}, chunk{rng.IntN(workers), 50})
		}
		if looksDealt(list) {
			t.Fatalf("stolen blocks taken for dealt: %v", list)
		}
	}
}

// run draws an array whose page i thread owner(i) of 8 on 4 nodes uses, outside
// loops.
func run(pages int, owner func(i int) int) *profile.Profile {
	list := make([]string, pages)
	for i := range list {
		list[i] = "0!1" + strings.Repeat(" 0", owner(i)) + " 900"
	}
	p := profiletest.Draw(4, 2, "u heap: "+strings.Join(list, " | "))
	p.Regions[profiletest.Work].Kind = profile.Function
	for i := range p.Threads {
		p.Threads[i].Rank++ // rank 0 is the main thread
	}
	return p
}

func TestFindChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	random := func() func(int) int {
		owners := rng.Perm(512)
		return func(i int) int { return owners[i] % workers }
	}
	block := func(i int) int { return i / 64 }
	hashed, other, half := random(), random(), random()
	stolen := func(i int) int {
		if i%2 == 0 {
			return hashed(i)
		}
		return half(i)
	}
	for _, c := range []struct {
		name         string
		first, again func(int) int
		low, high    float64
	}{
		{"block", block, nil, 1, 1},
		{"random order, one run", hashed, nil, 0, 0},
		{"the same random order twice is static", hashed, hashed, 1, 1},
		{"another random order is chance", hashed, other, 0, 0.1},
		{"half of it the same", hashed, stolen, 0.4, 0.6},
		{"block twice", block, block, 1, 1},
		{"block, then another order", block, other, 0, 0.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := run(512, c.first)
			var again []*profile.Profile
			if c.again != nil {
				again = append(again, run(512, c.again))
			}
			chance := FindChance(p, again, func(r *profile.Row) bool { return r.Level == profile.DRAM })
			for i := range p.Rows {
				r := &p.Rows[i]
				got, low, high := chance.Repeats(r), c.low, c.high
				if r.Region == profiletest.Main {
					low, high = 0, 1 // its thread is not rank 0 here
				}
				if got < low || got > high || math.IsNaN(got) {
					t.Fatalf("row %d: repeats %.2f, want %.2f to %.2f", i, got, low, high)
				}
			}
			if chance.Any() != (c.high < 1) {
				t.Errorf("any %v", chance.Any())
			}
		})
	}
}

// TestFindChanceOpenMP: of loops, the runtime knows which hand out their work;
// buffers made for the threads are used by the same in each run even there.
func TestFindChanceOpenMP(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	p := run(512, func(int) int { return rng.IntN(workers) })
	buffers := make([]string, workers)
	for w := range buffers {
		page := "0!1" + strings.Repeat(" 0", w) + " 900"
		buffers[w] = fmt.Sprintf("b heap: %s | %s", page, page)
	}
	q := profiletest.Draw(4, 2, buffers...)
	for i := range q.Objects {
		q.Objects[i].Site, q.Objects[i].Ordinal = 0, i
	}
	q.Sites = q.Sites[:1]
	for _, c := range []struct {
		name    string
		p       *profile.Profile
		dynamic bool
		want    float64
	}{{"static", p, false, 1}, {"dynamic", p, true, 0}, {"buffers", q, true, 1}} {
		c.p.Regions[profiletest.Work].Kind = profile.Loop
		c.p.Regions[profiletest.Work].Dynamic = c.dynamic
		chance := FindChance(c.p, nil, func(*profile.Row) bool { return true })
		for i := range c.p.Rows {
			if r := &c.p.Rows[i]; r.Region == profiletest.Work && chance.Repeats(r) != c.want {
				t.Fatalf("%s: repeats %v, want %v", c.name, chance.Repeats(r), c.want)
			}
		}
	}
}

// TestFindChanceKnown: a loop that OpenMP hands out is chance even where two runs
// happen to agree.
func TestFindChanceKnown(t *testing.T) {
	p := run(512, func(i int) int { return i / 64 })
	p.Regions[profiletest.Work].Kind = profile.Loop
	p.Regions[profiletest.Work].Dynamic = true
	chance := FindChance(p, []*profile.Profile{p}, func(*profile.Row) bool { return true })
	for i := range p.Rows {
		if r := &p.Rows[i]; r.Region == profiletest.Work && chance.Repeats(r) != 0 {
			t.Fatalf("repeats %v, want 0", chance.Repeats(r))
		}
	}
	if got := chance.Evidence(profiletest.Work); got != Known {
		t.Errorf("evidence %v, want %v", got, Known)
	}
}

// TestMissing: what the further run lacks is told apart from what differs.
func TestMissing(t *testing.T) {
	block := func(i int) int { return i / 64 }
	half, other := run(256, block), run(512, block)
	other.Regions[profiletest.Work].Name = "another"
	for _, c := range []struct {
		name  string
		again *profile.Profile
		want  Missing
	}{
		{"same", run(512, block), Missing{}},
		{"half of the pages", half, Missing{Pages: 0.5}},
		{"another region", other, Missing{Pages: 1, Regions: 1}},
	} {
		counts := func(r *profile.Row) bool { return r.Region == profiletest.Work }
		got := FindChance(run(512, block), []*profile.Profile{c.again}, counts).Missing
		if len(got) != 1 || math.Abs(got[0].Pages-c.want.Pages) > 0.01 || math.Abs(got[0].Regions-c.want.Regions) > 0.01 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
