// Package pattern recognises how one loop divides one object over the nodes.
//
// # Input
//
// Use: for each page of the object the accesses by each node. Counts may be
// exact or samples, of which a page may have one or none. The strides of the
// array behind the object are optional.
//
// # Output
//
// A Result: the pattern, the parts that each node uses, the share of the accesses
// that they explain, and how sure that is.
//
// # Method
//
// CGO'12 §3.1: x-wise, y-wise and z-wise use are one pattern, contiguous parts in
// the order of the nodes, that repeats after the whole object, a row, a row of a
// row; block-cyclic use repeats after any other number of bytes. So what is looked
// for is the period. Nodes are points on a circle, which makes the object a signal
// whose spectrum has its line at one over the period. At each candidate the pages
// are laid on top of each other, and the borders between the parts are chosen that
// explain most. A block-exclusive pattern (§4.1) is a Latin square of parts: its P
// block rows are each periodic, no two alike.
//
// An access is explained if its node owns a byte of its page, so pages that a
// border cuts are no counter-evidence. A page counts once, by the shares of its
// nodes, or by its samples where it has less than one: pages of a full trace are
// not surer than one decision of who uses them.
//
// # Limits
//
// Pages are all that is seen: parts much smaller than a page look as if every node
// used every page, and are called that. A fit is refused where pages alone would
// explain it.
package pattern

import (
	"math"
	"slices"

	"numaopt/internal/units"
)

// Kind is the kind of a pattern.
type Kind string

// The kinds. Those up to BlockExclusive divide the object.
const (
	XWise          Kind = "x-wise"          // one contiguous part for each node, in their order; one may be at both ends
	YWise          Kind = "y-wise"          // the same in every row
	ZWise          Kind = "z-wise"          // the same in every row of the next dimension
	BlockCyclic    Kind = "block-cyclic"    // the same in every period of another size
	Inverse        Kind = "inverse"         // contiguous parts in descending order of the nodes
	Permuted       Kind = "permuted"        // contiguous parts in another order, as in one phase of block-exclusive
	BlockExclusive Kind = "block-exclusive" // Latin square of parts, one for each node in each block row and column
	AllToAll       Kind = "all-to-all"      // every node uses every page
	Single         Kind = "single node"     // one node makes nearly all accesses
	None           Kind = "none"            // pages have their nodes, in no order that is known here
	NotEnough      Kind = "not enough samples"
)

// MinPerNode is the samples for each node of the machine below which the answer
// is NotEnough. In 480 runs of the tests' kernels with that many on 2, 4 and 8 nodes
// no pattern was named wrongly but squares, see perBlock; with half as many, 7 were.
// Patterns without parts want two samples on dozens of pages and are NotEnough
// for longer.
const MinPerNode = 50

// searchedPerNode is the same for a period that is none of the array's strides:
// with fewer, one beside the stride fits as well by chance.
const searchedPerNode = 3 * MinPerNode

// perBlock is the samples for each of a square's P × P blocks below which a period
// that a square would show as well is not believed.
const perBlock = 16

// The thresholds of Find.
const (
	// singleShare is the share of one node from which on the others are noise:
	// reductions and first touches of a loop that one node runs.
	singleShare = 0.95
	// takesPart is the least share of a node that has a part of its own.
	takesPart = 0.02
	// minSkill is the least skill of a fit, see fit.skill. Halos and uneven loops
	// cost up to a quarter; no fit of random pages reached 0.4.
	minSkill = 0.6
	// goodSkill is the skill from which on no other candidates are looked for, if the
	// likelihood is as good; worthSkill that from which on a candidate is refined.
	goodSkill, worthSkill = 0.9, 0.2
	// clearlyBetter is by how much of what there is to gain the likelihood of a
	// candidate that is tried later, and is less simple, must be higher.
	clearlyBetter = 0.03
	// MinConfidence is the least confidence of a pattern that more samples would
	// make surer.
	MinConfidence = 0.95
	// manySamples is the samples a page from which on more of them say nothing new.
	manySamples = 4
	// manyPages is the pages for each node with which a pattern is surer than chance;
	// small objects are called what they look like, whatever their confidence.
	manyPages = 8
)

