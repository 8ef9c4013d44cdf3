package lab

import (
	"fmt"
	"math"

	"numaopt/internal/topo"
)

// Result is what `numaopt lab --json` prints.
type Result struct {
	Command      []string        `json:"command"`
	Topology     string          `json:"topology"`
	Bind         string          `json:"bind"`
	Kernel       string          `json:"kernel"`
	THP          string          `json:"transparent_hugepage"`
	Balancing    bool            `json:"numa_balancing"`
	MemoryBytes  int64           `json:"memory_bytes"`
	Caches       topo.CacheModel `json:"caches"`
	Window       string          `json:"window"` // what is counted
	Only         []string        `json:"only,omitempty"`
	Plan         string          `json:"plan,omitempty"`
	FilesWritten int             `json:"files_written"` // on the host, from the last run
	FilesDeleted int             `json:"files_deleted"`
	FilesLost    int             `json:"files_lost"` // could not be brought back
	Warnings     []string        `json:"warnings"`
	Runs         []RunResult     `json:"runs"`
}

// RunResult is one run. Percentages are null where nothing was counted that they
// could be of.
type RunResult struct {
	Name            string   `json:"name"`
	RemoteDRAMPct   *float64 `json:"remote_dram_pct"`   // of DRAM accesses with a known home
	RemoteAccessPct *float64 `json:"remote_access_pct"` // of all accesses with a known home
	// Matrix[i][j] is DRAM accesses by CPUs of node i to memory of node j.
	Matrix [][]uint64 `json:"matrix"`
	// AccessMatrix is the same of all accesses, L1 hits included.
	AccessMatrix [][]uint64 `json:"access_matrix"`
	// OnPlanPct is the share of the planned objects' touched pages that were where
	// the plan wants them when they were freed, or at exit; null without a plan.
	OnPlanPct *float64 `json:"on_plan_pct"`

	Accesses     uint64 `json:"accesses"`
	Loads        uint64 `json:"loads"`
	Stores       uint64 `json:"stores"`
	L1Hits       uint64 `json:"l1_hits"`
	L2Hits       uint64 `json:"l2_hits"`
	LLCHits      uint64 `json:"llc_hits"`
	DRAMAccesses uint64 `json:"dram_accesses"`
	Unknown      uint64 `json:"unknown"` // accesses outside the nodes' memory
	// Imbalance is the busiest node's DRAM accesses over the mean.
	Imbalance *float64 `json:"controller_imbalance"`
	Windows   uint64   `json:"windows"` // how often counting began

	Pages []Page `json:"-"` // with Options.Pages, in no order

	Status      int      `json:"status"` // 128 + signal where it was killed
	Seconds     float64  `json:"seconds"`
	OOMKills    int      `json:"oom_kills"`
	StdoutBytes int64    `json:"stdout_bytes"`
	StdoutSame  bool     `json:"stdout_same"` // as the first run's, byte for byte
	Objects     []Object `json:"objects,omitempty"`
	Threads     int      `json:"threads,omitempty"` // that the runtime saw
	Warnings    []string `json:"warnings,omitempty"`
}

// Object is one object of the plan, as the runtime found it in a run.
type Object struct {
	ID        int    `json:"id"`
	Name      string `json:"name"`
	Instances int64  `json:"instances"`
	Pages     int64  `json:"pages"`
	Touched   int64  `json:"touched"`
	OnPlan    int64  `json:"on_plan"`
	Moved     int64  `json:"moved"`
	Recycled  int64  `json:"recycled"`
	// OnPlanPct is OnPlan in per cent of Touched; null where nothing was touched.
	OnPlanPct *float64 `json:"on_plan_pct"`
}

// count fills in what the plugin counted.
func (r *RunResult) count(c *counts, nodes, cpus int) {
	r.Windows, r.Loads, r.Stores, r.Unknown, r.Pages = c.opened, c.loads, c.stores, c.unknown, c.pages
	r.Matrix, r.AccessMatrix = square(nodes), square(nodes)
	home := make([]uint64, nodes)
	var local, localDRAM uint64
	for _, e := range c.cells {
		node := e.cpu / cpus
		if node >= nodes || e.home >= nodes {
			continue
		}
		all := e.l1 + e.l2 + e.llc + e.dram
		r.L1Hits += e.l1
		r.L2Hits += e.l2
		r.LLCHits += e.llc
		r.DRAMAccesses += e.dram
		r.Accesses += all
		r.Matrix[node][e.home] += e.dram
		r.AccessMatrix[node][e.home] += all
		home[e.home] += e.dram
		if node == e.home {
			local += all
			localDRAM += e.dram
		}
	}
	r.RemoteAccessPct = percentOf(r.Accesses-local, r.Accesses)
	r.RemoteDRAMPct = percentOf(r.DRAMAccesses-localDRAM, r.DRAMAccesses)
	r.Accesses += r.Unknown
	if r.DRAMAccesses > 0 {
		var most uint64
		for _, n := range home {
			most = max(most, n)
		}
		v := float64(most) * float64(nodes) / float64(r.DRAMAccesses)
		r.Imbalance = &v
	}
}

func square(n int) [][]uint64 {
	m := make([][]uint64, n)
	for i := range m {
		m[i] = make([]uint64, n)
	}
	return m
}

// percentOf is part in per cent of whole, nil where whole is 0.
func percentOf(part, whole uint64) *float64 {
	if whole == 0 {
		return nil
	}
	v := 100 * float64(part) / float64(whole)
	return &v
}

// Status is the last run's exit status, and where that is 0 the first other one;
// 1 where only a file that the program wrote is missing on the host.
func (r *Result) Status() int {
	for i := len(r.Runs) - 1; i >= 0; i-- {
		if s := r.Runs[i].Status; s != 0 {
			return s
		}
	}
	return min(r.FilesLost, 1)
}

// CheckSelfTest compares the runs of the self-test with what they must give, to
// half a point: the rest is the threads' own stacks and the barriers.
func CheckSelfTest(r *Result) error {
	nodes := 0
	if len(r.Runs) > 0 {
		nodes = len(r.Runs[0].Matrix)
	}
	other := 100 * float64(nodes-1) / float64(max(nodes, 1))
	next := 100.0
	if nodes == 1 {
		next = 0
	}
	want := map[string]float64{"all-on-node-0": other, "moved-to-users": 0, "next-node": next, "interleaved": other}
	for _, run := range r.Runs {
		got := run.RemoteDRAMPct
		switch {
		case run.Status != 0:
			return fmt.Errorf("self-test %s: status %d", run.Name, run.Status)
		case got == nil:
			return fmt.Errorf("self-test %s: nothing was counted", run.Name)
		case math.Abs(*got-want[run.Name]) > 0.5:
			return fmt.Errorf("self-test %s: %.2f %% of DRAM accesses are remote, must be %.2f %%", run.Name, *got, want[run.Name])
		}
	}
	return nil
}
