package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"numaopt/internal/check"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// checkOptions are the arguments of check.
type checkOptions struct {
	profile       string // file name
	only          []string
	metric        check.Metric
	maxRemote     *float64 // per cent; nil is no limit
	baseline      string   // file name; "" is none
	maxIncrease   float64  // points
	writeBaseline string   // file name; "" is none
	format        string   // "text", "json" or "junit"
}

func newCheckCmd(std *stdio, run func(context.Context, checkOptions) error) *cobra.Command {
	var opt checkOptions
	var maxRemote, metric string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check PROFILE (--max-remote PCT | --baseline FILE | --write-baseline FILE)",
		Short: "fail where too many accesses are remote: a gate for CI",
		Long: `check holds the remote percentage of a profile against a limit, against the
baseline of an earlier profile, or both; then both must hold. The verdict is one
line on stdout, warnings go to stderr. --write-baseline writes the profile's own
figures once everything that was asked holds; the file belongs in version control.

Exit status: 0 it holds; 1 it does not; 2 bad usage or input; 3 the profile
supports no verdict: it is of one node, or has too few DRAM accesses.`,
		Example: `  numaopt check app.nprof --max-remote 10
  numaopt check app.nprof --write-baseline base.json
  numaopt check app.nprof --baseline base.json --max-increase 2 --format junit > check.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("check takes one profile, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opt.profile = args[0]
			if asJSON && !cmd.Flags().Changed("format") {
				opt.format = "json"
			}
			if opt.metric, err = check.ParseMetric(metric); err != nil {
				return usagef("--metric: %w", err)
			}
			if cmd.Flags().Changed("max-remote") {
				limit, err := units.ParsePercent(maxRemote)
				if err != nil {
					return usagef("--max-remote: %w", err)
				}
				opt.maxRemote = &limit
			}
			if err := opt.usage(cmd.Flags().Changed("max-increase")); err != nil {
				return err
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&maxRemote, "max-remote", "", "fail above `PCT` per cent remote accesses")
	f.StringVar(&metric, "metric", "dram", "`dram` or all: the accesses that the limits mean")
	f.StringVar(&opt.baseline, "baseline", "", "fail above the figure of `FILE`, made by --write-baseline")
	f.Float64Var(&opt.maxIncrease, "max-increase", 1, "`POINTS` above the baseline that still pass; a full trace repeats to about 1")
	f.StringVar(&opt.writeBaseline, "write-baseline", "", "write the profile's figures to `FILE`")
	f.StringArrayVar(&opt.only, "only", nil, "only these loops or functions: `NAME` or FILE:LINE; may be repeated")
	f.StringVar(&opt.format, "format", "text", "`text`, json or junit")
	f.BoolVar(&asJSON, "json", false, "the same as --format json")
	return cmd
}

// usage returns what is wrong with the options as a whole.
func (opt *checkOptions) usage(increaseGiven bool) error {
	switch {
	case opt.format != "text" && opt.format != "json" && opt.format != "junit":
		return usagef("--format %s: not text, json or junit", opt.format)
	case !(opt.maxIncrease >= 0) || math.IsInf(opt.maxIncrease, 0):
		return usagef("--max-increase %v is not a number of points from 0 on", opt.maxIncrease)
	case increaseGiven && opt.baseline == "":
		return usagef("--max-increase goes with --baseline")
	case opt.maxRemote == nil && opt.baseline == "" && opt.writeBaseline == "":
		return usagef("nothing to check: --max-remote, --baseline or --write-baseline")
	}
	return nil
}

func runCheck(_ context.Context, std *stdio, opt checkOptions) error {
	p, err := profile.ReadFile(opt.profile)
	if err != nil {
		return err
	}
	limits := check.Limits{Metric: opt.metric, MaxRemote: opt.maxRemote, MaxIncrease: opt.maxIncrease}
	if opt.baseline != "" {
		if limits.Baseline, err = check.ReadBaseline(opt.baseline); err != nil {
			return err
		}
	}
	r, err := check.Run(p, opt.only, limits)
	if check.NoVerdict(err) {
		return noVerdict(std, opt, err)
	}
	if err != nil {
		return fmt.Errorf("check %s: %w", opt.profile, err)
	}
	if opt.writeBaseline != "" && r.Pass {
		b, err := check.NewBaseline(p, opt.only)
		if err != nil {
			return fmt.Errorf("check %s: %w", opt.profile, err)
		}
		if err := b.WriteFile(opt.writeBaseline); err != nil {
			return err
		}
	}
	if err := writeCheck(std, opt, r); err != nil {
		return err
	}
	if !r.Pass {
		return &exitError{code: exitCheckFailed}
	}
	return nil
}

func writeCheck(std *stdio, opt checkOptions, r *check.Result) error {
	for _, w := range r.Warnings {
		fmt.Fprintf(std.err, "warning: %s\n", w)
	}
	write := r.WriteText
	switch opt.format {
	case "json":
		write = r.WriteJSON
	case "junit":
		write = r.WriteJUnit
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if _, err := b.WriteTo(std.out); err != nil {
		return err
	}
	if opt.writeBaseline != "" {
		word := "wrote"
		if !r.Pass {
			word = "the check failed: did not write"
		}
		fmt.Fprintf(std.err, "%s %s\n", word, opt.writeBaseline)
	}
	return nil
}

// noVerdict writes in the asked format that there is none; the reason itself is
// printed with the error.
func noVerdict(std *stdio, opt checkOptions, reason error) error {
	var b bytes.Buffer
	var err error
	switch opt.format {
	case "json":
		err = json.NewEncoder(&b).Encode(map[string]any{"pass": nil, "verdict": "no verdict: " + reason.Error()})
	case "junit":
		err = check.WriteSkippedJUnit(&b, opt.metric, opt.only, reason)
	}
	if err == nil {
		_, err = io.Copy(std.out, &b)
	}
	if err != nil {
		return err
	}
	return cannot(fmt.Errorf("check %s: no verdict: %w", opt.profile, reason))
}
