// Package stat holds the statistics of numaopt, each with its source.
package stat

import "math"

// z95 is the 97.5 % quantile of the standard normal distribution: two-sided 95 %.
const z95 = 1.959963984540054

// Wilson returns the 95 % confidence interval, in [0,1], of a share of which k
// in n independent samples were seen; all of [0,1] where n is 0. k may be
// fractional, 0 <= k <= n.
//
// Samples of memory accesses come in runs and are not quite independent, so the
// true interval is somewhat wider.
//
// Source: Wilson, JASA 22 (1927); Brown, Cai, DasGupta, Statist. Sci. 16 (2001)
// recommend it over the normal interval, which fails near 0 and 1.
func Wilson(k, n float64) (lo, hi float64) {
	if !(n > 0) {
		return 0, 1
	}
	p, z2 := k/n, z95*z95
	mid := (p + z2/(2*n)) / (1 + z2/n)
	half := z95 / (1 + z2/n) * math.Sqrt(p*(1-p)/n+z2/(4*n*n))
	return max(0, mid-half), min(1, mid+half)
}
