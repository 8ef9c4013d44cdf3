package topo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FakeSysfs writes the files below dir in which a program looks for its machine,
// as Linux would show t: sys/devices/system/{cpu,node} and proc/cpuinfo. An
// emulated program is given them in the place of the host's. A node whose memory
// is not known gets 1 GiB. Existing files are overwritten.
func FakeSysfs(dir string, t Topology) error {
	if err := t.Check(); err != nil {
		return err
	}
	files := map[string]string{}
	t.cpuFiles(files)
	t.nodeFiles(files)
	files["proc/cpuinfo"] = t.cpuinfo()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (t Topology) cpuFiles(files map[string]string) {
	last, all := 0, []int{}
	for c := 0; c < 1<<16 && len(all) < t.NumCPUs(); c++ {
		if t.NodeOf(c) != Unknown {
			all, last = append(all, c), c
		}
	}
	for _, name := range []string{"online", "possible", "present"} {
		files[cpuDir+"/"+name] = FormatList(all) + "\n"
	}
	files[cpuDir+"/kernel_max"] = fmt.Sprintln(last)
	files[cpuDir+"/offline"] = "\n"
	for i, n := range t.Nodes {
		for core, c := range n.CPUs {
			d := fmt.Sprintf("%s/cpu%d/", cpuDir, c)
			files[d+"online"] = "1\n"
			files[d+"topology/physical_package_id"] = fmt.Sprintln(i)
			files[d+"topology/core_id"] = fmt.Sprintln(core)
			for _, one := range []string{"thread_siblings", "core_cpus"} {
				files[d+"topology/"+one] = formatMask([]int{c}, last) + "\n"
				files[d+"topology/"+one+"_list"] = fmt.Sprintln(c)
			}
			for _, pkg := range []string{"core_siblings", "package_cpus"} {
				files[d+"topology/"+pkg] = formatMask(n.CPUs, last) + "\n"
				files[d+"topology/"+pkg+"_list"] = FormatList(n.CPUs) + "\n"
			}
			// The kernel has a link here; readers only look whether it is there.
			files[fmt.Sprintf("%snode%d/cpulist", d, n.OS)] = FormatList(n.CPUs) + "\n"
		}
	}
}

func (t Topology) nodeFiles(files map[string]string) {
	var all, memory, cpu []int
	lastCPU := 0
	for _, n := range t.Nodes {
		all = append(all, n.OS)
		if !n.NoMemory {
			memory = append(memory, n.OS)
		}
		if len(n.CPUs) > 0 {
			cpu = append(cpu, n.OS)
			lastCPU = max(lastCPU, n.CPUs[len(n.CPUs)-1])
		}
	}
	for name, list := range map[string][]int{"online": all, "possible": all, "has_cpu": cpu, "has_memory": memory, "has_normal_memory": memory} {
		files[nodeDir+"/"+name] = FormatList(list) + "\n"
	}
	for i, n := range t.Nodes {
		d := fmt.Sprintf("%s/node%d/", nodeDir, n.OS)
		files[d+"cpulist"] = FormatList(n.CPUs) + "\n"
		files[d+"cpumap"] = formatMask(n.CPUs, lastCPU) + "\n"
		dist := make([]string, len(t.Nodes))
		for j := range dist {
			dist[j] = fmt.Sprint(t.Distance(NodeID(i), NodeID(j)))
		}
		files[d+"distance"] = strings.Join(dist, " ") + "\n"
		files[d+"meminfo"] = meminfo(n)
	}
}

// meminfo mirrors node_read_meminfo in drivers/base/node.c, as far as libnuma and
// numactl read it.
func meminfo(n Node) string {
	kib := n.MemBytes >> 10
	if kib == 0 && !n.NoMemory {
		kib = 1 << 20
	}
	var b strings.Builder
	for _, line := range []struct {
		name string
		kib  int64
	}{{"MemTotal", kib}, {"MemFree", kib}, {"MemUsed", 0}} {
		fmt.Fprintf(&b, "Node %d %s: %15d kB\n", n.OS, line.name, line.kib)
	}
	return b.String()
}

// cpuinfo has the fields by which OpenMP runtimes find packages and cores.
func (t Topology) cpuinfo() string {
	var b strings.Builder
	for i, n := range t.Nodes {
		for core, c := range n.CPUs {
			fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: numaopt emulated CPU\n", c)
			fmt.Fprintf(&b, "physical id\t: %d\nsiblings\t: %d\ncore id\t\t: %d\ncpu cores\t: %d\n", i, len(n.CPUs), core, len(n.CPUs))
			fmt.Fprintf(&b, "apicid\t\t: %d\ninitial apicid\t: %d\n\n", c, c)
		}
	}
	return b.String()
}

// formatMask prints a CPU mask as the kernel does: groups of 32 bits in
// hexadecimal, the highest first, enough for CPU last.
func formatMask(cpus []int, last int) string {
	words := make([]uint32, last/32+1)
	for _, c := range cpus {
		words[c/32] |= 1 << (c % 32)
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[len(words)-1-i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(parts, ",")
}
