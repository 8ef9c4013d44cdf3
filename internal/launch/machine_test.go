package launch

import (
	"fmt"
	"math/bits"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

func TestMachine(t *testing.T) {
	for _, c := range []struct {
		topology, bind, planned string
		environ                 string
		want                    string // node of each rank, then the systems' nodes
		pinned, warning         string
	}{
		{topology: "4x2", want: "00112233 0123"},
		{topology: "4x2", bind: "spread", want: "01230123 0123"},
		{topology: "4x2", planned: "spread", want: "01230123 0123"},
		{topology: "4x2", planned: "spread", bind: "compact", want: "00112233 0123"},
		{topology: "2x4", want: "00001111 01", warning: "made for 4 nodes and is scaled to 2"},
		{topology: "1x4", want: "0000 0", warning: "one NUMA node"},
		{topology: "4x1", bind: "none", want: "0123 0123", pinned: "bind none"},
		{topology: "4x1", environ: "OMP_PROC_BIND=close OMP_PLACES=cores", want: "0123 0123", pinned: "OMP_PLACES=cores, OMP_PROC_BIND=close", warning: "binds the threads, not numaopt"},
		{topology: "4x1", environ: "OMP_PROC_BIND=false OMP_PLACES=cores", want: "0123 0123"},
	} {
		planned := c.planned
		if planned == "" {
			planned = "compact"
		}
		p := &plan.Plan{From: plan.From{Nodes: 4}, Threads: plan.Threads{Bind: planned}}
		opt := options(t, c.topology, "sh")
		opt.Bind, opt.Environ = c.bind, append(opt.Environ, strings.Fields(c.environ)...)
		res := resolve(t, p, opt)
		got := ""
		for _, cpu := range res.Run.CPUs {
			got += fmt.Sprint(cpu.Node)
		}
		got += " "
		for _, n := range res.Run.Nodes {
			got += fmt.Sprint(n)
		}
		if got != c.want || res.Run.Pinned != c.pinned {
			t.Errorf("%s %s: %s, pinned %q; want %s, %q", c.topology, c.bind, got, res.Run.Pinned, c.want, c.pinned)
		}
		if all := text(res.Warnings); (c.warning == "") != (all == "") || !strings.Contains(all, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.topology, all, c.warning)
		}
	}
}

func TestOddMachines(t *testing.T) {
	m := topo.Topology{Nodes: []topo.Node{
		{OS: 0, CPUs: []int{0, 1}, Distances: []int{10, 20, 15, 20}},
		{OS: 2, CPUs: []int{4, 5}, NoMemory: true, Distances: []int{20, 10, 30, 15}},
		{OS: 3, Distances: []int{15, 30, 10, 20}}, // memory alone
		{OS: 5, CPUs: []int{8}, Distances: []int{20, 15, 20, 10}},
	}}
	opt := options(t, "1x1", "sh")
	opt.Topology = m
	p := &plan.Plan{From: plan.From{Nodes: 3}, Threads: plan.Threads{Bind: "compact"}}
	res := resolve(t, p, opt)
	if d := cmp.Diff([]int{0, 5, 5}, res.Run.Nodes); d != "" {
		t.Errorf("nodes (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]runfile.CPU{{ID: 0, Node: 0}, {ID: 1, Node: 0}, {ID: 4, Node: 1}, {ID: 5, Node: 1}, {ID: 8, Node: 2}}, res.Run.CPUs); d != "" {
		t.Errorf("CPUs (-want +got):\n%s", d)
	}
	if !strings.Contains(text(res.Warnings), "node 2 has no memory: its pages go to node 5") {
		t.Errorf("warnings: %s", text(res.Warnings))
	}
}

// TestScaling holds scaling to its properties: nodes stay in range and in order,
// the same number of nodes changes nothing, fewer nodes lose no page.
func TestScaling(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		from, to := 1+rng.Intn(16), 1+rng.Intn(16)
		last := 0
		for n := range from {
			s := scale(n, from, to)
			if s < last || s >= to {
				t.Fatalf("node %d of %d is %d of %d", n, from, s, to)
			}
			if from == to && s != n {
				t.Fatalf("node %d of %d is %d", n, from, s)
			}
			last = s
		}
		var runs plan.Runs
		for range 1 + rng.Intn(8) {
			runs = append(runs, plan.Run{Node: rng.Intn(from+1) - 1, Count: 1 + rng.Intn(9)})
		}
		pages := 0
		for _, p := range scaleRuns(runs, from, to) {
			if p.Node >= to || p.Node < -1 {
				t.Fatalf("%v of %d: %+v of %d", runs, from, p, to)
			}
			pages += p.Count
		}
		if pages != runs.Len() {
			t.Fatalf("%v has %d pages, scaled %d", runs, runs.Len(), pages)
		}
		var nodes []int
		for n := range from {
			if rng.Intn(2) == 0 {
				nodes = append(nodes, n)
			}
		}
		m := mask(nodes, from, to)
		if m == 0 || m>>to != 0 {
			t.Fatalf("mask of %v of %d on %d is %#x", nodes, from, to, m)
		}
		if from == to && len(nodes) > 0 && bits.OnesCount64(m) != len(nodes) {
			t.Fatalf("mask of %v of %d is %#x", nodes, from, m)
		}
	}
	if d := cmp.Diff([]runfile.Pages{{Node: 0, Count: 2}, {Node: 1, Count: 3}, {Node: -1, Count: 4}, {Node: 3, Count: 1}}, scaleRuns(plan.Runs{{Node: 0, Count: 5}, {Node: -1, Count: 4}, {Node: 1, Count: 1}}, 2, 4)); d != "" {
		t.Errorf("runs of 2 nodes on 4 (-want +got):\n%s", d)
	}
	if m := mask([]int{1}, 2, 4); m != 0b1100 {
		t.Errorf("node 1 of 2 is %#b of 4", m)
	}
}

// TestBlocks: a round of blocks is as long on any number of nodes, or the object
// is left out by name.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		block    int // pages
		from, to int
		want     uint64 // bytes
	}{
		{1, 4, 4, 4096}, {1, 4, 2, 8192}, {6, 4, 8, 12288}, {3, 4, 3, 16384},
		{1, 4, 8, 0}, {1, 4, 3, 0}, {3, 2, 4, 0},
	} {
		var o runfile.Object
		d := plan.Distribution{Policy: plan.BlockCyclic, Block: units.Bytes(c.block) * units.PageSize}
		err := distribute(&o, d, c.from, c.to)
		if (err == nil) != (c.want > 0) || err == nil && o.Block != c.want || err != nil && !strings.Contains(err.Error(), "profile the program on this many") {
			t.Errorf("%+v: block %d, %v", c, o.Block, err)
		}
		for page := 0; err == nil && c.from%c.to == 0 && page < 64; page++ {
			was, is := d.Home(page, 64, c.from), uint64(page)*units.PageSize/o.Block%uint64(c.to)
			if int(is) != scale(was, c.from, c.to) {
				t.Errorf("%+v: page %d was on node %d of %d, and is on %d", c, page, was, c.from, is)
			}
		}
	}
}
