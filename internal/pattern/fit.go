package pattern

import (
	"cmp"
	"math"
	"slices"
)

// fit is one candidate and how well it does.
type fit struct {
	period int64
	parts  []Part
	square *squareParts // for block-exclusive use, else nil
	// skill is how much more of the pages' weight the parts explain than they would
	// if nodes and pages had nothing to do with each other: 0 no more, 1 all.
	skill float64
	// likelihood is the logarithm of the accesses' likelihood if a node's share of a
	// page is that of its bytes, per weight, above that of all pages alike.
	likelihood float64
	explains   float64 // share of the accesses
	chance     float64 // share that the parts would explain by chance, below 1
	searched   bool    // the period is the best of many, not a stride
}

// noise is the share of the accesses that the likelihood of a fit leaves to chance:
// halos, reductions, borders that are off.
const noise = 0.1

var logNoise = math.Log(noise)

// samePeriod reports whether two fits are about the same rows.
func (f *fit) samePeriod(g *fit, t *table) bool {
	return (f.square == nil) == (g.square == nil) && near(f.period, g.period, t.size)
}

// binBytes is the width of the bins of a period, and maxBins the most of them.
const (
	binBytes = 512
	maxBins  = 2048
)

// fitParts lays the pages on top of each other, period by period, and chooses the
// borders between contiguous parts that explain most. The parts' order is that of
// the nodes' centres. nil where the period is too short.
func (t *table) fitParts(period int64) *fit {
	if period <= 0 || period > t.size {
		return nil
	}
	bins := int(min(maxBins, max(period/binBytes, 1)))
	if bins < len(t.nodes) {
		return nil
	}
	sums := t.fold(period, bins)
	best := t.cut(period, bins, sums, 0)
	// Of few samples, the object's ends being one is more freedom than is found out.
	if period == t.size && t.period > 1 || t.good(best) || best.skill < worthSkill {
		return best
	}
	for _, shift := range t.shifts(bins, sums) {
		if f := t.cut(period, bins, sums, shift); t.clearly(f, best) {
			best = f
		}
	}
	return best
}

// fold sums the weight of each node in each bin of a period:
// sums[bin*all+node]. A page is spread evenly over the bins that it covers.
func (t *table) fold(period int64, bins int) []float64 {
	sums := make([]float64, bins*t.all)
	scale := float64(bins) / float64(period)
	for i := range t.page {
		from := float64(t.lo[i]%period) * scale
		to := from + float64(min(period, t.hi[i]-t.lo[i]))*scale
		for b := int(from); float64(b) < to; b++ {
			part := (min(to, float64(b+1)) - max(from, float64(b))) / (to - from)
			at := (b % bins) * t.all
			for n, s := range t.share[i*t.all : (i+1)*t.all] {
				sums[at+n] += s * part
			}
		}
	}
	return sums
}

// shifts are the bins at which a period may begin so that no part is cut: half way
// between the centres of nodes that follow each other on the circle.
func (t *table) shifts(bins int, sums []float64) []int {
	var centres []float64
	for _, n := range t.nodes {
		var x, y float64
		for b := range bins {
			sin, cos := math.Sincos(2 * math.Pi * (float64(b) + 0.5) / float64(bins))
			x, y = x+cos*sums[b*t.all+n], y+sin*sums[b*t.all+n]
		}
		centres = append(centres, math.Mod(math.Atan2(y, x)/(2*math.Pi)+1, 1))
	}
	slices.Sort(centres)
	var list []int
	for i, c := range centres {
		next := centres[(i+1)%len(centres)]
		if next <= c {
			next++
		}
		list = append(list, int(float64(bins)*(c+next)/2)%bins)
	}
	return list
}

