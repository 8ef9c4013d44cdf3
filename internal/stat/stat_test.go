package stat

import (
	"math"
	"testing"
)

// The intervals are those of R's prop.test(k, n, correct=FALSE).
func TestWilson(t *testing.T) {
	for _, c := range []struct{ k, n, lo, hi float64 }{
		{50, 100, 0.4038315, 0.5961685},
		{0, 10, 0, 0.2775328},
		{10, 10, 0.7224672, 1},
		{750, 1000, 0.7222366, 0.7758699},
		{0, 0, 0, 1},
	} {
		lo, hi := Wilson(c.k, c.n)
		if math.Abs(lo-c.lo) > 1e-4 || math.Abs(hi-c.hi) > 1e-4 {
			t.Errorf("%v of %v: [%.7f, %.7f], want [%.7f, %.7f]", c.k, c.n, lo, hi, c.lo, c.hi)
		}
	}
}