// Part is the bytes [From, To) of each period, which Node uses.
type Part struct {
	Node     int
	From, To int64
}

// Result is a pattern.
type Result struct {
	Kind Kind
	// Period is the bytes after which the parts repeat, the object's size where
	// they do not; 0 where there are none.
	Period int64
	// Parts are in ascending order without gaps from 0 to Period. For
	// BlockExclusive they are those of the first block row, which is Square[0].
	Parts []Part
	// Square[r][c] is the node of part c in block row r, for BlockExclusive.
	Square [][]int
	Node   int // for Single
	// Explains is the share of the accesses, in [0,1], that are made by nodes that
	// the pattern gives a byte of the page; for AllToAll 1 minus the share by which
	// accesses to a page come from one node more often than by chance. NaN for None
	// and NotEnough.
	Explains float64
	// Confidence is, in [0,1], 1 minus a bound of the probability that chance, or the
	// best pattern with another period, would look like this one. NaN for NotEnough.
	Confidence float64
	Samples    uint64
	// Need is the samples that would do, for NotEnough; 0 where more would not help.
	Need uint64

	fit   *fit
	nodes []int // that take part, ascending
}

// Order is the nodes of r's parts as they lie in memory.
func (r *Result) Order() []int {
	var order []int
	for _, p := range r.Parts {
		if !slices.Contains(order, p.Node) {
			order = append(order, p.Node)
		}
	}
	return order
}

// Block is the mean size of r's parts in bytes, 0 where it has none.
func (r *Result) Block() int64 {
	if len(r.Parts) == 0 {
		return 0
	}
	return r.Period / int64(len(r.nodes))
}

// Divides reports whether r wants each page on a node of its own.
func (r *Result) Divides() bool { return len(r.Parts) > 0 || r.Kind == Single }

// Find returns the pattern of u. strides are the bytes after which the array's
// next dimensions repeat, descending: a row, a row of a row. They may be empty;
// periods that are none of them are BlockCyclic.
func Find(u Use, strides []int64) Result {
	t := newTable(u)
	r := Result{Kind: NotEnough, Explains: math.NaN(), Confidence: math.NaN(), Samples: t.samples, nodes: t.nodes}
	if need := uint64(MinPerNode * u.Nodes); t.samples < need {
		r.Need = need
		return r
	}
	if node, share := t.most(); share >= singleShare {
		r.Kind, r.Node, r.Explains = Single, node, share
		r.Confidence = 1 - math.Exp(-float64(t.samples)*divergence(share, singleShare-0.05))
		return r
	}
	best, rival := t.bestFit(strides)
	if best == nil || best.skill < minSkill || t.accidental(best) || best.period < int64(len(t.nodes))*units.PageSize && best.kind(t, strides) == Permuted {
		// Pages that hold the parts of several nodes tell no order that is not a simple one.
		t.withoutParts(&r)
		return r
	}
	if need := uint64(perBlock * len(t.nodes) * len(t.nodes)); u.period() > 1 && t.samples < need && t.maybeSquare(best, strides) {
		r.Need = need
		return r
	}
	if u.period() > 1 && best.skill-t.scatter(best) < minSkill {
		r.Need = 2 * t.samples
		return r
	}
	if need := uint64(searchedPerNode * u.Nodes); u.period() > 1 && best.searched && t.samples < need {
		r.Need = need
		return r
	}
	r.Period, r.Parts, r.fit = best.period, best.parts, best
	if best.square != nil {
		r.Square = best.square.nodes
	}
	r.Explains = best.explains
	r.Confidence = t.confidence(best, rival)
	r.Kind = best.kind(t, strides)
	if !t.seen() && r.Confidence < MinConfidence {
		return Result{Kind: NotEnough, Explains: math.NaN(), Confidence: math.NaN(), Samples: t.samples, Need: 2 * t.samples}
	}
	return r
}

