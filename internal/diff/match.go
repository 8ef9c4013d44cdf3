package diff

import (
	"cmp"
	"slices"
)

// item is something that is looked for in the other profile: an object or a loop.
type item struct {
	// exact tells it from all others of the same build; empty where that is not known.
	exact string
	// families are what its partner must share, the narrowest first: the names of
	// functions, never a line.
	families []string
	// place orders a family as the source does, and is the same after edits elsewhere:
	// lines from the declarations of their functions, the outermost first.
	place []int
	// offset orders what stands in one line.
	offset uint64
}

// match pairs the items of two profiles. alike is how much speaks for a pair besides
// its place, at least 0.
func match(before, after []item, alike func(i, j int) float64) []pair {
	m := &matcher{lists: [2][]item{before, after}, alike: alike}
	m.taken[0], m.taken[1] = make([]bool, len(before)), make([]bool, len(after))
	m.exact()
	for level := range 2 {
		m.families(level)
	}
	slices.SortFunc(m.pairs, func(a, b pair) int { return cmp.Compare(a.before, b.before) })
	return m.pairs
}

// placed is what the same place adds to a likeness. It decides where nothing else does:
// whatever is added to a function moves what follows, so that two different allocations
// come to the same line.
const placed = 0.25

type matcher struct {
	lists [2][]item
	taken [2][]bool
	alike func(i, j int) float64
	pairs []pair
}

func (m *matcher) add(p pair) {
	m.taken[0][p.before], m.taken[1][p.after] = true, true
	m.pairs = append(m.pairs, p)
}

// exact pairs what has the same place in the same build.
func (m *matcher) exact() {
	byKey := m.sorted(func(x *item) string { return x.exact })
	for _, lists := range byKey {
		if len(lists[0]) == 1 && len(lists[1]) == 1 {
			m.add(pair{before: lists[0][0], after: lists[1][0]})
		}
	}
}

// families pairs what is left, within families.
func (m *matcher) families(level int) {
	byKey := m.sorted(func(x *item) string {
		if level >= len(x.families) {
			return ""
		}
		return x.families[level]
	})
	for _, lists := range byKey {
		m.family(lists[0], lists[1])
	}
}

// sorted are the items left by key, in the order of the source; those without a key are
// left out.
func (m *matcher) sorted(key func(*item) string) map[string]*[2][]int {
	byKey := map[string]*[2][]int{}
	for side, list := range m.lists {
		for i := range list {
			k := key(&list[i])
			if k == "" || m.taken[side][i] {
				continue
			}
			if byKey[k] == nil {
				byKey[k] = new([2][]int)
			}
			byKey[k][side] = append(byKey[k][side], i)
		}
	}
	for _, lists := range byKey {
		for side := range lists {
			slices.SortStableFunc(lists[side], func(a, b int) int {
				x, y := &m.lists[side][a], &m.lists[side][b]
				return cmp.Or(slices.Compare(x.place, y.place), cmp.Compare(x.offset, y.offset))
			})
		}
	}
	return byKey
}

// family pairs the items of one family, both in the order of the source.
func (m *matcher) family(before, after []int) {
	samePlace := func(i, j int) bool {
		return slices.Equal(m.lists[0][before[i]].place, m.lists[1][after[j]].place)
	}
	unedited := len(before) == len(after)
	for i := 0; unedited && i < len(before); i++ {
		unedited = samePlace(i, i)
	}
	switch {
	case unedited:
		for i := range before {
			m.add(pair{before: before[i], after: after[i]})
		}
	case len(before)*len(after) > largest:
		m.byPlace(before, after)
	default:
		for _, p := range align(len(before), len(after), func(i, j int) float64 {
			score := m.alike(before[i], after[j])
			if samePlace(i, j) {
				score += placed
			}
			return score
		}) {
			m.add(pair{before[p.before], after[p.after], p.doubt})
		}
	}
}

// byPlace pairs what has the same place, and doubts it: something moved there.
func (m *matcher) byPlace(before, after []int) {
	for i, j := 0, 0; i < len(before) && j < len(after); {
		switch c := slices.Compare(m.lists[0][before[i]].place, m.lists[1][after[j]].place); {
		case c == 0:
			m.add(pair{before[i], after[j], true})
			i, j = i+1, j+1
		case c < 0:
			i++
		default:
			j++
		}
	}
}
