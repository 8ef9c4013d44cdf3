package topo

import "fmt"

// Bind names how ranks are laid on CPUs: CGO'12 §7 binds threads compactly, as
// the papers' schedules need neighbouring ranks on one node.
type Bind string

const (
	BindCompact Bind = "compact" // node by node
	BindSpread  Bind = "spread"  // round robin over the nodes
)

// Order is the CPUs in the order of thread ranks: rank r runs on element
// r mod len.
func (t Topology) Order(b Bind) ([]CPU, error) {
	switch b {
	case BindCompact, "":
		return t.Compact(), nil
	case BindSpread:
		return t.Spread(), nil
	}
	return nil, fmt.Errorf("bind %q: want %s or %s", b, BindCompact, BindSpread)
}

// Compact is the CPUs node by node, in ascending numbers within a node.
func (t Topology) Compact() []CPU {
	cpus := make([]CPU, 0, t.NumCPUs())
	for i, n := range t.Nodes {
		for _, c := range n.CPUs {
			cpus = append(cpus, CPU{c, NodeID(i)})
		}
	}
	return cpus
}

// Spread is the CPUs round robin over the nodes: the first CPU of each node, then
// the second of each. A node that has no more is passed over.
func (t Topology) Spread() []CPU {
	cpus := make([]CPU, 0, t.NumCPUs())
	for k := 0; len(cpus) < cap(cpus); k++ {
		for i, n := range t.Nodes {
			if k < len(n.CPUs) {
				cpus = append(cpus, CPU{n.CPUs[k], NodeID(i)})
			}
		}
	}
	return cpus
}
