package stat

import (
	"math"
	"slices"

	gonum "gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sample is the mean and the spread of repeated measurements.
type Sample struct {
	Mean float64
	SD   float64 // of one measurement, n-1 in the denominator; 0 where N is 1
	N    int
}

// Describe sums up values, of which there is at least one.
func Describe(values []float64) Sample {
	if len(values) == 1 {
		return Sample{Mean: values[0], N: 1}
	}
	mean, sd := gonum.MeanStdDev(values, nil)
	return Sample{Mean: mean, SD: sd, N: len(values)}
}

// Interval is the 95 % confidence interval of the mean of s, whose measurements
// spread by at least floor, a standard deviation that is known beforehand. One
// measurement has the floor alone.
func (s Sample) Interval(floor float64) (lo, hi float64) {
	v, df := s.variance(floor)
	half := student(df).Quantile(0.975) * math.Sqrt(v/float64(s.N))
	return s.Mean - half, s.Mean + half
}

// variance is that of one measurement with its degrees of freedom: infinitely many
// where the floor is above what was seen.
func (s Sample) variance(floor float64) (v, df float64) {
	if s.N < 2 || s.SD <= floor {
		return floor * floor, math.Inf(1)
	}
	return s.SD * s.SD, float64(s.N - 1)
}

// Greater returns how likely it is, in [0,1], that a exceeds b by as much as it does
// or more by chance alone. floorA and floorB are standard deviations of one measurement
// that are known beforehand, so that a few which happen to be alike do not pass for
// exact. A side of one measurement is taken to spread as the other does.
//
// Source: Welch, Biometrika 34 (1947), one-sided; with one measurement on a side it is
// the prediction interval of Student's t. The floors are this package's.
//
// Note: a permutation test needs five measurements a side before it can fall below
// 1 %, and one against several never does.
func Greater(a, b Sample, floorA, floorB float64) float64 {
	va, dfA := a.variance(floorA)
	vb, dfB := b.variance(floorB)
	var df float64
	switch {
	case a.N < 2 && vb > va:
		va, df = vb, dfB
	case b.N < 2 && va > vb:
		vb, df = va, dfA
	default:
		ea, eb := va/float64(a.N), vb/float64(b.N)
		df = (ea + eb) * (ea + eb) / (ea*ea/dfA + eb*eb/dfB)
	}
	se := math.Sqrt(va/float64(a.N) + vb/float64(b.N))
	switch {
	case se > 0:
		return 1 - student(df).CDF((a.Mean-b.Mean)/se)
	case a.Mean > b.Mean:
		return 0
	}
	return 1
}

// distribution is Student's t, or the normal one that it becomes.
type distribution interface {
	CDF(float64) float64
	Quantile(float64) float64
}

func student(df float64) distribution {
	if math.IsInf(df, 0) || math.IsNaN(df) {
		return distuv.UnitNormal
	}
	return distuv.StudentsT{Sigma: 1, Nu: df}
}

// Modes tells values of two clusters apart: high[i] says that values[i] is of the
// upper one; nil is that there are not two. Two are there where the gap between them
// is at least minGap, and five times as wide as either cluster. Fewer than four values
// have no clusters.
//
// Of values of one normal distribution, and were it wide, 8 % of the sets of four look
// like this, 2 % of those of five, 0.4 % of those of six.
func Modes(values []float64, minGap float64) (high []bool) {
	if len(values) < 4 {
		return nil
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	at := 1 // the upper cluster begins at the widest gap
	for i := 2; i < len(sorted); i++ {
		if sorted[i]-sorted[i-1] > sorted[at]-sorted[at-1] {
			at = i
		}
	}
	gap := sorted[at] - sorted[at-1]
	wider := max(sorted[at-1]-sorted[0], sorted[len(sorted)-1]-sorted[at])
	if gap < minGap || gap < 5*wider {
		return nil
	}
	for _, v := range values {
		high = append(high, v >= sorted[at])
	}
	return high
}
