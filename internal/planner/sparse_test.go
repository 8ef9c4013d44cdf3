package planner

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/profile"
)

// sampled is p as a sampler of this period sees it.
func sampled(p *profile.Profile, period int, r *rand.Rand) *profile.Profile {
	q := *p
	q.Run.Period, q.Rows = uint64(period), nil
	for _, row := range p.Rows {
		n := 0
		for range row.Count {
			if r.IntN(period) == 0 {
				n++
			}
		}
		if row.Count = uint64(n * period); n > 0 {
			q.Rows = append(q.Rows, row)
		}
	}
	return &q
}

// A plan of few samples promises what it keeps, does no harm, and finds what is plain.
func TestFewSamples(t *testing.T) {
	for _, c := range []struct {
		name string
		use  func(page, pages int) []int // accesses by node
		most float64                     // remote % of another run with the plan
	}{
		{"by all nodes alike", func(int, int) []int { return []int{500, 500, 500, 500} }, 75.5},
		{"each page by two", func(page, _ int) []int {
			use := make([]int, 4)
			use[page%4], use[(page+1)%4] = 1000, 1000
			return use
		}, 75},
		{"in parts", func(page, pages int) []int {
			use := make([]int, 4)
			use[page*4/pages] = 2000
			return use
		}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSweeps(4, 1)
			init, loop := s.loop("init"), s.loop("use")
			const pages = 2000
			s.array("u", pages)
			for page := range pages {
				s.touch(init, page/7%4, page, 1)
				for node, n := range c.use(page, pages) {
					s.touch(loop, node, page, uint64(n))
				}
			}
			r := build(t, sampled(s.Profile, 1000, rand.New(rand.NewPCG(5, 6))), DefaultOptions())
			var all uint64
			for _, row := range s.Rows {
				all += row.Count
			}
			counted := 100 * float64(byHand(s.Profile, r.Plan)) / float64(all)
			// Where parts meet, pages of both are taken together, and more is predicted.
			if got := r.After.RemotePct(); got < counted-3 || got > counted+8 || counted > c.most {
				t.Errorf("predicted %.1f %%, it is %.1f %% (%s)", got, counted, placement(r.Plan))
			}
			if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "samples each") }) {
				t.Errorf("no warning: %q", r.Warnings)
			}
		})
	}
}
