package pattern

import (
	"math"

	"numaopt/internal/stat"
)

// confidence is that of f, see Result: one model's likelihood exceeds that of the
// true one by a factor x with a probability of at most 1/x (Markov's inequality;
// Royall, Statistical Evidence, 1997, §1.4), times the number of choices that the
// fit had against chance: orders of the nodes, and borders.
func (t *table) confidence(f, rival *fit) float64 {
	chance := t.byChance(f)
	if rival != nil {
		ahead := f.likelihood - rival.likelihood
		if t.seen() { // the rival is the less simple, and must be as much better
			ahead += clearlyBetter * t.ceiling()
		}
		chance = max(chance, math.Exp(min(0, -t.weight*ahead)))
	}
	return 1 - chance
}

// byChance bounds the probability that pages whose nodes have no order look like f.
func (t *table) byChance(f *fit) float64 {
	k := float64(len(t.nodes))
	orders, _ := math.Lgamma(k + 1)
	choices := orders + (k-1)*math.Log(float64(len(t.page)))
	if f.square != nil { // at most as many orders in each row, and twice the borders
		choices = k*orders + 2*(k-1)*math.Log(float64(len(t.page)))
	}
	return math.Exp(min(0, choices-t.weight*f.likelihood))
}

// searched is the logarithm of how many periods can be told apart among those that
// are looked for: the best of as many is by chance so much likelier than the true one.
func (t *table) searched() float64 { return 2 * math.Log(float64(len(t.page))) }

// scatter is by how much a fit's skill may be too high by chance: three standard
// deviations by the number of samples or, for the best of all periods, what the
// greatest of as many differs by from their mean. The deviation of a share near 1 is
// not 0: Agresti and Coull add two samples either way.
func (t *table) scatter(f *fit) float64 {
	n := float64(t.samples) + 4
	share := (f.explains*float64(t.samples) + 2) / n
	deviations := 3.0
	if f.searched {
		deviations = math.Sqrt(2 * t.searched())
	}
	return deviations * math.Sqrt(share*(1-share)/n) / (1 - f.chance)
}

// accidental reports whether all of many pages have been seen and still f is likelier
// chance than not.
func (t *table) accidental(f *fit) bool {
	return len(t.page) >= manyPages*len(t.nodes) && t.seen() && t.byChance(f) > 0.5
}

// seen reports whether more samples of the pages would say nothing new.
func (t *table) seen() bool { return t.samples >= manySamples*uint64(len(t.page)) }

// divergence is Kullback and Leibler's of a share p from a share q < p; 0 if p is
// not above q.
func divergence(p, q float64) float64 {
	if p <= q || q <= 0 {
		return 0
	}
	d := p * math.Log(p/q)
	if p < 1 {
		d += (1 - p) * math.Log((1-p)/(1-q))
	}
	return d
}

// sameNode are the limits of what accesses to one page agree in beyond chance, in
// [0,1]: at most this much is all-to-all.
const (
	sameNode = 0.25
	minPairs = 30
	mostOf   = 8 // pairs that one page counts for
)

// withoutParts tells all-to-all use from pages that have their nodes without any
// order, by how often two accesses to one page come from the same node. Pages with
// a single sample say nothing of that.
func (t *table) withoutParts(r *Result) {
	var agree, pairs, chance float64
	for _, m := range t.mean {
		chance += m * m
	}
	for i := range t.page {
		var same, all float64
		for _, c := range t.count[i*t.all : (i+1)*t.all] {
			c /= t.period
			same += c * max(0, c-1)
			all += c
		}
		if all >= 2 {
			w := min(mostOf, all-1)
			agree += w * min(1, same/(all*(all-1)))
			pairs += w
		}
	}
	if pairs < minPairs {
		// Pairs grow with the square of the samples.
		r.Need = uint64(math.Ceil(float64(r.Samples) * math.Sqrt(2*minPairs/max(pairs, 1))))
		return
	}
	skill := (agree/pairs - chance) / (1 - chance)
	lo, hi := stat.Wilson(agree, pairs)
	limit := chance + sameNode*(1-chance)
	switch {
	case skill <= sameNode:
		r.Kind, r.Explains = AllToAll, min(1, 1-skill)
		r.Confidence = 1 - math.Exp(-pairs*divergence(1-agree/pairs, 1-limit))
	default:
		r.Kind = None
		r.Confidence = 1 - math.Exp(-pairs*divergence(agree/pairs, limit))
	}
	if t.period > 1 && lo < limit && limit < hi {
		r.Kind, r.Explains, r.Confidence, r.Need = NotEnough, math.NaN(), math.NaN(), 2*r.Samples
	}
}
