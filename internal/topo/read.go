package topo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

const (
	nodeDir = "sys/devices/system/node"
	cpuDir  = "sys/devices/system/cpu"
)

// Host is what this process may use of this machine.
func Host() (Topology, error) { return Read(os.DirFS("/")) }

// Read is what the process whose files root shows may use of the machine:
// ReadMachine, restricted to Cpus_allowed_list and Mems_allowed_list of
// proc/self/status. A node of which neither a CPU nor memory is left is dropped.
// root is laid out as "/".
func Read(root fs.FS) (Topology, error) {
	t, err := ReadMachine(root)
	if err != nil {
		return Topology{}, err
	}
	cpus, mems, err := allowed(root)
	if err != nil {
		return Topology{}, err
	}
	keep := make([]bool, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if cpus != nil {
			n.CPUs = slices.DeleteFunc(n.CPUs, func(c int) bool { return !slices.Contains(cpus, c) })
		}
		if mems != nil && !slices.Contains(mems, n.OS) {
			n.NoMemory = true
		}
		keep[i] = len(n.CPUs) > 0 || !n.NoMemory
	}
	t = t.only(keep)
	if err := t.Check(); err != nil {
		return Topology{}, fmt.Errorf("cpuset (cpus %s, mems %s): %w", FormatList(cpus), FormatList(mems), err)
	}
	return t, nil
}

// HugePages is when the kernel makes huge pages unasked: "always", "madvise" or
// "never"; empty where it has none. root is laid out as "/".
func HugePages(root fs.FS) string {
	line, _ := fs.ReadFile(root, "sys/kernel/mm/transparent_hugepage/enabled")
	_, chosen, _ := strings.Cut(string(line), "[")
	chosen, _, _ = strings.Cut(chosen, "]")
	return chosen
}

// ReadMachine is all online nodes and CPUs, whoever may use them. A kernel
// without NUMA has no node directory: that is one node.
func ReadMachine(root fs.FS) (Topology, error) {
	cpus, err := readList(root, cpuDir+"/online")
	if errors.Is(err, fs.ErrNotExist) {
		return Topology{}, fmt.Errorf("%s is not there: is /sys mounted?", "/"+cpuDir)
	}
	if err != nil {
		return Topology{}, err
	}
	nodes, err := readList(root, nodeDir+"/online")
	if errors.Is(err, fs.ErrNotExist) {
		t := Topology{Nodes: []Node{{CPUs: cpus, MemBytes: memTotal(root, "proc/meminfo")}}}
		return t, t.Check()
	}
	if err != nil {
		return Topology{}, err
	}
	t := Topology{Nodes: make([]Node, 0, len(nodes))}
	for _, os := range nodes {
		n, err := readNode(root, os, cpus)
		if err != nil {
			return Topology{}, err
		}
		t.Nodes = append(t.Nodes, n)
	}
	return t, t.Check()
}

// readNode reads node os. Offline CPUs are in no node's cpulist on most kernels;
// online decides where one is.
func readNode(root fs.FS, os int, online []int) (Node, error) {
	dir := fmt.Sprintf("%s/node%d", nodeDir, os)
	n := Node{OS: os, MemBytes: memTotal(root, dir+"/meminfo")}
	cpus, err := readList(root, dir+"/cpulist")
	if err != nil {
		return Node{}, err
	}
	n.CPUs = slices.DeleteFunc(cpus, func(c int) bool { return !slices.Contains(online, c) })
	if mem, err := readList(root, nodeDir+"/has_memory"); err == nil {
		n.NoMemory = !slices.Contains(mem, os)
	}
	b, err := fs.ReadFile(root, dir+"/distance")
	if err != nil {
		return n, nil // older kernels, containers that hide it
	}
	for _, f := range strings.Fields(string(b)) {
		d, err := strconv.Atoi(f)
		if err != nil {
			return Node{}, fmt.Errorf("%s/distance: %q is not a number", dir, f)
		}
		n.Distances = append(n.Distances, d)
	}
	return n, nil
}

// only keeps the nodes marked, and the distances between them.
func (t Topology) only(keep []bool) Topology {
	var out Topology
	for i, n := range t.Nodes {
		if !keep[i] {
			continue
		}
		if len(n.Distances) == len(keep) {
			var d []int
			for j, v := range n.Distances {
				if keep[j] {
					d = append(d, v)
				}
			}
			n.Distances = d
		}
		out.Nodes = append(out.Nodes, n)
	}
	return out
}

// allowed is the process's cpuset and affinity; nil where status does not say.
func allowed(root fs.FS) (cpus, mems []int, err error) {
	b, err := fs.ReadFile(root, "proc/self/status")
	if err != nil {
		return nil, nil, nil // a recorded tree may lack it
	}
	for _, line := range strings.Split(string(b), "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch name {
		case "Cpus_allowed_list":
			cpus, err = ParseList(value)
		case "Mems_allowed_list":
			mems, err = ParseList(value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("/proc/self/status: %s: %w", name, err)
		}
	}
	return cpus, mems, nil
}

func readList(root fs.FS, name string) ([]int, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	list, err := ParseList(string(b))
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", name, err)
	}
	return list, nil
}

// memTotal is the MemTotal of a meminfo file in bytes, 0 where it cannot be read.
func memTotal(root fs.FS, name string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Fields(line) // "Node 0 MemTotal:  1024 kB" or "MemTotal:  1024 kB"
		for i, w := range f {
			if w == "MemTotal:" && i+1 < len(f) {
				kib, _ := strconv.ParseInt(f[i+1], 10, 53)
				return kib << 10
			}
		}
	}
	return 0
}
