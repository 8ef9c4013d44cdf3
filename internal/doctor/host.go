package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"numaopt/internal/pmu"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// host is a machine's files.
type host struct{ root fs.FS }

// line is the first line of a file, "" where it cannot be read.
func (h host) line(name string) string {
	b, err := fs.ReadFile(h.root, name)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

// number is the number in a file; ok is false where there is none.
func (h host) number(name string) (n int, ok bool) {
	n, err := strconv.Atoi(h.line(name))
	return n, err == nil
}

func (r *Report) topology(h host) {
	t, err := topo.Read(h.root)
	if err != nil {
		r.add(Finding{"topology", Missing, err.Error(), "mount -t sysfs sysfs /sys"})
		return
	}
	r.Topology = &t
	var mem int64
	none := 0
	for _, n := range t.Nodes {
		mem += n.MemBytes
		if n.NoMemory {
			none++
		}
	}
	f := Finding{Name: "topology", State: OK, Text: count(len(t.Nodes), "node") + ", " + count(t.NumCPUs(), "CPU") + " (" + t.String() + ")"}
	if mem > 0 {
		f.Text += ", " + units.Bytes(mem).String()
	}
	if none > 0 {
		f.Text += fmt.Sprintf("; %s cannot hold pages", count(none, "node"))
	}
	if len(t.Nodes) == 1 {
		f.State = Note
		f.Text += ": nothing is remote here; profile and lab work with a named topology (4x2 by default)"
	}
	r.add(f)
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (h host) kernel() Finding {
	release := h.line("proc/sys/kernel/osrelease")
	if release == "" {
		return Finding{Name: "kernel", State: Note, Text: "/proc is not there: the kernel's release and settings are not known", Fix: "mount -t proc proc /proc"}
	}
	return Finding{Name: "kernel", State: OK, Text: h.line("proc/sys/kernel/ostype") + " " + release}
}

// cpuset compares what the machine has with what this process may use.
func (h host) cpuset(mine *topo.Topology) Finding {
	all, err := topo.ReadMachine(h.root)
	if err != nil || mine == nil {
		return Finding{}
	}
	if all.NumCPUs() == mine.NumCPUs() && nodesWithMemory(all) == nodesWithMemory(*mine) {
		return Finding{"cpuset", OK, "all CPUs and all nodes' memory may be used", ""}
	}
	return Finding{"cpuset", Note, fmt.Sprintf("this process may use %d of %d CPUs, memory of %d of %d nodes: profile, plan and apply take that for the machine",
		mine.NumCPUs(), all.NumCPUs(), nodesWithMemory(*mine), nodesWithMemory(all)), "taskset, docker --cpuset-cpus/--cpuset-mems or AllowedCPUs= of the unit decide that"}
}

func nodesWithMemory(t topo.Topology) int {
	n := 0
	for _, node := range t.Nodes {
		if !node.NoMemory {
			n++
		}
	}
	return n
}

// paranoid is about perf_event_open: 2 allows a user's own processes, user space
// only; Debian and others add 3 (and 4), which allow nothing.
func (h host) paranoid() Finding {
	level, ok := h.number("proc/sys/kernel/perf_event_paranoid")
	switch {
	case !ok:
		return Finding{"perf_event_paranoid", Note, "not there: this kernel has no perf events; emulation does not need them", ""}
	case level > 2:
		return Finding{"perf_event_paranoid", Note, fmt.Sprintf("%d: no perf events for unprivileged users; emulation does not need them", level),
			"sysctl kernel.perf_event_paranoid=2"}
	}
	return Finding{"perf_event_paranoid", OK, fmt.Sprintf("%d: own processes may be sampled in user space", level), ""}
}

// memoryEvents are the events whose samples carry a data address.
func (h host) memoryEvents(p Prober) Finding {
	const name = "memory events"
	m := pmu.Read(h.root)
	r, err := pmu.Choose(m, pmu.Options{})
	if err != nil {
		return Finding{name, Note, err.Error(), ""}
	}
	if err := m.Open(r, 0, p.PerfEventOpen); err != nil {
		return refused(name, err)
	}
	return Finding{name, OK, fmt.Sprintf("%s: profile --source pmu runs perf record %s", r.Kind, strings.Join(r.Select, " ")), ""}
}

// refused is an event that the kernel does not open, with the fix.
func refused(name string, err error) Finding {
	if open := (*pmu.OpenError)(nil); errors.As(err, &open) {
		fix := open.Fix
		open.Fix = ""
		return Finding{name, Limited, open.Error(), fix}
	}
	return Finding{name, Limited, err.Error(), ""}
}

// counters are what numaopt stat counts by.
func (h host) counters(p Prober) Finding {
	const name = "counters"
	m := pmu.Read(h.root)
	c, err := pmu.ChooseCounters(m)
	if err != nil {
		return Finding{name, Note, err.Error(), ""}
	}
	var names []string
	for _, e := range c.Events {
		fd, err := p.PerfEventOpen(m.ProgramAttr(&e), 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return refused(name, m.CounterError(&e, false, err))
		}
		unix.Close(fd)
		names = append(names, e.Name)
	}
	return Finding{name, OK, strings.Join(names, ", ") + ": " + c.What, ""}
}

// perf records page faults and the processor's samples.
func perf(ctx context.Context, p Prober) Finding {
	path, err := p.Path("perf")
	if err != nil {
		return Finding{"perf", Limited, "perf is not installed: profile --source pmu and faults need it", "apt-get install linux-perf (Ubuntu: linux-tools-$(uname -r))"}
	}
	line, err := p.Version(ctx, path)
	if err != nil {
		return Finding{"perf", Limited, fmt.Sprintf("%s: %v", path, err), "install the perf of this kernel (Ubuntu: linux-tools-$(uname -r))"}
	}
	return Finding{"perf", OK, line, ""}
}

func (h host) balancing() Finding {
	switch v, ok := h.number("proc/sys/kernel/numa_balancing"); {
	case !ok || v == 0:
		return Finding{"numa_balancing", OK, "off: pages stay where they are put", ""}
	default:
		return Finding{"numa_balancing", Note, "on: the kernel moves pages while the program runs; those that a plan places with a memory policy it leaves alone",
			"sysctl kernel.numa_balancing=0"}
	}
}

func (h host) hugePages() Finding {
	const name = "transparent huge pages"
	chosen := topo.HugePages(h.root)
	switch chosen {
	case "":
		return Finding{name, OK, "not in this kernel", ""}
	case "always":
		return Finding{name, Note, "always: first touch gives 2 MiB to one node; a plan finer than that makes the kernel split them",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"}
	}
	return Finding{name, OK, chosen, ""}
}

// mapCount bounds how finely pages can be placed: each run of pages with a policy
// of its own is a mapping.
func (h host) mapCount() Finding {
	n, ok := h.number("proc/sys/vm/max_map_count")
	if !ok {
		return Finding{}
	}
	f := Finding{"vm.max_map_count", OK, fmt.Sprintf("%d: a plan may use %d ranges of pages", n, n/4), ""}
	if n < 65530 {
		f.State, f.Fix = Limited, "sysctl vm.max_map_count=65530"
	}
	return f
}

// libnuma is what programs and numactl use; numaopt has no need of it.
func (h host) libnuma() Finding {
	for _, pattern := range []string{"usr/lib/*/libnuma.so.1", "usr/lib64/libnuma.so.1", "lib/*/libnuma.so.1", "usr/lib/libnuma.so.1"} {
		if m, _ := fs.Glob(h.root, pattern); len(m) > 0 {
			return Finding{"libnuma", OK, "/" + m[0] + " (for numactl and programs that use it; numaopt does not)", ""}
		}
	}
	return Finding{"libnuma", OK, "not installed; numaopt does not need it", ""}
}
