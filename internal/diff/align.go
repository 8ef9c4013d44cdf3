package diff

// pair is two things that are one: indices into the lists before and after.
type pair struct {
	before, after int
	// doubt is true where another pairing is about as likely.
	doubt bool
}

const (
	// least is the likeness from which on two things may be one: of the evidence (size,
	// accesses, their distribution, ...) one piece must speak for it in full, or several
	// in part.
	least = 1
	// margin is how much better the best pairing must be than one with another partner:
	// half a piece of evidence.
	margin = 0.5
	// largest bounds the work on functions of thousands of allocations, which tools
	// write: their places alone count.
	largest = 1 << 20
)

// align pairs two lists that are in the order of the source, so that the order stays and
// the sum of likenesses is the largest. A likeness below least pairs nothing.
//
// Source: Needleman & Wunsch, J. Mol. Biol. 48 (1970), with gaps that cost nothing.
func align(n, m int, alike func(i, j int) float64) []pair {
	s := newScores(n, m, alike)
	best := s.before(n, m)
	var pairs []pair
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case s.at(i, j) >= least && same(s.through(i, j), best):
			pairs = append(pairs, pair{i, j, s.doubt(i, j, best)})
			i, j = i+1, j+1
		case same(s.before(i, j)+s.after(i+1, j), best):
			i++
		default:
			j++
		}
	}
	return pairs
}

func same(a, b float64) bool { return a > b-1e-9 }

// scores are the likenesses of all pairs, and the best sums over the parts of the lists
// in front of and behind each.
type scores struct {
	n, m               int
	alike, front, back []float64
}

func newScores(n, m int, alike func(i, j int) float64) *scores {
	s := &scores{n: n, m: m, alike: make([]float64, n*m), front: make([]float64, (n+1)*(m+1)), back: make([]float64, (n+1)*(m+1))}
	for i := range n {
		for j := range m {
			s.alike[i*m+j] = alike(i, j)
		}
	}
	w := m + 1
	for i := 1; i <= n; i++ {
		for j := 1; j <= m; j++ {
			s.front[i*w+j] = max(s.front[(i-1)*w+j], s.front[i*w+j-1], s.front[(i-1)*w+j-1]+s.worth(i-1, j-1))
		}
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			s.back[i*w+j] = max(s.back[(i+1)*w+j], s.back[i*w+j+1], s.back[(i+1)*w+j+1]+s.worth(i, j))
		}
	}
	return s
}

func (s *scores) at(i, j int) float64     { return s.alike[i*s.m+j] }
func (s *scores) before(i, j int) float64 { return s.front[i*(s.m+1)+j] }
func (s *scores) after(i, j int) float64  { return s.back[i*(s.m+1)+j] }

// worth is what pairing i and j adds.
func (s *scores) worth(i, j int) float64 {
	if v := s.at(i, j); v >= least {
		return v
	}
	return 0
}

// through is the best sum with i and j paired.
func (s *scores) through(i, j int) float64 {
	return s.before(i, j) + s.worth(i, j) + s.after(i+1, j+1)
}

// doubt reports whether i or j has another partner that is about as good.
func (s *scores) doubt(i, j int, best float64) bool {
	for k := range s.m {
		if k != j && s.at(i, k) >= least && s.through(i, k) > best-margin {
			return true
		}
	}
	for k := range s.n {
		if k != i && s.at(k, j) >= least && s.through(k, j) > best-margin {
			return true
		}
	}
	return false
}
