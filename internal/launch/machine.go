package launch

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// machine fills in the run's nodes and CPUs. The nodes of a run are those with
// CPUs, as threads are where a plan wants pages; one without memory stands for
// the nearest that has some.
func (res *Result) machine(p *plan.Plan, opt Options) error {
	bind := bindOf(p, opt)
	order := topo.BindCompact
	switch bind {
	case "compact", "spread":
		order = topo.Bind(bind)
	case "none":
		res.Run.Pinned = "bind none"
	default:
		return fmt.Errorf("bind %q is not compact, spread or none", bind)
	}
	cpus, err := opt.Topology.Order(order)
	if err != nil {
		return err
	}
	t := opt.Topology
	ordinal := make([]int, len(t.Nodes))
	for i, n := range t.Nodes {
		if len(n.CPUs) == 0 && opt.System != runfile.Emulated { // the emulator counts all nodes
			ordinal[i] = -1
			continue
		}
		ordinal[i] = len(res.Run.Nodes)
		home := nearestMemory(t, topo.NodeID(i))
		if home != topo.NodeID(i) {
			res.warn("node %d has no memory: its pages go to node %d", n.OS, t.Nodes[home].OS)
		}
		res.Run.Nodes = append(res.Run.Nodes, t.Nodes[home].OS)
	}
	for _, c := range cpus {
		res.Run.CPUs = append(res.Run.CPUs, runfile.CPU{ID: c.ID, Node: ordinal[c.Node]})
	}
	if len(res.Run.Nodes) == 0 {
		return fmt.Errorf("no node with a CPU that this process may use")
	}
	if pinned := Pinned(opt.Environ); pinned != "" {
		res.Run.Pinned = pinned
		res.warn("%s binds the threads, not numaopt: the plan expects them %s", pinned, bind)
	}
	if n := len(res.Run.Nodes); n > 1 && n != p.From.Nodes {
		res.warn("the plan was made for %d nodes and is scaled to %d", p.From.Nodes, n)
	}
	return nil
}

// nearestMemory returns the node nearest to n that has memory, n itself if it has.
func nearestMemory(t topo.Topology, n topo.NodeID) topo.NodeID {
	best := n
	for i, node := range t.Nodes {
		at := topo.NodeID(i)
		if node.NoMemory {
			continue
		}
		if t.Nodes[best].NoMemory || t.Distance(n, at) < t.Distance(n, best) {
			best = at
		}
	}
	return best
}

// Pinned returns the settings of environ by which an OpenMP runtime binds
// threads itself, empty if there is none.
func Pinned(environ []string) string {
	off := []string{"", "false", "none", "disabled"}
	var out []string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY":
			if !slices.Contains(off, strings.ToLower(strings.TrimSpace(value))) {
				out = append(out, kv)
			}
		}
	}
	if slices.ContainsFunc(environ, func(kv string) bool { return strings.EqualFold(kv, "OMP_PROC_BIND=false") }) {
		// It switches OMP_PLACES off, too (OpenMP 5.1, 6.4).
		out = slices.DeleteFunc(out, func(kv string) bool { return strings.HasPrefix(kv, "OMP_PLACES=") })
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// distribute sets the policy of o for a machine of to nodes; d was made for from
// nodes. Node n becomes n*to/from; relative distributions stay as they are, and
// a round of blocks stays as long as it is.
func distribute(o *runfile.Object, d plan.Distribution, from, to int) error {
	if from < 1 {
		from = to
	}
	if to > 64 {
		return fmt.Errorf("%d nodes: numaopt places on 64 at most", to)
	}
	o.Policy = runfile.Policy(d.Policy)
	switch d.Policy {
	case plan.Bind:
		o.Node = scale(d.Node, from, to)
	case plan.Interleave:
		o.Mask = mask(d.Nodes, from, to)
	case plan.BlockCyclic:
		round := uint64(d.Block) * uint64(from)
		if o.Block = round / uint64(to); o.Block*uint64(to) != round || o.Block%units.PageSize != 0 {
			return fmt.Errorf("its blocks of %v for %d nodes cannot be cut at pages for %d: profile the program on this many", d.Block, from, to)
		}
	case plan.XWise:
	case plan.Pages:
		o.Map = scaleRuns(d.Map, from, to)
	default:
		return fmt.Errorf("policy %q is not known to this numaopt", d.Policy)
	}
	return nil
}

// scale maps node n of from to one of to nodes.
func scale(n, from, to int) int { return min(max(n, 0)*to/from, to-1) }

// mask is the node mask of nodes (nil is all), each standing for all the nodes
// that it is split into.
func mask(nodes []int, from, to int) uint64 {
	var m uint64
	if len(nodes) == 0 {
		for n := range to {
			m |= 1 << n
		}
		return m
	}
	for _, n := range nodes {
		first := scale(n, from, to)
		for k := first; k < to && (k == first || k < (n+1)*to/from); k++ {
			m |= 1 << k
		}
	}
	return m
}

// scaleRuns maps the nodes of a page map; neighbouring runs that meet on a node
// are joined. Where a node becomes several, its runs are cut into as many parts.
func scaleRuns(runs plan.Runs, from, to int) []runfile.Pages {
	var out []runfile.Pages
	for _, r := range runs {
		if r.Node < 0 {
			out = appendRun(out, -1, r.Count)
			continue
		}
		first := scale(r.Node, from, to)
		parts := max(1, (r.Node+1)*to/from-first)
		for k := range parts {
			out = appendRun(out, first+k, (k+1)*r.Count/parts-k*r.Count/parts)
		}
	}
	return out
}

// touched turns the plan's runs of touched pages into the run file's.
func touched(runs plan.Runs) []runfile.Pages {
	var out []runfile.Pages
	for _, r := range runs {
		node := 1
		if r.Node < 0 {
			node = -1
		}
		out = appendRun(out, node, r.Count)
	}
	return out
}

// appendRun appends a run, to the last one where it has the same node.
func appendRun(out []runfile.Pages, node, count int) []runfile.Pages {
	if count == 0 {
		return out
	}
	if n := len(out); n > 0 && out[n-1].Node == node {
		out[n-1].Count += count
		return out
	}
	return append(out, runfile.Pages{Node: node, Count: count})
}
