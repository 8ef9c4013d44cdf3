package sample

import (
	"cmp"
	"slices"
)

// split makes a page of each home that p had while it was sampled, by its physical
// addresses: an access is remote or not by where the page was then. Samples that do
// not tell are of the home that p had most. The first touch is of the earliest.
func (t *Table) split(p page) []page {
	cells := t.cells[p.first:p.last]
	home := func(c *cell) int {
		if h := c.how.home(); h >= 0 {
			return h
		}
		return p.home
	}
	if !slices.ContainsFunc(cells, func(c cell) bool { return home(&c) != home(&cells[0]) }) {
		return []page{p}
	}
	t.r.stats.Moved++
	slices.SortStableFunc(cells, func(a, b cell) int { return cmp.Compare(home(&a), home(&b)) })
	var out []page
	var earliest uint64
	first := 0
	for i := range cells {
		c := &cells[i]
		if n := len(out); n == 0 || out[n-1].home != home(c) {
			out = append(out, page{object: p.object, number: p.number, first: p.first + i, home: home(c)})
		}
		out[len(out)-1].last = p.first + i + 1
		if i == 0 || c.first < earliest {
			earliest, first = c.first, len(out)-1
		}
	}
	out[first].fault = p.fault
	out[0], out[first] = out[first], out[0]
	return out
}
