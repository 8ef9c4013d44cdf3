// Package probe measures what a load from each node's memory costs a CPU of each
// node, and how much memory a node's CPUs can read in a second.
//
// # Input
//
// The machine's nodes, and its /sys for sizes and for what its firmware claims.
//
// # Output
//
// A Table: latency and bandwidth by node of the CPU and node of the memory.
//
// # Method
//
// A buffer of several times the last cache is placed on a node and asked for where
// it is. A thread on a CPU of another follows a chain through all of its lines in
// random order, in which each load's address is the one before it; the median of
// some passes is the latency. For bandwidth, all CPUs of the node read it in order.
//
// # Limits
//
// An idle machine is assumed: loads by others add to latency and take of the
// bandwidth. Where the kernel gives no huge pages, latencies have page walks in them.
package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Pair is what CPUs of a node see of a node's memory.
type Pair struct {
	From   int     `json:"cpu_node"` // the operating system's numbers
	To     int     `json:"memory_node"`
	NS     float64 `json:"latency_ns"` // of a load; 0 is not known
	GBs    float64 `json:"gb_per_s"`   // 10^9 bytes read a second, by all CPUs of the node
	Source string  `json:"source"`     // "measured" or "HMAT"
	// HMAT is what the firmware says, where it does: of a node's nearest CPUs.
	HMAT *HMAT `json:"hmat,omitempty"`
}

// HMAT is a line of the firmware's table, as the kernel gives it.
type HMAT struct {
	NS  float64 `json:"latency_ns"`
	GBs float64 `json:"gb_per_s"`
}

// Table is all pairs: first by CPUs' node, then by memory's, both ascending. Nodes
// without CPUs have no rows of their own, nodes without memory no columns.
type Table struct {
	Pairs    []Pair      `json:"pairs"`
	Buffer   units.Bytes `json:"buffer_bytes"`
	Huge     bool        `json:"huge_pages"` // all of the buffers were of huge pages
	Warnings []string    `json:"warnings"`
}

// Options say what to measure.
type Options struct {
	Machine topo.Topology
	Root    fs.FS // "/" of the machine
	// Stop ends the measuring after the pair at hand.
	Stop <-chan struct{}
	// Progress is told before each pair, how many are done and of how many; nil is none.
	Progress func(from, to, done, all int)
}

// buffer is how much is read: four times what the last caches of a node hold, so that
// no line is still there when it comes again, but no more than a quarter of what a
// node has to give. short is why that is too little to measure memory by, if it is.
func (opt *Options) buffer() (size units.Bytes, short error) {
	const least, most = 64 * units.MiB, 4 * units.GiB
	var caches units.Bytes
	for _, n := range opt.Machine.Nodes {
		caches = max(caches, lastCaches(opt.Root, n.CPUs))
	}
	size = max(least, min(most, 4*caches))
	for _, n := range opt.Machine.Nodes {
		if room := nodeRoom(opt.Root, n.OS); room > 0 && !n.NoMemory {
			size = min(size, max(2*units.MiB, room/4))
		}
	}
	if size &^= 2*units.MiB - 1; size < 2*caches {
		short = fmt.Errorf("the buffer of %v, a quarter of what the fullest node has free, is less than twice the last caches (%v): loads are served by these in part", size, caches)
	}
	return size, short
}

// lastCaches is the size of the last caches of these CPUs together; 0 is not known.
func lastCaches(root fs.FS, cpus []int) (sum units.Bytes) {
	seen := map[string]bool{} // by the CPUs that share one
	for _, cpu := range cpus {
		dirs, _ := fs.Glob(root, fmt.Sprintf("sys/devices/system/cpu/cpu%d/cache/index*", cpu)) // sorted: the last is the last level
		if len(dirs) == 0 {
			continue
		}
		dir := dirs[len(dirs)-1]
		size, err := units.ParseBytes(line(root, dir+"/size"))
		if shared := line(root, dir+"/shared_cpu_list"); err == nil && !seen[shared] {
			seen[shared] = true
			sum += size
		}
	}
	return sum
}

