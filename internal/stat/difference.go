package stat

import "math"

// Difference is the 95 % confidence interval, in [-1,1], of how much larger the share is
// of which k2 in n2 independent samples were seen than the one of k1 in n1; all of
// [-1,1] where either has no samples.
//
// Source: Newcombe, Statist. Med. 17 (1998) 873, method 10: the intervals of Wilson,
// without which shares near 0 and 1 would leave [-1,1].
func Difference(k1, n1, k2, n2 float64) (lo, hi float64) {
	if !(n1 > 0) || !(n2 > 0) {
		return -1, 1
	}
	p1, p2 := k1/n1, k2/n2
	lo1, hi1 := Wilson(k1, n1)
	lo2, hi2 := Wilson(k2, n2)
	d := p2 - p1
	return d - math.Hypot(p2-lo2, hi1-p1), d + math.Hypot(hi2-p2, p1-lo1)
}
