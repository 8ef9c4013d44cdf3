package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"numaopt/internal/check"
	"numaopt/internal/profile"
	"numaopt/internal/safefile"
	"numaopt/internal/shape"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// checkOptions are the arguments of check.
type checkOptions struct {
	profiles      []string // file names
	only          []string
	metric        check.Metric
	maxRemote     *float64           // per cent; nil is no limit
	named         map[string]float64 // limits of objects and loops
	baseline      string             // file name; "" is none
	maxIncrease   float64            // points
	writeBaseline string             // file name; "" is none
	format        string             // name of one of check.Formats
	also          []checkFile
	summary       string // file name; "" is none
	root          string // folder; "" is the repository around the current one
}

// checkFile is a format to write to a file.
type checkFile struct{ format, path string }

func newCheckCmd(std *stdio, run func(context.Context, checkOptions) error) *cobra.Command {
	var opt checkOptions
	var maxRemote, also []string
	var metric string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check PROFILE... (--max-remote [NAME=]PCT | --baseline FILE | --write-baseline FILE)",
		Short: "fail where too many accesses are remote: a gate for CI",
		Long: `check holds the remote percentage of a profile, and of objects and loops in it,
against limits, against the baseline of earlier profiles, or both; then both must
hold. The verdict is the first line on stdout, warnings go to stderr.
--write-baseline writes the profiles' own figures once everything that was asked
holds; the file belongs in version control.

NAME is an object or a loop as report prints it, an object's variable, or a part of the
name that is not ambiguous: u, sweep.c:88, sweep_x; object:u and loop:u where both have
one name. Its percentage is of its own accesses.

Several profiles are repeated runs, and their mean is judged. Against a baseline only an
increase fails that is above --max-increase and significant: Welch's test at 1 %,
with no spread taken to be smaller than that of full traces (0.35 points of standard
deviation, more for an object with few of the accesses). One run takes its spread from
a baseline of several. Runs of two kinds are named.

The formats github (workflow commands: errors at the lines where data is first
touched), sarif and junit are what CI systems show; --summary appends Markdown,
as for GITHUB_STEP_SUMMARY. scripts/ci has a GitHub action and a GitLab job.

Exit status: 0 it holds; 1 it does not; 2 bad usage or input; 3 the profile
supports no verdict: it is of one node, or has too few DRAM accesses.`,
		Example: `  numaopt check app.nprof --max-remote 10 --max-remote u=5 --max-remote sweep.c:88=20
  numaopt check run1.nprof run2.nprof run3.nprof --write-baseline base.json
  numaopt check app.nprof --baseline base.json --max-increase 2 --format junit > check.xml
  numaopt check app.nprof --baseline base.json --format github --summary "$GITHUB_STEP_SUMMARY" --write sarif=check.sarif`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("check takes one profile, or several of repeated runs")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			opt.profiles = args
			if asJSON && !cmd.Flags().Changed("format") {
				opt.format = "json"
			}
			if opt.metric, err = check.ParseMetric(metric); err != nil {
				return usagef("--metric: %w", err)
			}
			if err := errors.Join(opt.parseLimits(maxRemote), opt.parseFiles(also)); err != nil {
				return err
			}
			if err := opt.usage(cmd.Flags().Changed("max-increase")); err != nil {
				return err
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&maxRemote, "max-remote", nil, "fail above `[NAME=]PCT` per cent remote accesses, of the program, an object or a loop; may be repeated")
	f.StringVar(&metric, "metric", "dram", "`dram` or all: the accesses that the limits mean")
	f.StringVar(&opt.baseline, "baseline", "", "fail above the figures of `FILE`, made by --write-baseline")
	f.Float64Var(&opt.maxIncrease, "max-increase", 1, "`POINTS` above the baseline that still pass; a full trace repeats to about 1")
	f.StringVar(&opt.writeBaseline, "write-baseline", "", "write the profiles' figures to `FILE`")
	f.StringArrayVar(&opt.only, "only", nil, "only these loops or functions: `NAME` or FILE:LINE; may be repeated")
	f.StringVar(&opt.format, "format", "text", "`FORMAT`: "+checkFormatNames())
	f.BoolVar(&asJSON, "json", false, "the same as --format json")
	f.StringArrayVar(&also, "write", nil, "write another format to a file, too: `FORMAT=FILE`; may be repeated")
	f.StringVar(&opt.summary, "summary", "", "append the result in Markdown to `FILE`")
	f.StringVar(&opt.root, "root", "", "`DIR` that source files are named relative to (default the Git repository around the current directory)")
	return cmd
}

