package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"numaopt/internal/counters"
	"numaopt/internal/pmu"
	"numaopt/internal/safefile"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// statOptions are the arguments of stat.
type statOptions struct {
	repeat    int
	maxRemote *float64 // per cent; nil is no limit
	json      bool
	output    string
	program   []string

	host host // the zero value is this machine
}

func newStatCmd(std *stdio, run func(context.Context, statOptions) error) *cobra.Command {
	var opt statOptions
	var maxRemote string
	cmd := &cobra.Command{
		Use:   "stat [flags] -- PROGRAM [ARGS]",
		Short: "count local and remote memory traffic of a program, nothing sampled",
		Long: `stat runs a program at its own speed and counts by the processor's counters how many
cache lines came from local DRAM, from DRAM of other nodes and, where the processor
tells, from their caches: the cheap figure for CI on real hardware. Where this user may
count the whole machine, it also says what each node's memory controllers and links moved.

What is counted differs by processor and is said: retired loads on Intel, all fills of
the L1 data cache on AMD, reads that miss the last cache on Arm. The table goes to
stderr, or with -o to a file: stdout is the program's.

Exit status: the program's; 1 where --max-remote does not hold; 3 where the processor
has no such counters or the kernel gave the program none, and with --max-remote where
the program brought too few lines for a percentage.`,
		Example: `  numaopt stat -- ./app 1000
  numaopt stat -r 5 --max-remote 10 --json -o stat.json -- ./app 1000`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, program, err := splitProgram(cmd, args, 0)
			if err != nil {
				return err
			}
			if opt.program = program; cmd.Flags().Changed("max-remote") {
				limit, err := units.ParsePercent(maxRemote)
				if err != nil {
					return usagef("--max-remote: %w", err)
				}
				opt.maxRemote = &limit
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&opt.repeat, "repeat", "r", 1, "run the program `N` times")
	f.StringVar(&maxRemote, "max-remote", "", "fail above `PCT` per cent from other nodes")
	f.BoolVar(&opt.json, "json", false, "write JSON to the file of -o")
	f.StringVarP(&opt.output, "output", "o", "", "write the table or JSON to `FILE`, not to stderr")
	return cmd
}

func runStat(ctx context.Context, std *stdio, opt statOptions) error {
	switch {
	case opt.repeat < 1:
		return usagef("-r %d: want 1 or more", opt.repeat)
	case opt.json && opt.output == "":
		return usagef("--json needs a file: -o FILE (stdout is the program's)")
	}
	if _, err := exec.LookPath(opt.program[0]); err != nil {
		return err
	}
	h := opt.host.here()
	machine := pmu.Read(h.root)
	set, err := pmu.ChooseCounters(machine)
	if err != nil {
		return cannot(err)
	}
	nodes, err := topo.ReadMachine(h.root)
	if err != nil {
		return err
	}
	count := counters.Options{Machine: machine, Topology: nodes, Counters: set, Open: h.open, Command: opt.program, Stdin: std.in, Stdout: std.out, Stderr: std.err}
	runs, warnings, err := countRuns(ctx, opt, count)
	if err != nil {
		return ended(std, runs, err)
	}
	r := counters.NewResult(count, runs, warnings)
	if err := ended(std, runs, writeStat(std, opt, r)); err != nil || opt.maxRemote == nil {
		return err
	}
	if r.Remote == nil {
		return cannot(errors.New("too few lines to hold against --max-remote"))
	}
	if r.RemotePct > *opt.maxRemote {
		return &exitError{exitCheckFailed, fmt.Errorf("%s of the lines are remote, more than %s", units.FormatPercent(r.RemotePct), units.FormatPercent(*opt.maxRemote))}
	}
	return nil
}

// ended is err, or the program's own failure: then err is said, but the status is the
// program's.
func ended(std *stdio, runs []counters.Traffic, err error) error {
	if len(runs) == 0 || runs[len(runs)-1].Status == 0 {
		return err
	}
	if err != nil {
		fmt.Fprintf(std.err, "numaopt: %v\n", err)
	}
	return &exitError{code: runs[len(runs)-1].Status}
}

// countRuns runs the program as often as asked, or until it fails or could not be
// counted: that run is the last.
func countRuns(ctx context.Context, opt statOptions, count counters.Options) (runs []counters.Traffic, warnings []string, err error) {
	for range opt.repeat {
		t, w, err := counters.Count(context.WithoutCancel(ctx), count) // signals are the program's
		if t != nil {
			runs = append(runs, *t)
		}
		if err != nil {
			return runs, nil, cannot(err)
		}
		for _, text := range w {
			if !slices.Contains(warnings, text) {
				warnings = append(warnings, text)
			}
		}
		if t.Status != 0 {
			break
		}
	}
	return runs, warnings, nil
}

func writeStat(std *stdio, opt statOptions, r *counters.Result) error {
	write := r.WriteText
	if opt.json {
		write = r.WriteJSON
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(std.err, "numaopt: warning: %s\n", w)
	}
	if opt.output != "" {
		return safefile.Write(opt.output, write)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "numaopt: next: numaopt profile -o app.nprof -- %s\n", quote(opt.program))
	_, err := io.Copy(std.err, &b)
	return err
}