// bestFit is the likeliest fit among the candidates, the simplest of those that are
// about equal, and the best of another period.
func (t *table) bestFit(strides []int64) (best, rival *fit) {
	try := func(f *fit, better bool) {
		switch {
		case f == nil:
		case best == nil || better:
			if best != nil && !f.samePeriod(best, t) {
				rival = best
			}
			best = f
		case !f.samePeriod(best, t) && (rival == nil || f.likelihood > rival.likelihood):
			rival = f
		}
	}
	tryLater := func(f *fit) { try(f, f != nil && t.clearly(f, best)) }
	trySearched := func(f *fit) { try(f, t.clearly(f, best) && t.weight*(f.likelihood-best.likelihood) > t.searched()) }
	try(t.fitParts(t.size), true)
	for _, s := range strides {
		tryLater(t.fitParts(s))
	}
	if t.good(best) || len(t.nodes) < 2 {
		return best, rival
	}
	for _, period := range t.window(0, t.size).likeliest() {
		// What is a stride but for the noise of the samples is that stride.
		f := t.sharpen(period)
		if f != nil && !slices.ContainsFunc(strides, func(s int64) bool { return near(f.period, s, t.size) }) {
			f.searched = true
			trySearched(f)
		}
	}
	if !t.good(best) || best.period < t.size {
		block := t.window(0, t.size/int64(len(t.nodes)))
		for _, period := range t.squarePeriods(block, strides, best.period, t.good(best)) {
			// The first block row by itself is no square.
			if f := block.fitParts(period); f == nil || f.skill < minSkill/2 {
				continue
			}
			if f := t.fitSquare(period); f != nil {
				try(f, f.likelihood > best.likelihood)
			}
		}
	}
	return best, rival
}

// ceiling is the likelihood of a fit that explains everything, see fit.
func (t *table) ceiling() float64 {
	var sum float64
	for _, m := range t.mean {
		if m > 0 {
			sum += m * math.Log(noise+(1-noise)/m)
		}
	}
	return sum
}

// clearly reports whether f is so much better than g that it may be less simple.
func (t *table) clearly(f, g *fit) bool {
	return f.likelihood > g.likelihood+clearlyBetter*t.ceiling()
}

// good reports whether no other fit can be clearly better than f.
func (t *table) good(f *fit) bool {
	return f.skill >= goodSkill && f.likelihood >= goodSkill*t.ceiling()
}

// kind names a fit: by the order of its nodes, then by its period.
func (f *fit) kind(t *table, strides []int64) Kind {
	if f.square != nil {
		return BlockExclusive
	}
	order := (&Result{Parts: f.parts}).Order()
	if len(order) < len(f.parts) { // wrapped: where a period begins is chance
		low := slices.Index(order, slices.Min(order))
		order = append(slices.Clone(order[low:]), order[:low]...)
		if len(order) > 2 && order[1] > order[len(order)-1] { // descending: its highest is next
			order = append(order[1:], order[0])
		}
	}
	switch {
	case slices.IsSorted(order):
	case slices.IsSortedFunc(order, func(a, b int) int { return b - a }):
		return Inverse
	default:
		return Permuted
	}
	return View(f.period, t.size, strides)
}

// Rename names r's period anew by strides that were not known when it was found.
func (r *Result) Rename(size int64, strides []int64) {
	if r.Kind == BlockCyclic {
		r.Kind = View(r.Period, size, strides)
	}
}

// View names a period of an object of size bytes by the dimension that it is the
// stride of.
func View(period, size int64, strides []int64) Kind {
	if period == size {
		return XWise
	}
	for i, kind := range []Kind{YWise, ZWise} {
		if i < len(strides) && near(period, strides[i], size) {
			return kind
		}
	}
	return BlockCyclic
}

// near reports whether two periods drift apart by less than a tenth of one over
// the object.
func near(a, b, size int64) bool {
	return b > 0 && math.Abs(float64(a-b))*float64(size) < 0.1*float64(b)*float64(b)
}
