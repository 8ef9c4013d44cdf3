package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"numaopt/internal/launch"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
)

// applyOptions is the command line of apply.
type applyOptions struct {
	plan    string
	command []string
	bind    string // empty is the plan's
	summary string
	dryRun  bool
	mark    bool
	only    []string
}

func newApplyCmd(_ *stdio, run func(context.Context, applyOptions) error) *cobra.Command {
	var opt applyOptions
	cmd := &cobra.Command{
		Use:   "apply PLAN [flags] -- PROGRAM [ARGS]",
		Short: "run a program with a plan in force",
		Long: `apply runs an unmodified program with a plan in force: its threads are bound to
CPUs, one each, and the pages of the plan's objects go to the nodes that the plan
says, before the program first touches them; chunks of the plan's loops go to other
threads. The plan is scaled to the nodes that this process may use; on one node the
program runs as it is. What is not found in this program is named, and the rest is
applied.

Input, output and exit status are the program's own. At its end one line per
object on stderr, or JSON in the file of --summary, says what share of the pages
is where the plan wants it. What the program starts itself is placed, too.`,
		Example: `  numaopt apply app.plan.yaml -- ./app ARGS
  numaopt apply app.plan.yaml --summary app.json -- ./app ARGS
  numaopt apply app.plan.yaml --dry-run -- ./app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			operands, program, err := splitProgram(cmd, args, 1)
			if err != nil {
				return err
			}
			opt.plan, opt.command = operands[0], program
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.bind, "bind", "", "bind threads node by node (compact), round robin over the nodes (spread), or not (none); default: as the plan says")
	f.StringVar(&opt.summary, "summary", "", "write what was placed to this file as JSON, a line per process, instead of text to stderr")
	f.BoolVar(&opt.dryRun, "dry-run", false, "print what the runtime would be told, and do not run the program")
	f.BoolVar(&opt.mark, "mark", false, "tell the lab's counter when the program runs")
	f.StringArrayVar(&opt.only, "only", nil, "with --mark: tell it of these loops alone")
	for _, hidden := range []string{"mark", "only"} {
		_ = f.MarkHidden(hidden)
	}
	return cmd
}

// runApply becomes the program: it returns only where that fails, or for a dry run.
func runApply(_ context.Context, std *stdio, opt applyOptions) error {
	switch opt.bind {
	case "", "compact", "spread", "none":
	default:
		return usagef("--bind %s: want compact, spread or none", opt.bind)
	}
	p, err := plan.ReadFile(opt.plan)
	if err != nil {
		return err
	}
	program, err := symbol.Describe(opt.command[0])
	if err != nil {
		return err
	}
	if opt.summary != "" {
		if opt.summary, err = emptyFile(opt.summary); err != nil {
			return err
		}
	}
	res, err := resolvePlan(p, opt)
	if err != nil {
		return err
	}
	if opt.dryRun {
		warnAll(std, res.Warnings)
		return runfile.Write(std.out, res.Run)
	}
	environ := os.Environ()
	if !res.OneNode || opt.mark {
		if environ, err = launchEnviron(res.Run, environ); err != nil {
			return err
		}
	}
	warnAll(std, res.Warnings)
	err = syscall.Exec(program.Path, opt.command, environ)
	return fmt.Errorf("%s: %w", program.Path, err)
}

// resolvePlan resolves a plan for this machine.
func resolvePlan(p *plan.Plan, opt applyOptions) (*launch.Result, error) {
	host, err := topo.Host()
	if err != nil {
		return nil, err
	}
	res, err := launch.Resolve(p, new(symbol.Table), launch.Options{
		Command: opt.command, Environ: os.Environ(), Topology: host,
		System: runfile.Linux, Mode: runfile.Apply,
		Bind: opt.bind, Mark: opt.mark, Only: opt.only, Summary: opt.summary,
		MapCount: kernelNumber("vm/max_map_count"), Permutable: permutable(),
	})
	if err == nil && res.OneNode && !opt.mark {
		res.Warnings = append(res.Warnings, fmt.Errorf("to see the plan at work here: numaopt lab --topology %s --plan %s -- %s", cmp.Or(p.From.Topology, "4x2"), quote([]string{opt.plan}), quote(opt.command)))
	}
	if err == nil && !res.OneNode && kernelNumber("kernel/numa_balancing") > 0 {
		res.Warnings = append(res.Warnings, errors.New("kernel.numa_balancing is on: the kernel goes on moving the pages that the plan leaves alone (sysctl kernel.numa_balancing=0 ends that)"))
	}
	return res, err
}

// launchEnviron writes the run file and returns the environment that carries it.
func launchEnviron(r runfile.Run, environ []string) ([]string, error) {
	lib, err := runfile.Lib(runfile.Runtime)
	if err != nil {
		return nil, err
	}
	file, err := runfile.Store(r)
	if err != nil {
		return nil, err
	}
	return runfile.Env(environ, lib, file)
}

// warnAll prints warnings, one per line.
func warnAll(std *stdio, warnings []error) {
	for _, w := range warnings {
		fmt.Fprintf(std.err, "numaopt: %v\n", w)
	}
}

// emptyFile makes path an empty file, so that it cannot be written is known before
// the program starts, and returns its absolute path.
func emptyFile(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: the directory of a summary must exist", err)
	}
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

// kernelNumber reads a number below /proc/sys, 0 where there is none.
func kernelNumber(name string) int {
	text, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}