// nodeRoom is what a node has free, and the pages of files, which the kernel gives up;
// 0 is not known.
func nodeRoom(root fs.FS, node int) units.Bytes {
	info, _ := fs.ReadFile(root, fmt.Sprintf("sys/devices/system/node/node%d/meminfo", node))
	kib := func(name string) (n int64) {
		_, rest, _ := strings.Cut(string(info), " "+name+":")
		fmt.Sscanf(rest, "%d kB", &n) //nolint:errcheck // 0 is not known
		return n
	}
	return units.Bytes(kib("MemFree")+kib("Active(file)")+kib("Inactive(file)")) * units.KiB
}

func line(root fs.FS, name string) string {
	b, _ := fs.ReadFile(root, name)
	return strings.TrimSpace(string(b))
}

// firmware is what HMAT says of node to's memory and its nearest CPUs, if node from
// has those (Documentation/admin-guide/mm/numaperf.rst: nanoseconds, and MiB a second).
func firmware(root fs.FS, from, to int) *HMAT {
	dir := fmt.Sprintf("sys/devices/system/node/node%d/access0/initiators", to)
	if _, err := fs.Stat(root, path.Join(dir, fmt.Sprintf("node%d", from))); err != nil {
		return nil
	}
	ns, err1 := strconv.ParseFloat(line(root, dir+"/read_latency"), 64)
	mibs, err2 := strconv.ParseFloat(line(root, dir+"/read_bandwidth"), 64)
	if err1 != nil || err2 != nil || ns <= 0 {
		return nil
	}
	return &HMAT{ns, mibs * (1 << 20) / 1e9}
}

// New measures all pairs. A pair that cannot be measured has the firmware's figures,
// or none and a warning; one that is measured in part in caches has the firmware's if
// it gives any.
func New(opt Options) (*Table, error) {
	size, short := opt.buffer()
	t := &Table{Buffer: size, Huge: true, Warnings: []string{}}
	if short != nil {
		t.Warnings = append(t.Warnings, short.Error())
	}
	all := len(withCPUs(opt.Machine)) * len(withMemory(opt.Machine))
	if all == 0 {
		return nil, fmt.Errorf("no node has CPUs, or none has memory")
	}
	chain := newChain(t.Buffer)
	for _, to := range withMemory(opt.Machine) {
		b, err := chain.place(t.Buffer, to.OS)
		for _, from := range withCPUs(opt.Machine) {
			select {
			case <-opt.Stop:
				b.free()
				return nil, fmt.Errorf("stopped")
			default:
			}
			if opt.Progress != nil {
				opt.Progress(from.OS, to.OS, len(t.Pairs), all)
			}
			p := Pair{From: from.OS, To: to.OS, Source: "measured", HMAT: firmware(opt.Root, from.OS, to.OS)}
			failed := err
			if failed == nil && p.HMAT != nil {
				failed = short
			}
			if failed == nil {
				p.NS, p.GBs, failed = b.measure(from.CPUs)
			}
			if failed != nil {
				t.Warnings = append(t.Warnings, p.instead(failed))
			}
			t.Pairs = append(t.Pairs, p)
		}
		if b != nil {
			t.Huge = t.Huge && b.huge()
			b.free()
		}
	}
	if !t.Huge {
		t.Warnings = append(t.Warnings, "the kernel gave no huge pages: latencies have page walks in them (echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)")
	}
	sortPairs(t.Pairs)
	return t, nil
}

// instead takes the firmware's figures for a pair that could not be measured.
func (p *Pair) instead(why error) (warning string) {
	p.NS, p.GBs, p.Source = 0, 0, ""
	if p.HMAT != nil {
		p.NS, p.GBs, p.Source = p.HMAT.NS, p.HMAT.GBs, "HMAT"
	}
	return fmt.Sprintf("node %d to memory of node %d: %v", p.From, p.To, why)
}

func withCPUs(m topo.Topology) (out []topo.Node) {
	for _, n := range m.Nodes {
		if len(n.CPUs) > 0 {
			out = append(out, n)
		}
	}
	return out
}