// cut chooses the borders of parts in a period that begins at bin shift.
func (t *table) cut(period int64, bins int, sums []float64, shift int) *fit {
	at := func(b, n int) float64 { return sums[(b+shift)%bins*t.all+n] }
	order := t.byCentre(bins, at)
	ends := partition(bins, order, at)
	f := &fit{period: period}
	edge := func(b int) int64 { return int64(float64(b) / float64(bins) * float64(period)) }
	from := 0
	for i, n := range order {
		lo, hi := from+shift, ends[i]+shift
		from = ends[i]
		if lo >= bins {
			lo, hi = lo-bins, hi-bins
		}
		if hi > bins { // the part that the period's end cuts
			f.parts = append(f.parts, Part{n, edge(lo), period}, Part{n, 0, edge(hi - bins)})
		} else if hi > lo {
			f.parts = append(f.parts, Part{n, edge(lo), edge(hi)})
		}
	}
	slices.SortFunc(f.parts, func(a, b Part) int { return cmp.Compare(a.From, b.From) })
	t.judge(f)
	return f
}

// byCentre orders the nodes by the mean bin of their weight.
func (t *table) byCentre(bins int, at func(b, n int) float64) []int {
	centre := make(map[int]float64)
	for _, n := range t.nodes {
		var sum, moment float64
		for b := range bins {
			sum += at(b, n)
			moment += at(b, n) * float64(b)
		}
		centre[n] = moment / sum
	}
	order := slices.Clone(t.nodes)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(centre[a], centre[b]) })
	return order
}

// partition divides the bins into one run for each node of order so that the
// nodes' own weight in their runs is most; ends[i] is where run i ends. Dynamic
// programming over bins and runs.
func partition(bins int, order []int, at func(b, n int) float64) (ends []int) {
	k := len(order)
	best := make([]float64, k)
	began := make([]bool, bins*k) // is bin b the first of run j in the best division that ends in j?
	for b := range bins {
		for j := k - 1; j >= 0; j-- {
			if j > 0 && best[j-1] >= best[j] {
				best[j], began[b*k+j] = best[j-1], true
			}
			best[j] += at(b, order[j])
		}
	}
	ends = make([]int, k) // 0 for runs before the first
	j := 0
	for i := range best {
		if best[i] > best[j] {
			j = i
		}
	}
	for i := j; i < k; i++ {
		ends[i] = bins
	}
	for b := bins - 1; b >= 0 && j > 0; b-- {
		if began[b*k+j] {
			j--
			ends[j] = b
		}
	}
	return ends
}

// tooCoarse is the share that parts explain by chance from which on pages do not tell
// nodes apart: nearly all hold bytes of nearly all nodes.
const tooCoarse = 0.85

// judge fills in how well f does.
func (t *table) judge(f *fit) {
	var explained, chance, counted, likelihood float64
	owned := make([]float64, t.all)
	for i := range t.page {
		clear(owned)
		f.owners(t.lo[i], t.hi[i], func(node int, bytes int64) { owned[node] += float64(bytes) })
		var bytes float64
		for _, b := range owned {
			bytes += b
		}
		for n, b := range owned {
			share := t.share[i*t.all+n]
			if b > 0 {
				explained += share
				counted += t.count[i*t.all+n]
				chance += t.weights[i] * t.mean[n]
			}
			switch {
			case share == 0:
			case b == 0:
				likelihood += share * logNoise
			case b == bytes:
				likelihood += share * t.logWhole[n]
			default:
				likelihood += share * math.Log(noise+(1-noise)*b/bytes/t.mean[n])
			}
		}
	}
	f.explains, f.likelihood = counted/t.total, likelihood/t.weight
	f.chance = min(chance/t.weight, tooCoarse)
	if f.chance < tooCoarse {
		f.skill = (explained - chance) / (t.weight - chance)
	}
}

// owners calls found for each piece of the bytes [lo, hi) of the object with the
// node that owns it and its length.
func (f *fit) owners(lo, hi int64, found func(node int, bytes int64)) {
	if f.square != nil {
		f.square.each(f.period, lo, hi, func(r, c int, bytes int64) { found(f.square.nodes[r][c], bytes) })
		return
	}
	partOwners(f.parts, f.period, lo, hi, found)
}

func partOwners(parts []Part, period, lo, hi int64, found func(node int, bytes int64)) {
	hi = min(hi, lo+period)
	for lo < hi {
		phase := lo % period
		i, _ := slices.BinarySearchFunc(parts, phase, func(p Part, at int64) int {
			if p.To <= at {
				return -1
			}
			return 1
		})
		if i == len(parts) {
			return
		}
		end := min(hi, lo+parts[i].To-phase)
		found(parts[i].Node, end-lo)
		lo = end
	}
}