func checkFormatNames() string {
	var names []string
	for _, f := range check.Formats {
		names = append(names, f.Name)
	}
	return oneOf(names)
}

// findCheckFormat is nil where there is no format of that name.
func findCheckFormat(name string) *check.Format {
	i := slices.IndexFunc(check.Formats, func(f check.Format) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &check.Formats[i]
}

// parseLimits reads limits; in NAME=PCT the name may have a "=" itself.
func (opt *checkOptions) parseLimits(texts []string) error {
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		limit, err := units.ParsePercent(text[at+1:])
		name := text[:max(0, at)]
		switch {
		case err != nil:
			return usagef("--max-remote %s: %w", text, err)
		case at == 0:
			return usagef("--max-remote %s: no name before the =", text)
		case at < 0 && opt.maxRemote != nil:
			return usagef("--max-remote is given twice for the program; for an object or a loop it is NAME=PCT")
		case at < 0:
			opt.maxRemote = &limit
			continue
		}
		if _, twice := opt.named[name]; twice {
			return usagef("--max-remote is given twice for %s", name)
		}
		if opt.named == nil {
			opt.named = make(map[string]float64)
		}
		opt.named[name] = limit
	}
	return nil
}

func (opt *checkOptions) parseFiles(texts []string) error {
	for _, text := range texts {
		format, path, _ := strings.Cut(text, "=")
		if findCheckFormat(format) == nil || path == "" {
			return usagef("--write %s: not FORMAT=FILE with the format %s", text, checkFormatNames())
		}
		opt.also = append(opt.also, checkFile{format, path})
	}
	return nil
}

// usage returns what is wrong with the options as a whole.
func (opt *checkOptions) usage(increaseGiven bool) error {
	switch {
	case findCheckFormat(opt.format) == nil:
		return usagef("--format %s: not %s", opt.format, checkFormatNames())
	case !(opt.maxIncrease >= 0) || math.IsInf(opt.maxIncrease, 0):
		return usagef("--max-increase %v is not a number of points from 0 on", opt.maxIncrease)
	case increaseGiven && opt.baseline == "":
		return usagef("--max-increase goes with --baseline")
	case opt.maxRemote == nil && opt.named == nil && opt.baseline == "" && opt.writeBaseline == "":
		return usagef("nothing to check: --max-remote, --baseline or --write-baseline")
	}
	return nil
}