func withMemory(m topo.Topology) (out []topo.Node) {
	for _, n := range m.Nodes {
		if !n.NoMemory {
			out = append(out, n)
		}
	}
	return out
}

// ReadFile reads what WriteJSON wrote.
func ReadFile(name string) (*Table, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t := &Table{}
	if err := json.Unmarshal(text, t); err != nil || len(t.Pairs) == 0 {
		return nil, fmt.Errorf("%s: not what numaopt doctor --latency --json prints", name)
	}
	return t, nil
}

// Ratios is how many times the least latency of a node's CPUs a load from each node's
// memory takes, by [from*nodes+to] of m. The error is a pair without a latency.
func (t *Table) Ratios(m topo.Topology) ([]float64, error) {
	n := len(m.Nodes)
	ns, least := make([]float64, n*n), make([]float64, n)
	for _, p := range t.Pairs {
		from, to := m.ByOS(p.From), m.ByOS(p.To)
		if from == topo.Unknown || to == topo.Unknown || p.NS <= 0 {
			continue
		}
		ns[int(from)*n+int(to)] = p.NS
		if least[from] == 0 || p.NS < least[from] {
			least[from] = p.NS
		}
	}
	for _, from := range withCPUs(m) {
		for _, to := range withMemory(m) {
			i := int(m.ByOS(from.OS))
			at := &ns[i*n+int(m.ByOS(to.OS))]
			if *at == 0 {
				return nil, fmt.Errorf("no latency of node %d to memory of node %d", from.OS, to.OS)
			}
			*at /= least[i]
		}
	}
	return ns, nil
}

// WriteJSON writes the table for machines.
func (t *Table) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}

// WriteText writes it for people: latencies, bandwidths, each with its ratio to the
// best of its row, which is the node's own memory unless something is wrong.
func (t *Table) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "latency of a load in ns, by node of the CPU (row) and of the memory (column); in brackets times the least of the row\n\n")
	b.WriteString(t.matrix(func(p *Pair) float64 { return p.NS }, "%.1f (%.2f)", false))
	fmt.Fprintf(&b, "\n\nread by all CPUs of the node in GB/s; in brackets of the most of the row\n\n")
	b.WriteString(t.matrix(func(p *Pair) float64 { return p.GBs }, "%.1f (%.2f)", true))
	b.WriteString("\n\n")
	for _, p := range t.Pairs {
		if p.HMAT != nil {
			fmt.Fprintf(&b, "firmware (HMAT) of node %d to memory of node %d: %.0f ns, %.1f GB/s\n", p.From, p.To, p.HMAT.NS, p.HMAT.GBs)
		}
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// matrix is a table of one figure, with the ratio to the row's best.
func (t *Table) matrix(of func(*Pair) float64, format string, most bool) string {
	best := map[int]float64{}
	for i := range t.Pairs {
		p := &t.Pairs[i]
		if v := of(p); v > 0 && (best[p.From] == 0 || most == (v > best[p.From])) {
			best[p.From] = v
		}
	}
	out := table.NewWriter()
	out.SetStyle(table.StyleLight)
	out.Style().Options = table.OptionsNoBordersAndSeparators
	out.Style().Box.PaddingLeft, out.Style().Box.PaddingRight = "", "  "
	out.Style().Format.Header = text.FormatDefault
	header, columns := table.Row{"node"}, []table.ColumnConfig{}
	var row table.Row
	for i := range t.Pairs {
		p := &t.Pairs[i]
		if p.From == t.Pairs[0].From {
			header = append(header, p.To)
			columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
		if len(row) == 0 {
			row = table.Row{p.From}
		}
		cell := "-"
		if v := of(p); v > 0 {
			cell = fmt.Sprintf(format, v, v/best[p.From])
		}
		if row = append(row, cell); i+1 == len(t.Pairs) || t.Pairs[i+1].From != p.From {
			out.AppendRow(row)
			row = nil
		}
	}
	out.AppendHeader(header)
	out.SetColumnConfigs(columns)
	return out.Render()
}
