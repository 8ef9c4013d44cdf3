package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"numaopt/internal/ingest"
	"numaopt/internal/mitos"
	"numaopt/internal/perfdata"
	"numaopt/internal/profile"
	"numaopt/internal/sample"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// importOptions are the flags of numaopt import.
type importOptions struct {
	in       string
	out      string
	topology string // empty is that of the recording
	pid      int
	kernel   bool
}

func newImportCmd(std *stdio, run func(context.Context, importOptions) error) *cobra.Command {
	var opt importOptions
	cmd := &cobra.Command{
		Use:   "import FILE -o FILE [flags]",
		Short: "make a profile of a recording by perf, or of samples by Mitos",
		Long: `import makes a profile of what perf record has written, here or on another machine,
by any version of perf: a file, a directory (perf record --threads) or a stream (-).
Its samples must have data addresses: perf mem record, or perf record -d --sample-cpu
with an event that has them (Intel PEBS loads and stores, AMD IBS, Arm SPE), or page
faults.

The samples.csv of Mitos, which MemAxes shows, is read too: with --topology, since it
does not say which CPUs are on which node. The variables that it names are objects.

The home of a page is known from physical addresses (perf record --phys-data), else
from what the processor says of each sample: local or remote memory.

To have objects of the heap and worksharing loops, the program has to run under
numaopt profile.`,
		Example: `  numaopt import perf.data -o app.nprof
  perf mem record -o - -- ./app | numaopt import - -o app.nprof
  numaopt import mitos_1700000000/data/samples.csv --topology 2x8 -o app.nprof`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.in = args[0]
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.out, "output", "o", "", "write the profile to `FILE`")
	f.StringVar(&opt.topology, "topology", "", "the machine that it was recorded on, `NODESxCPUS` (default: as the recording says)")
	f.IntVar(&opt.pid, "pid", 0, "the process, by its `ID` (default: the one with the most samples)")
	f.BoolVar(&opt.kernel, "kernel", false, "count accesses that the kernel made, too")
	return cmd
}

func runImport(_ context.Context, std *stdio, opt importOptions) error {
	if opt.out == "" {
		return usagef("no file for the profile: -o FILE")
	}
	if err := writableFile(opt.out); err != nil {
		return err
	}
	progress := newProgress(std.err, "reading "+opt.in)
	defer progress.end()
	f, notes, err := openRecording(std, opt.in)
	if err != nil {
		return err
	}
	defer f.Close()
	f.Progress = func(begun, all int) { progress.show(int64(begun), int64(all)) }
	machine, err := recordedOn(f, opt.topology)
	if err != nil {
		return err
	}
	symbols := new(symbol.Table)
	t, stats, err := sample.Read(f, sample.Options{Machine: machine, PID: opt.pid, Kernel: opt.kernel, Symbols: symbols})
	if err != nil {
		return err
	}
	p, err := ingest.Sampled(f, t, stats, profile.Run{Version: version(), Topology: machine}, symbols)
	if err != nil {
		return err
	}
	progress.end()
	p.Warnings = append(p.Warnings, notes...)
	if err := profile.WriteFile(opt.out, p); err != nil {
		return fmt.Errorf("the profile cannot be written: %w", err)
	}
	sayProfile(std, opt.out, p, func() { saySampled(std, opt.out, p, t, stats) })
	return nil
}

// openRecording opens what is to be imported; notes is what the profile should say of it.
func openRecording(std *stdio, path string) (f *perfdata.File, notes []string, err error) {
	switch {
	case path == "-":
		f, err = perfdata.Spool("standard input", std.in)
	case isMitos(path):
		f, notes, err = mitos.Open(path)
	default:
		f, err = perfdata.Open(path)
	}
	return f, notes, err
}

func isMitos(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	begin := make([]byte, 4096)
	n, _ := io.ReadFull(f, begin)
	return mitos.Is(begin[:n])
}

// recordedOn is the machine of a recording: as named, else as its header has it.
func recordedOn(f *perfdata.File, named string) (topo.Topology, error) {
	if named != "" {
		t, err := topo.Parse(named)
		if err != nil {
			err = &usageError{err}
		}
		return t, err
	}
	var t topo.Topology
	for _, n := range f.Info.Nodes {
		cpus, err := topo.ParseList(n.CPUs)
		if err != nil {
			return t, fmt.Errorf("%s: its header has the CPUs of node %d as %q: %w; name the machine with --topology", f.Path, n.ID, n.CPUs, err)
		}
		t.Nodes = append(t.Nodes, topo.Node{OS: n.ID, CPUs: cpus, MemBytes: int64(n.Total) * 1024})
	}
	if len(t.Nodes) == 0 && f.Cut {
		return t, usagef("%s is cut short: perf did not come to its end, where it writes what machine it was recorded on; to import what is there, name the machine with --topology", f.Path)
	}
	if len(t.Nodes) == 0 {
		return t, usagef("%s does not say what machine it was recorded on: name it with --topology", f.Path)
	}
	return t, nil
}
