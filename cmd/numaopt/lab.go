package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"numaopt/internal/lab"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/safefile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// labOptions is numaopt lab's command line.
type labOptions struct {
	program        []string
	topology, bind string
	plan, output   string
	only           []string
	l1, l2, llc    string
	thp            string
	balancing      bool
	memory         string
	json, quiet    bool
	selfTest       bool
}

func newLabCmd(std *stdio, run func(context.Context, labOptions) error) *cobra.Command {
	var opt labOptions
	m := topo.DefaultCaches()
	cmd := &cobra.Command{
		Use:   "lab [flags] -- PROGRAM [ARGS]",
		Short: "run a program on a virtual machine with several nodes and count every access",
		Long: `lab runs the program in a QEMU guest that has real NUMA nodes, under a real Linux
kernel, and counts every load and store of its user-mode code: where it was made,
where its page was at that moment, and which level of the modelled caches served
it. In one boot the program runs as the kernel places it ("default"), with its
pages interleaved over all nodes ("interleave"), and with --plan under numaopt
apply ("plan"); threads are bound alike in all runs.

The guest sees this machine's files, the environment and stdin. Each run starts
from the same files; what the last run changed is there on this machine when lab
ends. lab ends with the last run's status, or with 1 where a file could not be
brought back. The last run's output goes to stderr (stdout has lab's own table or
JSON), or with -o FILE to stdout.

Nothing in the guest says how fast the program would be: remote memory there is
as fast as local memory. OMP_WAIT_POLICY=passive and GOMP_SPINCOUNT=0 are set
unless you set them, because spinning threads count as accesses.`,
		Example: `  numaopt lab --topology 4x2 -- ./app ARGS
  numaopt lab --topology 4x2 --plan app.plan.yaml --json -- ./app ARGS >lab.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !opt.selfTest {
				_, program, err := splitProgram(cmd, args, 0)
				if err != nil {
					return err
				}
				opt.program = program
			} else if len(args) > 0 {
				return usagef("--self-test takes no program")
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.topology, "topology", "", "nodes of the guest and CPUs of each, `NODESxCPUS` (default: as this machine; 4x2 where it has one node)")
	f.StringVar(&opt.bind, "bind", "", "bind threads node by node (compact), round robin over the nodes (spread), or not (none); default: as the plan says, else compact")
	f.StringVar(&opt.plan, "plan", "", "also run under this plan")
	f.StringArrayVar(&opt.only, "only", nil, "count only while this parallel region runs, FILE:LINE, or any of this FUNCTION (may be repeated)")
	f.StringVar(&opt.l1, "l1", cacheText(m.L1), "L1 of each CPU, `BYTES:WAYS`")
	f.StringVar(&opt.l2, "l2", cacheText(m.L2), "L2 of each CPU, `BYTES:WAYS`")
	f.StringVar(&opt.llc, "llc", cacheText(m.LLC), "LLC of each node, `BYTES:WAYS`")
	f.StringVar(&opt.thp, "thp", "never", "transparent huge pages in the guest: never, madvise or always")
	f.BoolVar(&opt.balancing, "numa-balancing", false, "let the guest's kernel migrate pages")
	f.StringVar(&opt.memory, "memory", lab.DefaultMemory.Exact(), "memory of the guest, all nodes together")
	f.BoolVar(&opt.json, "json", false, "print JSON")
	f.StringVarP(&opt.output, "output", "o", "", "write the table or JSON to this file, leaving stdout to the program")
	f.BoolVarP(&opt.quiet, "quiet", "q", false, "neither progress nor the program's output")
	f.BoolVar(&opt.selfTest, "self-test", false, "count runs whose remote share is known, and compare")
	f.MarkHidden("self-test")
	return cmd
}

func runLab(ctx context.Context, std *stdio, opt labOptions) error {
	o, err := opt.options(std)
	if err != nil {
		return err
	}
	r, err := lab.Run(ctx, o)
	if err != nil {
		return labError(err)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(std.err, "numaopt: %s\n", w)
	}
	if err := writeLab(std, opt, r); err != nil {
		return err
	}
	if opt.selfTest {
		return lab.CheckSelfTest(r)
	}
	if !opt.quiet {
		fmt.Fprintf(std.err, "numaopt: next: %s\n", afterLab(opt, o.Topology.String()))
	}
	if status := r.Status(); status != 0 {
		return &exitError{code: status}
	}
	return nil
}

// afterLab is the command that comes next in a session.
func afterLab(opt labOptions, topology string) string {
	program := quote(opt.program)
	if opt.plan != "" {
		return fmt.Sprintf("numaopt apply %s -- %s", quote([]string{opt.plan}), program)
	}
	return fmt.Sprintf("numaopt profile -o app.nprof --topology %s -- %s", topology, program)
}

// labError gives err the exit status that it deserves: what the machine lacks is
// 3, what the user gave is 2.
func labError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, lab.ErrInput) {
		return err
	}
	return cannot(err)
}

func writeLab(std *stdio, opt labOptions, r *lab.Result) error {
	write := lab.Print
	if opt.json {
		write = func(w io.Writer, r *lab.Result) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}
	}
	if opt.output == "" {
		return write(std.out, r)
	}
	if err := safefile.Write(opt.output, func(w io.Writer) error { return write(w, r) }); err != nil {
		return errors.Join(fmt.Errorf("%w: the result goes to stdout instead", err), write(std.out, r))
	}
	return nil
}

// labTopology is the guest that --topology names; without it one like host's
// machine, or 4x2 where that has one node or cannot be had.
func labTopology(name string, host func() (topo.Topology, error)) (t topo.Topology, why string, err error) {
	if name != "" {
		if t, err = topo.Parse(name); err != nil {
			err = &usageError{err}
		}
		return t, "", err
	}
	const standard = "4x2"
	t, err = host()
	switch {
	case err != nil || len(t.Nodes) < 2:
		name, why = standard, "this machine has one NUMA node"
	case lab.CheckTopology(t) != nil:
		name, why = standard, lab.CheckTopology(t).Error()
	default: // CPUs and nodes numbered as the guest's are
		name, why = fmt.Sprintf("%dx%d", len(t.Nodes), len(t.Nodes[0].CPUs)), "like this machine"
	}
	t, err = topo.Parse(name)
	return t, why + ": the guest has " + name + " (nodes x CPUs of each; --topology names another)", err
}

// options turns the command line into lab's.
func (opt labOptions) options(std *stdio) (lab.Options, error) {
	o := lab.Options{
		Command: opt.program, Plan: opt.plan, Only: opt.only, THP: opt.thp, Balancing: opt.balancing, SelfTest: opt.selfTest,
		Bind: opt.bind, Stdin: std.in, Stdout: std.err, Stderr: std.err, Progress: labProgress(std, opt.quiet),
	}
	o.Warn = func(text string) { fmt.Fprintf(std.err, "numaopt: %s\n", text) }
	var err error
	var why string
	if o.Topology, why, err = labTopology(opt.topology, topo.Host); err != nil {
		return o, err
	}
	if why != "" && !opt.quiet {
		fmt.Fprintf(std.err, "numaopt: %s\n", why)
	}
	if opt.plan != "" {
		p, err := plan.ReadFile(opt.plan)
		if err != nil {
			return o, err
		}
		if o.Bind == "" {
			o.Bind = p.Threads.Bind
		}
	}
	switch o.Bind {
	case "":
		o.Bind = string(topo.BindCompact)
	case string(topo.BindCompact), string(topo.BindSpread), lab.BindNone:
	default:
		return o, usagef("--bind %s: want compact, spread or none", o.Bind)
	}
	if opt.thp != "never" && opt.thp != "always" && opt.thp != "madvise" {
		return o, usagef("--thp %s: want never, madvise or always", opt.thp)
	}
	if o.Memory, err = units.ParseBytes(opt.memory); err != nil {
		return o, usagef("--memory: %v", err)
	}
	if o.Caches, err = cacheModel(opt.l1, opt.l2, opt.llc); err != nil {
		return o, err
	}
	if opt.output != "" {
		o.Stdout = std.out
	}
	if opt.quiet {
		o.Stdout, o.Stderr = io.Discard, io.Discard
	}
	if o.Exe, err = os.Executable(); err != nil {
		return o, err
	}
	plugin, err := runfile.Lib("lab.so")
	o.Lib = filepath.Dir(plugin)
	return o, cannot(err)
}

// labProgress writes a line for each step, where somebody watches.
func labProgress(std *stdio, quiet bool) func(string) {
	f, isFile := std.err.(*os.File)
	if quiet || !isFile {
		return func(string) {}
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(f, "numaopt: %s\n", text) }
}
