package pattern

import (
	"cmp"
	"math"
	"math/bits"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"numaopt/internal/units"
)

// lines is how many lines of a spectrum are tried, and sharpened how many of the
// periods that they stand for are worth being made exact.
const lines, sharpened = 4, 2

// likeliest are those of t's periods whose parts fit best.
func (t *table) likeliest() []int64 {
	var fits []*fit
	for _, period := range t.periods() {
		if f := t.fitParts(period); f != nil {
			fits = append(fits, f)
		}
	}
	slices.SortStableFunc(fits, func(a, b *fit) int { return cmp.Compare(b.likelihood, a.likelihood) })
	var list []int64
	for _, f := range fits[:min(sharpened, len(fits))] {
		list = append(list, f.period)
	}
	return list
}

// periods are the candidates for the period of t's pages in bytes, the strongest
// first: one over the frequencies with most power, and their multiples, as a line
// may be a harmonic.
func (t *table) periods() []int64 {
	if len(t.page) < 4 {
		return nil
	}
	signal := t.signal()
	span := float64(t.page[len(t.page)-1] - t.page[0] + 1)
	n := 1 << bits.Len(uint(2*span)) // zeros behind the pages make the lines wider than a step
	padded := make([]complex128, n)
	for i, z := range signal {
		padded[t.page[i]-t.page[0]] = z
	}
	spectrum := fourier.NewCmplxFFT(n).Coefficients(nil, padded)
	var list []int64
	for _, at := range peaks(spectrum, int(1.3*float64(n)/span)) {
		f := t.sharpest(signal, float64(at)/float64(n), 1/float64(n))
		for j := 1; j <= max(2, len(t.nodes)); j++ {
			period := int64(math.Round(float64(j) / math.Abs(f) * units.PageSize))
			if float64(period) < 0.75*span*units.PageSize && !slices.Contains(list, period) {
				list = append(list, period)
			}
		}
	}
	return list
}

// signal is the pages as numbers on the circle: the mean of their nodes' places,
// less that of all pages.
func (t *table) signal() []complex128 {
	place := make([]complex128, t.all)
	for i, n := range t.nodes {
		place[n] = cmplx.Rect(1, 2*math.Pi*float64(i)/float64(len(t.nodes)))
	}
	var mean, sum complex128
	var weight float64
	signal := make([]complex128, len(t.page))
	for i := range signal {
		for n, s := range t.share[i*t.all : (i+1)*t.all] {
			signal[i] += complex(s, 0) * place[n]
		}
		sum += signal[i]
		weight += t.weights[i]
	}
	mean = sum / complex(weight, 0)
	for i := range signal {
		signal[i] -= complex(t.weights[i], 0) * mean
	}
	return signal
}

// peaks are the strongest local maxima of a spectrum, at frequencies from -n/2 to
// n/2 but for those below lowest.
func peaks(spectrum []complex128, lowest int) []int {
	n := len(spectrum)
	power := func(i int) float64 { return cmplx.Abs(spectrum[(i+n)%n]) }
	var list []int
	for i := -n / 2; i <= n/2; i++ {
		if (i >= lowest || i <= -lowest) && power(i) >= power(i-1) && power(i) > power(i+1) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(power(b), power(a)) })
	return list[:min(lines, len(list))]
}

// sharpest is the frequency within step of f, in cycles a page, at which the
// signal has most power: golden section search.
func (t *table) sharpest(signal []complex128, f, step float64) float64 {
	power := func(f float64) float64 {
		var sum complex128
		for i, z := range signal {
			sin, cos := math.Sincos(-2 * math.Pi * f * float64(t.page[i]-t.page[0]))
			sum += z * complex(cos, sin)
		}
		return cmplx.Abs(sum)
	}
	const golden = 0.6180339887498949
	lo, hi := f-step, f+step
	a, b := hi-golden*(hi-lo), lo+golden*(hi-lo)
	pa, pb := power(a), power(b)
	for hi-lo > step/100 {
		if pa > pb {
			hi, b, pb = b, a, pa
			a = hi - golden*(hi-lo)
			pa = power(a)
		} else {
			lo, a, pa = a, b, pb
			b = lo + golden*(hi-lo)
			pb = power(b)
		}
	}
	return (lo + hi) / 2
}

// sharpen fits periods about one, ever closer, and then the roundest number that
// does as well: strides are multiples of what arrays are made of. Where there are
// very many pages, good is good enough.
func (t *table) sharpen(period int64) *fit {
	best := t.fitParts(period)
	if best == nil || best.skill < worthSkill {
		return best
	}
	// A change of the period by drift moves the object's end by one period.
	drift := float64(period) * float64(period) / float64(t.size)
	for step := drift / 2; step > drift/40 && (len(t.page) <= maxWindow || !t.good(best)); step /= 2 {
		for _, p := range []int64{best.period - int64(step), best.period + int64(step)} {
			if f := t.fitParts(p); f != nil && f.likelihood > best.likelihood {
				best = f
			}
		}
	}
	round := roundest(float64(best.period)-drift/100, float64(best.period)+drift/100)
	if f := t.fitParts(round); f != nil && f.likelihood > best.likelihood-clearlyBetter/3*t.ceiling() {
		best = f
	}
	return best
}

// roundest is the multiple of the highest power of two in [lo, hi], 0 if no whole
// number is.
func roundest(lo, hi float64) int64 {
	for unit := int64(1) << 40; unit > 0; unit >>= 1 {
		if m := int64(hi) / unit * unit; float64(m) >= lo && m > 0 {
			return m
		}
	}
	return 0
}
