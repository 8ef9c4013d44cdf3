package lab

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// Print writes r for people: the runs side by side, one column each.
func Print(w io.Writer, r *Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "guest: %s, Linux %s, %v, transparent huge pages %s, NUMA balancing %s; threads bound %s\n",
		r.Topology, r.Kernel, units.Bytes(r.MemoryBytes), r.THP, onOff(r.Balancing), r.Bind)
	fmt.Fprintf(&b, "caches modelled: L1 %s and L2 %s per CPU, LLC %s per node\n", cacheText(r.Caches.L1), cacheText(r.Caches.L2), cacheText(r.Caches.LLC))
	fmt.Fprintf(&b, "counted: every access of user-mode code, %s%s\n\n", r.Window, onlyText(r.Only))
	b.WriteString(mainTable(r))
	b.WriteString("\n\nDRAM accesses in per cent of the run's, by accessing node (row) and home (column)\n\n")
	b.WriteString(matrixTable(r))
	b.WriteString("\n")
	for _, run := range r.Runs {
		for _, s := range run.Warnings {
			fmt.Fprintf(&b, "%s: %s\n", run.Name, s)
		}
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func onOff(v bool) string {
	if v {
		return "on"
	}
	return "off"
}

func onlyText(only []string) string {
	if len(only) == 0 {
		return ""
	}
	return " (" + strings.Join(only, ", ") + ")"
}

func cacheText(c topo.Cache) string {
	return fmt.Sprintf("%s %d-way", units.Bytes(c.Bytes), c.Ways)
}

// plain is a table without lines, numbers to the right.
func plain(columns int) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	configs := []table.ColumnConfig{}
	for i := 2; i <= columns; i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	return t
}

func mainTable(r *Result) string {
	t := plain(len(r.Runs) + 1)
	head := table.Row{""}
	for _, run := range r.Runs {
		head = append(head, run.Name)
	}
	t.AppendHeader(head)
	row := func(name string, f func(RunResult) string) {
		line := table.Row{name}
		for _, run := range r.Runs {
			line = append(line, f(run))
		}
		t.AppendRow(line)
	}
	row("remote, of DRAM accesses", func(r RunResult) string { return percent(r.RemoteDRAMPct) })
	row("remote, of all accesses", func(r RunResult) string { return percent(r.RemoteAccessPct) })
	row("DRAM accesses", func(r RunResult) string { return count(r.DRAMAccesses) })
	row("all accesses", func(r RunResult) string { return count(r.Accesses) })
	row("controller imbalance", func(r RunResult) string { return ratio(r.Imbalance) })
	row("pages on plan", func(r RunResult) string { return percent(r.OnPlanPct) })
	row("exit status", func(r RunResult) string { return fmt.Sprint(r.Status) })
	row("output", outputText)
	return t.Render()
}

func outputText(r RunResult) string {
	if r.StdoutSame {
		return "same"
	}
	return "differs"
}

func matrixTable(r *Result) string {
	if len(r.Runs) == 0 {
		return ""
	}
	nodes := len(r.Runs[0].Matrix)
	t := plain(1 + len(r.Runs)*(nodes+1))
	head, homes := table.Row{""}, table.Row{"home"}
	for _, run := range r.Runs {
		head, homes = append(head, "", run.Name), append(homes, "")
		for j := range nodes {
			if j > 0 {
				head = append(head, "")
			}
			homes = append(homes, fmt.Sprint(j))
		}
	}
	t.AppendHeader(head)
	t.AppendRow(homes)
	for i := range nodes {
		line := table.Row{fmt.Sprintf("node %d", i)}
		for _, run := range r.Runs {
			line = append(line, "")
			for j := range nodes {
				line = append(line, cellText(run, i, j))
			}
		}
		t.AppendRow(line)
	}
	return t.Render()
}

func cellText(r RunResult, i, j int) string {
	if r.DRAMAccesses == 0 || i >= len(r.Matrix) || j >= len(r.Matrix[i]) {
		return "-"
	}
	return fmt.Sprintf("%.1f", units.Percent(float64(r.Matrix[i][j]), float64(r.DRAMAccesses)))
}

func percent(v *float64) string {
	if v == nil {
		return "-"
	}
	return units.FormatPercent(*v)
}

func ratio(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

// count prints a number of events to three digits or more: "12.3 M".
func count(n uint64) string {
	switch {
	case n >= 10e9:
		return fmt.Sprintf("%.1f G", float64(n)/1e9)
	case n >= 10e6:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10e3:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}