func runCheck(_ context.Context, std *stdio, opt checkOptions) error {
	limits := check.Limits{Metric: opt.metric, MaxRemote: opt.maxRemote, Named: opt.named, MaxIncrease: opt.maxIncrease}
	if opt.baseline != "" {
		var err error
		if limits.Baseline, err = check.ReadBaseline(opt.baseline); err != nil {
			return err
		}
	}
	r, runs, err := judgeProfiles(std, opt, limits)
	switch {
	case check.NoVerdict(err):
		if err := writeCheck(std, opt, check.NoResult(opt.metric, opt.only, err)); err != nil {
			return err
		}
		return cannot(err)
	case err != nil:
		return err
	}
	if opt.writeBaseline != "" && r.Pass {
		if err := writeBaseline(opt.writeBaseline, runs); err != nil {
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

// judgeProfiles reads one profile after the other, so that only one is in memory.
func judgeProfiles(std *stdio, opt checkOptions, limits check.Limits) (*check.Result, []*check.Measurement, error) {
	scope := check.Scope{Only: opt.only, Metric: opt.metric}
	for name := range opt.named {
		scope.Named = append(scope.Named, name)
	}
	slices.Sort(scope.Named)
	var runs []*check.Measurement
	progress := newProgress(std.err, "reading")
	defer progress.end()
	for _, path := range opt.profiles {
		progress.describe("reading " + path)
		p, err := profile.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		if len(scope.Named) > 0 { // maybe by their variables
			shapes, err := shape.Find(p, &symbol.Table{}, nil)
			if err != nil {
				return nil, nil, err
			}
			scope.Variable = func(object int) string { return shapes[object].Variable }
		}
		m, err := check.Measure(path, p, scope)
		if err != nil {
			return nil, nil, checkError("check "+path, err)
		}
		runs = append(runs, m)
	}
	r, err := check.Judge(runs, limits, check.DefaultOptions())
	if err != nil {
		return nil, nil, checkError("check", err)
	}
	root := opt.root
	if root == "" {
		root = repository()
	}
	r.Relative(root, func(file string) bool {
		st, err := os.Stat(filepath.Join(root, file))
		return err == nil && st.Mode().IsRegular()
	})
	return r, runs, nil
}

func checkError(what string, err error) error {
	if check.NoVerdict(err) {
		what += ": no verdict"
	}
	return fmt.Errorf("%s: %w", what, err)
}

// repository is the folder around the current one that Git has a repository of, failing
// that the current one.
func repository() string {
	here, err := os.Getwd()
	if err != nil {
		return "."
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return here
		}
	}
}

func writeBaseline(path string, runs []*check.Measurement) error {
	b, err := check.NewBaseline(runs, check.DefaultOptions())
	if err != nil {
		return err
	}
	return b.WriteFile(path)
}

// writeCheck writes files first: who reads stdout may close it early.
func writeCheck(std *stdio, opt checkOptions, r *check.Result) error {
	for _, w := range r.Warnings {
		fmt.Fprintf(std.err, "warning: %s\n", w)
	}
	for _, f := range opt.also {
		write := func(w io.Writer) error { return findCheckFormat(f.format).Write(w, r) }
		if err := safefile.Write(f.path, write); err != nil {
			return fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	if err := appendSummary(opt.summary, r); err != nil {
		return err
	}
	if opt.writeBaseline != "" {
		word := "wrote"
		if !r.Pass {
			word = "the check failed: did not write"
		}
		fmt.Fprintf(std.err, "%s %s\n", word, opt.writeBaseline)
	}
	var b bytes.Buffer // one write, so that a broken pipe is met once
	if err := findCheckFormat(opt.format).Write(&b, r); err != nil {
		return err
	}
	if _, err := b.WriteTo(std.out); err != nil {
		return err
	}
	if next := afterCheck(opt, r); next != "" && opt.format == "text" {
		fmt.Fprintf(std.err, "next: %s\n", next)
	}
	return nil
}

// afterCheck is the command that comes next in a session; "" where it is done.
func afterCheck(opt checkOptions, r *check.Result) string {
	base := strings.TrimSuffix(opt.profiles[0], filepath.Ext(opt.profiles[0]))
	all := quote(opt.profiles)
	switch {
	case r.NoVerdict != "":
		return ""
	case !r.Pass:
		return fmt.Sprintf("numaopt plan %s -o %s", quote(opt.profiles[:1]), quote([]string{base + ".plan.yaml"}))
	case opt.writeBaseline != "":
		return fmt.Sprintf("numaopt check %s --baseline %s, with profiles of a later build", all, quote([]string{opt.writeBaseline}))
	case opt.baseline == "":
		return fmt.Sprintf("numaopt check %s --write-baseline %s", all, quote([]string{base + ".base.json"}))
	}
	return ""
}

func appendSummary(path string, r *check.Result) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	err = findCheckFormat("markdown").Write(f, r)
	return errors.Join(err, f.Close())
}
