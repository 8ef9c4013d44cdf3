package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"numaopt/internal/access"
	"numaopt/internal/diff"
	"numaopt/internal/profile"
)

// diffOptions are the arguments of diff.
type diffOptions struct {
	before, after string // file names
	fail          float64
	json          bool
	top           int
	schema        bool
}

const noLimit = -1 // of diffOptions.fail

func newDiffCmd(std *stdio, run func(context.Context, diffOptions) error) *cobra.Command {
	var opt diffOptions
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "say what changed between two profiles of a program, and why",
		Long: `diff compares two profiles of one program: before and after a change of its source, of
its build or of how it runs. It ends with what got worse and why: another place of first
touch, pages on other nodes, a new loop or object.

Objects and loops are matched by names that survive a rebuild: globals by symbol and
file, allocations by the functions on their call stack, loops by their function, and in
one function by the line from its declaration, the size, and which loops use an object.
Where another match is about as good, a warning names it, and the table has "?".

A change counts where it, or its 95 % interval where accesses are sampled, lies beyond
what equal runs differ by: a point, or more where threads that did the same work missed
the cache another number of times, as in problems that are about as large as it.
Profiles of different numbers of nodes are refused, and so is page faults against DRAM
accesses: their percentages do not compare. What else differs between the runs is a
warning.

Exit status: 0 compared; 1 --fail was given and the remote percentage of DRAM accesses
rose significantly by more than POINTS; 2 bad usage or input; 3 --fail was given and a
profile supports no verdict, or both are of one node.`,
		Example: `  numaopt diff before.nprof after.nprof
  numaopt diff before.nprof after.nprof --fail 2
  numaopt diff before.nprof after.nprof --json | jq .worsened
  numaopt diff --schema > diff.schema.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case opt.schema && len(args) > 0:
				return usagef("--schema takes no profile")
			case !opt.schema && len(args) != 2:
				return usagef("diff takes two profiles, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				opt.before, opt.after = args[0], args[1]
			}
			switch {
			case !cmd.Flags().Changed("fail"):
				opt.fail = noLimit
			case !(opt.fail >= 0) || math.IsInf(opt.fail, 0):
				return usagef("--fail %v is not a number of points from 0 on", opt.fail)
			}
			if opt.top < 0 {
				return usagef("--top %d is negative", opt.top)
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.Float64Var(&opt.fail, "fail", 0, "exit 1 where the remote percentage rose significantly by more than `POINTS`")
	f.BoolVar(&opt.json, "json", false, "print JSON")
	f.IntVar(&opt.top, "top", 10, "print `N` objects and loops; 0 is all")
	f.BoolVar(&opt.schema, "schema", false, "print the JSON schema of --json and exit")
	return cmd
}

func runDiff(_ context.Context, std *stdio, opt diffOptions) error {
	if opt.schema {
		_, err := io.WriteString(std.out, diff.Schema)
		return err
	}
	progress := newProgress(std.err, "reading "+opt.before)
	defer progress.end()
	before, err := profile.ReadFile(opt.before)
	if err != nil {
		return err
	}
	progress.describe("reading " + opt.after)
	after, err := profile.ReadFile(opt.after)
	if err != nil {
		return err
	}
	limits := diff.DefaultOptions()
	limits.Fail = opt.fail
	r, err := diff.Run(before, after, limits)
	if err != nil {
		return fmt.Errorf("diff %s %s: %w", opt.before, opt.after, err)
	}
	progress.end()
	if err := writeDiff(std, opt, r); err != nil {
		return err
	}
	if opt.fail >= 0 {
		if err := errors.Join(access.Support(before), access.Support(after)); err != nil {
			return cannot(fmt.Errorf("diff: no verdict: %w", err))
		}
	}
	if r.Failed {
		return &exitError{code: exitCheckFailed}
	}
	return nil
}

func writeDiff(std *stdio, opt diffOptions, r *diff.Result) error {
	var b bytes.Buffer // one write, so that a broken pipe is met once
	if opt.json {
		if err := r.WriteJSON(&b); err != nil {
			return err
		}
		_, err := b.WriteTo(std.out)
		return err
	}
	if err := r.WriteText(&b, opt.top); err != nil {
		return err
	}
	if _, err := b.WriteTo(std.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(std.err, "next: %s\n", afterDiff(opt, r))
	return err
}

// afterDiff is the command that comes next.
func afterDiff(opt diffOptions, r *diff.Result) string {
	base := strings.TrimSuffix(opt.after, filepath.Ext(opt.after))
	if r.RemoteDRAM.Word == diff.Worse || r.RemoteDRAM.Word == diff.Same && len(r.Worsened) > 0 {
		return fmt.Sprintf("numaopt plan %s -o %s", quote([]string{opt.after}), quote([]string{base + ".plan.yaml"}))
	}
	return fmt.Sprintf("numaopt check %s --write-baseline %s", quote([]string{opt.after}), quote([]string{base + ".base.json"}))
}
