// Package topo describes machines: nodes, their CPUs, memory and distances,
// read from /sys or named by a string such as "4x2".
package topo

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
	Distances []int `json:"distances,omitempty"` // to each node of the topology, 10 is local; nil is not known
}

// Topology is a machine as numaopt sees it. Nodes without CPUs are kept.
type Topology struct {
	Nodes []Node `json:"nodes"`
}
