package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// order is a way to sort the tables of objects and loops, the greatest first.
type order struct {
	name   string
	object func(a, b *Object) int
	loop   func(a, b *Loop) int
}

// orders are all of them; the first is that of Build.
var orders = []order{
	{"cost", nil, nil},
	{"dram", func(a, b *Object) int { return cmp.Compare(b.DRAMAccesses, a.DRAMAccesses) }, func(a, b *Loop) int { return cmp.Compare(b.DRAMAccesses, a.DRAMAccesses) }},
	{"remote", func(a, b *Object) int { return cmp.Compare(b.remote, a.remote) }, func(a, b *Loop) int { return cmp.Compare(b.remote, a.remote) }},
	{"accesses", func(a, b *Object) int { return cmp.Compare(b.Accesses, a.Accesses) }, func(a, b *Loop) int { return cmp.Compare(b.Accesses, a.Accesses) }},
	{"size", func(a, b *Object) int { return cmp.Compare(b.TouchedBytes, a.TouchedBytes) }, nil},
	{"name", func(a, b *Object) int { return cmp.Compare(a.Name, b.Name) }, func(a, b *Loop) int { return cmp.Compare(a.Name, b.Name) }},
}

// SortKeys are the keys of Options.Sort: remote is the number of remote DRAM accesses.
func SortKeys() []string {
	var names []string
	for _, o := range orders {
		names = append(names, o.name)
	}
	return names
}

// checkSort reports a key that is none of SortKeys; empty is the first.
func checkSort(key string) error {
	if key == "" || slices.Contains(SortKeys(), key) {
		return nil
	}
	return fmt.Errorf("sort by %q: not one of %s", key, strings.Join(SortKeys(), ", "))
}

// sort orders objects and loops by a key. Loops have no size, and stay as they are.
func (r *Report) sort(key string) {
	i := slices.IndexFunc(orders, func(o order) bool { return o.name == key })
	if i < 0 {
		return
	}
	if by := orders[i].object; by != nil {
		slices.SortStableFunc(r.Objects, func(a, b Object) int { return by(&a, &b) })
		r.sorted = key
	}
	if by := orders[i].loop; by != nil {
		slices.SortStableFunc(r.Loops, func(a, b Loop) int { return by(&a, &b) })
	}
}

// byText is what the rows of a table come by: as Build has it, or as sorted.
func (r *Report) byText(built string) string {
	switch r.sorted {
	case "":
		return built
	case "dram":
		return r.counted()
	case "remote":
		return "remote " + r.counted()
	case "accesses":
		return "all accesses"
	}
	return r.sorted
}
