package plan

import (
	"fmt"
	"slices"

	"numaopt/internal/units"
)

// Home returns the node of one page of an object of the given number of pages
// on a machine of nodes nodes, -1 where the page is left to first touch.
// Page 0 is the page of the object's first byte.
//
// runtime-c does the same arithmetic; testdata/distribution holds both to it.
// For interleave the kernel alone decides at which node it begins (it counts
// from the address, not from the object): Home counts from page 0, which is
// right up to a rotation.
//
// pre: 0 <= page < pages, nodes > 0, d.Check(nodes) == nil.
//
// Source: Majo & Gross, CGO'12, §4.1 (block-cyclic, of which x-wise has the
// block pages/nodes) and §2.3 (page maps).
func (d Distribution) Home(page, pages, nodes int) int {
	switch d.Policy {
	case Bind:
		return d.Node
	case Interleave:
		if len(d.Nodes) > 0 {
			return d.Nodes[page%len(d.Nodes)]
		}
		return page % nodes
	case BlockCyclic:
		return int(int64(page) * units.PageSize / int64(d.Block) % int64(nodes))
	case XWise:
		return int(int64(page) * int64(nodes) / int64(pages))
	case Pages:
		return d.Map.At(rescale(page, d.Map.Len(), pages))
	}
	return -1
}

// FirstTouch leaves all pages where first touch puts them.
func FirstTouch() *Distribution { return &Distribution{Policy: Pages, Map: Runs{{Node: -1, Count: 1}}} }

// Equal reports whether d and o say the same in the same words.
func (d Distribution) Equal(o Distribution) bool {
	return d.Policy == o.Policy && d.Node == o.Node && d.Block == o.Block && slices.Equal(d.Nodes, o.Nodes) && slices.Equal(d.Map, o.Map)
}

// Places reports whether d places any page.
func (d Distribution) Places() bool {
	return d.Policy != Pages || slices.ContainsFunc(d.Map, func(r Run) bool { return r.Node >= 0 })
}

// rescale is the page of a map made for from pages that stands for page i of an
// object of to pages.
func rescale(i, from, to int) int {
	if from == to {
		return i
	}
	return int(int64(i) * int64(from) / int64(to))
}

// Homes is Home of every page of an object, in time proportional to pages.
func (d Distribution) Homes(pages, nodes int) []int {
	home := make([]int, pages)
	if d.Policy != Pages {
		for i := range home {
			home[i] = d.Home(i, pages, nodes)
		}
		return home
	}
	total, run, end := d.Map.Len(), -1, 0
	for i := range home {
		for at := rescale(i, total, pages); at >= end && run+1 < len(d.Map); {
			run++
			end += d.Map[run].Count
		}
		home[i] = d.Map[run].Node
	}
	return home
}

// String names d as comments and reports do: "bind to node 2", "x-wise".
func (d Distribution) String() string {
	switch d.Policy {
	case Bind:
		return fmt.Sprintf("bind to node %d", d.Node)
	case Interleave:
		if len(d.Nodes) > 0 {
			return fmt.Sprintf("interleave over nodes %v", d.Nodes)
		}
		return "interleave over all nodes"
	case BlockCyclic:
		return fmt.Sprintf("block-cyclic in blocks of %v", d.Block)
	case Pages:
		return fmt.Sprintf("page map of %d runs", len(d.Map))
	}
	return string(d.Policy)
}

// Check says what is wrong with d on nodes nodes; nil if nothing.
func (d Distribution) Check(nodes int) error {
	if err := d.checkFields(); err != nil {
		return err
	}
	switch d.Policy {
	case Bind:
		return checkNode(d.Node, nodes)
	case Interleave:
		if !slices.IsSorted(d.Nodes) || len(slices.Compact(slices.Clone(d.Nodes))) != len(d.Nodes) {
			return fmt.Errorf("nodes %v are not in ascending order, each once", d.Nodes)
		}
		for _, n := range d.Nodes {
			if err := checkNode(n, nodes); err != nil {
				return err
			}
		}
	case BlockCyclic:
		if d.Block <= 0 || d.Block%units.PageSize != 0 {
			return fmt.Errorf("block of %s is not a multiple of the page, %d bytes", d.Block.Exact(), units.PageSize)
		}
	case Pages:
		return checkMap(d.Map, nodes)
	}
	return nil
}

// checkFields says which field does not belong to the policy.
func (d Distribution) checkFields() error {
	for _, f := range []struct {
		name   string
		set    bool
		policy Policy
	}{
		{"node", d.Node != 0, Bind}, {"nodes", len(d.Nodes) > 0, Interleave},
		{"block", d.Block != 0, BlockCyclic}, {"map", len(d.Map) > 0, Pages},
	} {
		if f.set && d.Policy != f.policy {
			return fmt.Errorf("policy %q has no %s; that belongs to %q", d.Policy, f.name, f.policy)
		}
	}
	switch d.Policy {
	case Bind, Interleave, BlockCyclic, XWise, Pages:
		return nil
	}
	return fmt.Errorf("policy %q is not one of bind, interleave, block-cyclic, x-wise and pages", d.Policy)
}

func checkMap(m Runs, nodes int) error {
	if len(m) == 0 {
		return fmt.Errorf("policy %q has no map", Pages)
	}
	for _, run := range m {
		if run.Count < 1 {
			return fmt.Errorf("a run of the map has %d pages", run.Count)
		}
		if run.Node == -1 {
			continue
		}
		if err := checkNode(run.Node, nodes); err != nil {
			return err
		}
	}
	return nil
}

func checkNode(n, nodes int) error {
	if n < 0 || n >= nodes {
		return fmt.Errorf("node %d is not one of the plan's %d nodes, 0 to %d", n, nodes, nodes-1)
	}
	return nil
}
