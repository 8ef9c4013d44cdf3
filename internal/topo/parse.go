package topo

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of a named topology: the masks of the plan have 64 nodes, and a virtual
// machine of more CPUs than this is of no use.
const (
	maxNodes = 64
	maxCPUs  = 1024
)

// Parse reads a topology named NODESxCPUS, such as "4x2": 4 nodes of 2 CPUs each,
// numbered node by node.
func Parse(s string) (Topology, error) {
	a, b, ok := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "x")
	nodes, errN := strconv.ParseUint(a, 10, 16)
	cpus, errC := strconv.ParseUint(b, 10, 16)
	switch {
	case !ok || errN != nil || errC != nil:
		return Topology{}, fmt.Errorf("topology %q: want NODESxCPUS, CPUs counted per node, such as 4x2", s)
	case nodes == 0 || cpus == 0:
		return Topology{}, fmt.Errorf("topology %q: nodes and CPUs per node start at 1", s)
	case nodes > maxNodes:
		return Topology{}, fmt.Errorf("topology %q: at most %d nodes", s, maxNodes)
	case nodes*cpus > maxCPUs:
		return Topology{}, fmt.Errorf("topology %q: %d CPUs in all, at most %d", s, nodes*cpus, maxCPUs)
	}
	t := Topology{Nodes: make([]Node, nodes)}
	for i := range t.Nodes {
		t.Nodes[i] = Node{OS: i, CPUs: make([]int, cpus)}
		for c := range t.Nodes[i].CPUs {
			t.Nodes[i].CPUs[c] = i*int(cpus) + c
		}
	}
	return t, nil
}

// ParseList reads a list of CPU or node numbers as the kernel prints it,
// "0-3,8,10-11", possibly empty. The result ascends.
//
// Source: Documentation/admin-guide/kernel-parameters, "cpu lists".
func ParseList(s string) ([]int, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var list []int
	for _, part := range strings.Split(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(lo, 10, 16)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(hi, 10, 16)
		}
		if err != nil || b < a {
			return nil, fmt.Errorf("list %q: %q is not a number or a range", s, part)
		}
		if n := len(list); n > 0 && int(a) <= list[n-1] {
			return nil, fmt.Errorf("list %q: %q does not ascend", s, part)
		}
		for n := int(a); n <= int(b); n++ {
			list = append(list, n)
		}
	}
	return list, nil
}

// FormatList is the inverse of ParseList. list must ascend.
func FormatList(list []int) string {
	var b strings.Builder
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if j == i {
			fmt.Fprintf(&b, "%d", list[i])
		} else {
			fmt.Fprintf(&b, "%d-%d", list[i], list[j])
		}
		i = j + 1
	}
	return b.String()
}
