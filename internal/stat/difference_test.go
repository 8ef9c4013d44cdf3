package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDifference(t *testing.T) {
	// Newcombe's table II, as differences of the second from the first.
	for _, c := range []struct{ k1, n1, k2, n2, lo, hi float64 }{
		{48, 80, 56, 70, 0.0524, 0.3339},
		{3, 10, 9, 10, 0.1705, 0.8090},
		{0, 20, 10, 10, 0.6791, 1},
	} {
		lo, hi := Difference(c.k1, c.n1, c.k2, c.n2)
		if math.Abs(lo-c.lo) > 5e-5 || math.Abs(hi-c.hi) > 5e-5 {
			t.Errorf("%v/%v, %v/%v: %.4f to %.4f, want %.4f to %.4f", c.k1, c.n1, c.k2, c.n2, lo, hi, c.lo, c.hi)
		}
	}
	for _, n := range []float64{0, math.NaN()} {
		if lo, hi := Difference(0, n, 1, 2); lo != -1 || hi != 1 {
			t.Errorf("without samples: %v to %v", lo, hi)
		}
	}
}

// TestDifferenceCovers: the interval has the true difference in about 95 % of draws.
func TestDifferenceCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(p float64, n int) (k float64) {
		for range n {
			if r.Float64() < p {
				k++
			}
		}
		return k
	}
	for _, c := range []struct{ p1, p2 float64 }{{0.5, 0.5}, {0.02, 0.05}, {0.9, 0.7}} {
		const draws, n1, n2 = 2000, 300, 500
		in := 0
		for range draws {
			if lo, hi := Difference(draw(c.p1, n1), n1, draw(c.p2, n2), n2); lo <= c.p2-c.p1 && c.p2-c.p1 <= hi {
				in++
			}
		}
		if share := float64(in) / draws; share < 0.93 || share > 0.98 {
			t.Errorf("%v and %v: %.3f of the intervals have the difference", c.p1, c.p2, share)
		}
	}
}
