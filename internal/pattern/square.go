package pattern

import "slices"

// squareParts is an object in block rows and block columns, each row of whole
// object and each column of the period.
type squareParts struct {
	nodes   [][]int // of block row and column
	rows    []int64 // where each block row of the object ends
	columns []int64 // where each block column of the period ends
}

// fitSquare divides the object into as many block rows as nodes take part, and
// each period into as many block columns, and gives each block to the node that
// uses it most. Blocks are equal at first; then the borders are chosen that explain
// most, as loops may leave out the array's rim. nil unless that is a Latin square.
//
// Source: CGO'12 §4.1, fig. 11(f).
func (t *table) fitSquare(period int64) *fit {
	p := len(t.nodes)
	if period < int64(p)*binBytes/8 || period*int64(p) > t.size {
		return nil
	}
	s := &squareParts{rows: equal(p, t.size), columns: equal(p, period)}
	for range 3 {
		s.nodes = t.blockNodes(s, period)
		s.rows = t.borders(s, period, t.size, func(_, c, k int) int { return s.nodes[k][c] })
		s.columns = t.borders(s, period, period, func(r, _, k int) int { return s.nodes[r][k] })
	}
	if s.nodes = t.blockNodes(s, period); !latin(s.nodes) {
		return nil
	}
	f := &fit{period: period, square: s}
	var from int64
	for c, n := range s.nodes[0] {
		f.parts = append(f.parts, Part{n, from, s.columns[c]})
		from = s.columns[c]
	}
	t.judge(f)
	return f
}

// squarePeriods are the candidates for the rows of a square: the strides, what the
// whole object's period comes from, and if that is not good the periods of the first
// block row.
func (t *table) squarePeriods(block *table, strides []int64, whole int64, good bool) []int64 {
	list := slices.Clone(strides)
	if !good {
		list = append(list, block.periods()...)
	}
	for _, turn := range []float64{1, -1} {
		period := turned(whole, t.size, turn)
		drift := period * period / float64(t.size)
		list = append(list, int64(period), roundest(period-drift/20, period+drift/20))
	}
	return list
}

// turned is the period that rows of period bytes seem to have where each block row
// is shifted by one block against the one before, to the left (1) or right (-1).
func turned(period, size int64, turn float64) float64 {
	return 1 / (1/float64(period) + turn/float64(size))
}

// maybeSquare reports whether f is what a square of the array's rows looks like.
func (t *table) maybeSquare(f *fit, strides []int64) bool {
	for _, s := range strides {
		if f.square == nil && len(t.nodes) > 2 && s > 0 && s < t.size &&
			(near(f.period, int64(turned(s, t.size, 1)), t.size) || near(f.period, int64(turned(s, t.size, -1)), t.size)) {
			return true
		}
	}
	return false
}

// equal is the ends of p equal parts of whole bytes.
func equal(p int, whole int64) []int64 {
	ends := make([]int64, p)
	for i := range ends {
		ends[i] = int64(i+1) * whole / int64(p)
	}
	return ends
}

// blockNodes is the node with most weight in each block.
func (t *table) blockNodes(s *squareParts, period int64) [][]int {
	p := len(t.nodes)
	use := make([]float64, p*p*t.all)
	for i := range t.page {
		length := float64(t.hi[i] - t.lo[i])
		s.each(period, t.lo[i], t.hi[i], func(r, c int, bytes int64) {
			for n, w := range t.share[i*t.all : (i+1)*t.all] {
				use[(r*p+c)*t.all+n] += w * float64(bytes) / length
			}
		})
	}
	nodes := make([][]int, p)
	for b := range p * p {
		node := t.nodes[0]
		for _, n := range t.nodes {
			if use[b*t.all+n] > use[b*t.all+node] {
				node = n
			}
		}
		nodes[b/p] = append(nodes[b/p], node)
	}
	return nodes
}

// borders chooses anew where the block rows or the block columns end, of whole
// bytes together. node is that of block (r, c) if it was in row or column k.
func (t *table) borders(s *squareParts, period, whole int64, node func(r, c, k int) int) []int64 {
	p := len(t.nodes)
	bins := int(min(maxBins, max(whole/binBytes, int64(p))))
	gain := make([]float64, bins*p) // of each bin in each block row or column
	for i := range t.page {
		middle := (t.lo[i] + t.hi[i]) / 2
		bin := int(float64(middle%whole) / float64(whole) * float64(bins))
		s.each(period, middle, middle+1, func(r, c int, _ int64) {
			for k := range p {
				gain[bin*p+k] += t.share[i*t.all+node(r, c, k)]
			}
		})
	}
	order := make([]int, p)
	for k := range order {
		order[k] = k
	}
	ends := make([]int64, p)
	for k, end := range partition(bins, order, func(b, k int) float64 { return gain[b*p+k] }) {
		ends[k] = int64(float64(end) / float64(bins) * float64(whole))
	}
	ends[p-1] = whole
	return ends
}

// latin reports whether each node is once in each row and each column.
func latin(square [][]int) bool {
	for i := range square {
		row, column := make(map[int]bool), make(map[int]bool)
		for j := range square {
			row[square[i][j]], column[square[j][i]] = true, true
		}
		if len(row) < len(square) || len(column) < len(square) {
			return false
		}
	}
	return true
}

// each calls found for each piece of the bytes [lo, hi) with its block row and
// column, for one period of them at most.
func (s *squareParts) each(period, lo, hi int64, found func(r, c int, bytes int64)) {
	hi = min(hi, lo+period)
	for lo < hi {
		r, _ := slices.BinarySearch(s.rows, lo+1)
		c, _ := slices.BinarySearch(s.columns, lo%period+1)
		end := min(hi, lo-lo%period+s.columns[c], s.rows[r])
		found(r, c, end-lo)
		lo = end
	}
}
