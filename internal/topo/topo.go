// Package topo describes machines: nodes, their CPUs, memory and distances,
// read from /sys or named by a string such as "4x2".
//
// # Input
//
// A file system with sys/devices/system/{node,cpu} and proc/self/status, the
// host's or a recorded one, or a string.
//
// # Output
//
// A Topology: what this process may use of the machine, nodes in the order of
// the operating system's numbers.
//
// # Limits
//
// Memory tiers and HMAT are not read: distances are the SLIT's.
package topo

import (
	"fmt"
	"strings"
)

// NodeID is the ordinal of a node in a Topology: 0 <= id < len(Nodes). It is not
// the operating system's number, which may be sparse; that is Node.OS.
type NodeID int

// Unknown is the home of a page whose node nobody knows.
const Unknown NodeID = -1

// Node is one NUMA node.
type Node struct {
	OS        int   `json:"os"`                  // the operating system's node number
	CPUs      []int `json:"cpus"`                // the operating system's CPU numbers, ascending
	MemBytes  int64 `json:"mem_bytes,omitempty"` // 0 is not known
	NoMemory  bool  `json:"no_memory,omitempty"` // no page can have its home here: none is installed, or the cpuset forbids it
	Distances []int `json:"distances,omitempty"` // to each node of the topology, 10 is local; nil is not known
}

// Topology is a machine as numaopt sees it. Nodes without CPUs are kept.
type Topology struct {
	Nodes []Node `json:"nodes"`
}

// CPU is one place for a thread.
type CPU struct {
	ID   int    // the operating system's CPU number
	Node NodeID // its node
}

// NumCPUs is the number of CPUs of all nodes.
func (t Topology) NumCPUs() int {
	n := 0
	for _, node := range t.Nodes {
		n += len(node.CPUs)
	}
	return n
}

// NodeOf is the node of an operating system's CPU number, Unknown if the
// topology does not have that CPU.
func (t Topology) NodeOf(cpu int) NodeID {
	for i, node := range t.Nodes {
		for _, c := range node.CPUs {
			if c == cpu {
				return NodeID(i)
			}
		}
	}
	return Unknown
}

// ByOS is the ordinal of the operating system's node number os, Unknown if the
// topology does not have it.
func (t Topology) ByOS(os int) NodeID {
	for i, node := range t.Nodes {
		if node.OS == os {
			return NodeID(i)
		}
	}
	return Unknown
}

// Distance is the SLIT distance from a to b: as recorded, else 10 for a == b and
// 20, the firmware's usual default, for two nodes.
func (t Topology) Distance(a, b NodeID) int {
	if d := t.Nodes[a].Distances; int(b) < len(d) {
		return d[b]
	}
	if a == b {
		return 10
	}
	return 20
}

// String names the topology: "4x2" where Parse could have made it up to the
// numbering, otherwise the CPUs of each node, "cpus 0-3 | 4-5 | none".
func (t Topology) String() string {
	if t.regular() {
		return fmt.Sprintf("%dx%d", len(t.Nodes), len(t.Nodes[0].CPUs))
	}
	parts := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		parts[i] = FormatList(n.CPUs)
		if len(n.CPUs) == 0 {
			parts[i] = "none"
		}
		if n.NoMemory {
			parts[i] += " (no memory)"
		}
	}
	return "cpus " + strings.Join(parts, " | ")
}

// regular reports whether every node has memory and the same number of CPUs.
func (t Topology) regular() bool {
	if len(t.Nodes) == 0 {
		return false
	}
	for _, n := range t.Nodes {
		if n.NoMemory || len(n.CPUs) == 0 || len(n.CPUs) != len(t.Nodes[0].CPUs) {
			return false
		}
	}
	return true
}

// Check reports the first broken invariant: at least one node and one CPU, no
// number twice, distances to every node or to none.
func (t Topology) Check() error {
	if len(t.Nodes) == 0 || t.NumCPUs() == 0 {
		return fmt.Errorf("topology has %d nodes and %d CPUs", len(t.Nodes), t.NumCPUs())
	}
	nodes, cpus := map[int]bool{}, map[int]bool{}
	for i, n := range t.Nodes {
		if n.OS < 0 || nodes[n.OS] {
			return fmt.Errorf("node %d: number %d is negative or there twice", i, n.OS)
		}
		nodes[n.OS] = true
		if len(n.Distances) != 0 && len(n.Distances) != len(t.Nodes) {
			return fmt.Errorf("node %d: %d distances for %d nodes", i, len(n.Distances), len(t.Nodes))
		}
		for _, c := range n.CPUs {
			if c < 0 || cpus[c] {
				return fmt.Errorf("node %d: CPU %d is negative or there twice", i, c)
			}
			cpus[c] = true
		}
	}
	return nil
}
