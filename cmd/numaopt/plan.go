package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"numaopt/internal/advice"
	"numaopt/internal/bounds"
	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/planner"
	"numaopt/internal/probe"
	"numaopt/internal/profile"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// planOptions are the arguments of plan.
type planOptions struct {
	profile string   // file name
	again   []string // file names of further runs' profiles
	output  string   // file name; "" or "-" is stdout
	schema  bool
	explain bool
	advice  bool
	format  string   // of the advice: "text" or "json"
	shapes  []string // see shape.Parse
	// barriers says that barriers free the loops of a region from each other.
	barriers bool
	pageSize string // "": the page
	latency  string // file name of the machine's latencies; "" is none
	planner  planner.Options
}

func newPlanCmd(std *stdio, run func(context.Context, planOptions) error) *cobra.Command {
	opt := planOptions{planner: planner.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "plan PROFILE [AGAIN...]",
		Short: "decide which node each page should be on, who runs which part of a loop, and say why",
		Long: `plan turns a profile into a plan: which node each page of each object should be
on (the node that makes most DRAM accesses to it, CGO'12 §2.3), in the simplest
words that lose nothing: bind, x-wise, block-cyclic, interleave, or a page map.
Objects that first touch places right already are left out.

Loops that use the same pages in incompatible ways leave them remote wherever they
are. Where that helps, plan also gives chunks of static OpenMP loops to other
threads: backwards (static-inverse), node by node (nodes), or, for a parallel region
in a serial loop, node by node and otherwise in each phase of that (block-exclusive;
CGO'12 §4.2). It predicts what pages alone change, and pages with schedules;
--no-schedules leaves it at pages.
Loops of one parallel region are permuted alike, because a thread may keep data of
its own from one to the next, unless the machine code shows that it does not: the loops
are in functions of their own that return nothing, and take nothing along.
--across-barriers says so of a program that does not show it, so that only loops without
a barrier between are permuted alike; a note says what that would change.

Which thread gets which chunk of a dynamic or guided loop is chance, so no page of
theirs can be placed. --affine lets each node's threads take the chunks of their own
contiguous part of the iterations first, and then help other nodes from the end of
theirs; it takes a profile made with profile --affine. It is off by default because it
changes which thread runs what by design, though OpenMP never promised that.

A plan is a YAML file to be read, reviewed in a diff, and edited; each entry says
why it is there and what it is predicted to change. What no placement can help is
said in its notes.

Where pages and schedules leave accesses remote because the source is what it is,
--advice prints the change: for the program's own loops, with their lines, variables
and bounds, by numaopt.h (CGO'12, fig. 13 and 14), with the dependence it must
respect and the remote percentage it is predicted to leave. Objects that want a copy
on each node, that share pages, or that are to be initialised in parallel are among
it, and transpositions that go better by cache lines. It goes to stdout; the plan is then written only with -o FILE. The loops are
read from the source files that the profile names, and the arrays behind objects
from the debug information, or --shape.

Pages are placed one by one, and a border between nodes cuts the huge page there into
small ones. --page-size 2M places in units of huge pages instead, and predicts what that
loses; --explain says so for each object beforehand, in the column 2M.

Programs that hand out work at run time (thread pools, job queues) use other pages
from other nodes in each run. Given further profiles, plan measures what repeats and
places only that; from one profile it has to guess. They must be of other runs of
the same command and build, with as many threads, on the same topology, with the
same binding and period; a run of which most code has no counterpart is refused, and
one of which most pages have none is warned of.

--schema prints the JSON schema of the file.`,
		Example: `  numaopt plan app.nprof -o app.plan.yaml
  numaopt plan app.nprof --only solve -o app.plan.yaml   # for the computation, not its set-up
  numaopt plan app.nprof app-2.nprof -o app.plan.yaml    # place what is the same in two runs
  numaopt plan app.nprof --no-schedules > app.plan.yaml  # pages only
  numaopt plan app.nprof --advice                        # what to change in the source
  numaopt plan app.nprof --advice --format json | jq .remote_dram_pct_source_change
  numaopt plan affine.nprof --affine -o app.plan.yaml    # dynamic loops by node
  numaopt plan app.nprof --explain > app.plan.yaml       # a line for every object and loop on stderr`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case opt.schema && len(args) > 0:
				return usagef("--schema takes no profile")
			case !opt.schema && len(args) == 0:
				return usagef("plan takes a profile")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opt.profile, opt.again = args[0], args[1:]
			}
			if opt.format != "text" && opt.format != "json" {
				return usagef("--format %s: not text or json", opt.format)
			}
			if opt.format == "json" && !opt.advice {
				return usagef("--format json is for --advice; a plan is YAML")
			}
			if opt.pageSize != "" {
				size, err := units.ParseBytes(opt.pageSize)
				if err == nil {
					err = plan.CheckPageSize(size)
				}
				if err != nil {
					return usagef("--page-size: %v", err)
				}
				if size > units.PageSize {
					opt.planner.PageSize = size
				}
			}
			if g := opt.planner.MinGain; !(g >= 0 && g <= 100) {
				return usagef("--min-gain %v is not from 0 to 100 points", g)
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&opt.output, "output", "o", "", "write the plan to `FILE` (default stdout)")
	f.StringSliceVar(&opt.planner.Only, "only", nil, "plan for these loops or functions only: `NAME` or FILE:LINE, as in the report")
	f.Float64Var(&opt.planner.MinGain, "min-gain", opt.planner.MinGain, "leave out what saves fewer `POINTS` of the DRAM accesses")
	f.StringVar(&opt.pageSize, "page-size", "", "give whole units of `SIZE`, aligned in memory, to one node: 2M keeps the kernel's huge pages whole, 64K those of some machines (default 4K)")
	f.StringVar(&opt.latency, "latency", "", "weigh nodes by the latencies in `FILE`, which doctor --latency --json printed on the machine, where the profile has measured none")
	f.BoolVar(&opt.planner.NoSchedules, "no-schedules", false, "place pages only, and leave all loops as OpenMP makes them")
	f.BoolVar(&opt.planner.Affine, "affine", false, "hand out the chunks of dynamic and guided loops by node, if that saves enough; takes a profile made with --affine")
	f.BoolVar(&opt.barriers, "across-barriers", false, "loops of one parallel region may get different schedules where a barrier separates them: no thread keeps data of its own (threadprivate, on its stack, by its number) from one to the next")
	f.BoolVar(&opt.explain, "explain", false, "say for every object and loop what was decided and why, on stderr")
	f.BoolVar(&opt.advice, "advice", false, "print what to change in the source where no plan helps")
	f.StringVar(&opt.format, "format", "text", "of the advice: `text` or json")
	f.StringArrayVar(&opt.shapes, "shape", nil, "an object's array: `OBJECT=N1,N2,…:BYTES`, the slowest dimension first and the bytes of an element; may be repeated")
	f.BoolVar(&opt.schema, "schema", false, "print the JSON schema of plans and exit")
	return cmd
}

func runPlan(_ context.Context, std *stdio, opt planOptions) error {
	if opt.schema {
		_, err := std.out.Write(plan.Schema)
		return err
	}
	// Most of what a plan is made of stays live, and large profiles are gigabytes.
	debug.SetGCPercent(50)
	progress := newProgress(std.err, "reading "+opt.profile)
	defer progress.end()
	p, sum, err := profile.ReadFileSum(opt.profile)
	if err != nil {
		return err
	}
	opt.planner.Profile = sum
	for _, path := range opt.again {
		again, sum, err := profile.ReadFileSum(path)
		if err != nil {
			return err
		}
		opt.planner.Again = append(opt.planner.Again, planner.Further{File: path, Checksum: sum, Profile: again})
	}
	if opt.planner.Ratios, err = ratiosOf(opt.latency, p.Run.Topology); err != nil {
		return err
	}
	progress.describe("planning")
	set := newCodeSet()
	opt.planner.Refuse = refusals(p, set)
	tied := opt.apart(p, set)
	r, err := planner.Build(p, opt.planner)
	if err != nil {
		return fmt.Errorf("plan for %s: %w", opt.profile, err)
	}
	if err := opt.acrossBarriers(p, r, tied); err != nil {
		return fmt.Errorf("plan for %s: %w", opt.profile, err)
	}
	stuck := linked(p)
	r.Plan.Notes = append(r.Plan.Notes, stuck...)
	a, newer := &advice.Advice{}, []string(nil)
	if quick := len(p.Rows) <= quickRows; quick || opt.advice || opt.explain {
		if a, newer, err = findAdvice(p, r, opt); err != nil {
			return fmt.Errorf("plan for %s: %w", opt.profile, err)
		}
	} else {
		fmt.Fprintln(std.err, "the profile is large: whether a change of the source would help is looked at with --advice")
	}
	progress.end()
	if a.Better() && !a.Assumed {
		source := math.Round(100*a.Source) / 100
		r.Plan.Predict.Source = &source
	}
	if !opt.advice || opt.output != "" && opt.output != "-" {
		if err := writePlan(std, opt.output, r.Plan); err != nil {
			return err
		}
	}
	if opt.explain {
		explainPlan(std.err, r)
		explainAdvice(std.err, a)
	}
	if err := summarizePlan(std.err, opt.output, r, withSource(a)); err != nil || !opt.advice {
		return err
	}
	a.Notes = append(a.Notes, stuck...)
	for _, file := range newer {
		fmt.Fprintf(std.err, "warning: %s was changed after the profiled run, so that its lines may be others\n", file)
	}
	return printAdvice(std, opt.format, a)
}

// ratiosOf is what a file of doctor --latency says of a machine; nil without a file.
func ratiosOf(file string, m topo.Topology) ([]float64, error) {
	if file == "" {
		return nil, nil
	}
	t, err := probe.ReadFile(file)
	if err != nil {
		return nil, err
	}
	ratios, err := t.Ratios(m)
	if err != nil {
		return nil, fmt.Errorf("%s is not of the profile's machine: %w", file, err)
	}
	return ratios, nil
}

// quickRows is the most rows of a profile for which changes of the source are looked
// for unasked: most often less than a second.
const quickRows = 500_000

// refusals says of loops why they must stay static, by region: gcc asks for the
// thread number once for all that an outlined function does with it, and only its
// machine code says whether that is bounds of loops alone; and a region of any
// compiler may depend on its threads otherwise. An empty reason says that somebody
// looked, and nothing is against it.
func refusals(p *profile.Profile, set *codeSet) map[int]string {
	refuse := make(map[int]string)
	code := make(map[int]judge) // by module
	for i := range p.Regions {
		r := &p.Regions[i]
		if !r.Worksharing() {
			continue
		}
		at := r.Site.Module
		if code[at] == nil {
			code[at] = set.profiled(&p.Modules[at], p.Modules)
		}
		refuse[i] = ""
		if err := code[at](r.Site.Offset); err != nil {
			refuse[i] = err.Error()
		}
	}
	return refuse
}

// judge says why the loop whose bounds are fetched by the call that returns to an
// address must stay as it is; nil if it need not.
type judge func(returns uint64) error

// codeSet is files and their code by their paths; each is read once.
type codeSet struct {
	files map[string]*symbol.Module
	code  map[string]*bounds.Binary
}

func newCodeSet() *codeSet {
	return &codeSet{map[string]*symbol.Module{}, map[string]*bounds.Binary{}}
}

func (c *codeSet) file(path string) (*symbol.Module, error) {
	if m := c.files[path]; m != nil {
		return m, nil
	}
	m, err := symbol.Open(path)
	if err == nil {
		c.files[path] = m
	}
	return m, err
}

// open reads the code of the file at path.
func (c *codeSet) open(path string) (*bounds.Binary, error) {
	if b := c.code[path]; b != nil {
		return b, nil
	}
	file, err := c.file(path)
	if err != nil {
		return nil, err
	}
	b, err := bounds.Open(file)
	if err == nil {
		c.code[path] = b
	}
	return b, err
}

// judge says why the loop whose bounds are fetched by the call that returns to an
// address of the file at path must stay as it is; nil if it need not. loaded are the
// files that are loaded with it, any of which may take the place of what it calls.
func (c *codeSet) judge(path string, loaded []string, returns uint64) error {
	b, err := c.among(path, loaded)
	if err != nil {
		return err
	}
	return judged(b, returns)
}

// among opens the file at path as one that is loaded with others.
func (c *codeSet) among(path string, loaded []string) (*bounds.Binary, error) {
	b, err := c.open(path)
	if err != nil {
		return nil, err
	}
	all, err := c.own(loaded)
	if err != nil {
		return nil, fmt.Errorf("a file that is loaded with it cannot be read: %w", err)
	}
	for _, o := range append(all, b) {
		o.Among(all)
	}
	return b, nil
}

func judged(b *bounds.Binary, returns uint64) error {
	if v := b.Judge(returns); !v.Permutable {
		return errors.New(v.Reason)
	}
	return nil
}

// own opens the files that are the program's, not those of compilers and system.
func (c *codeSet) own(paths []string) (all []*bounds.Binary, err error) {
	for _, path := range paths {
		if bounds.IsPlain(path) || filepath.Base(path) == runfile.Runtime {
			continue
		}
		b, err := c.open(path)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// profiled judges calls in the file that m was when it was profiled, if that is still
// there, as are those of all.
func (c *codeSet) profiled(m *ident.Module, all []ident.Module) judge {
	b, err := c.unchanged(m, all)
	if err != nil {
		return func(uint64) error { return err }
	}
	return func(returns uint64) error { return judged(b, returns) }
}

// unchanged opens the file that m was when it was profiled, if that is still there, as
// those of all are.
func (c *codeSet) unchanged(m *ident.Module, all []ident.Module) (*bounds.Binary, error) {
	if err := c.still(m); err != nil {
		return nil, err
	}
	var loaded []string
	for i := range all {
		if c.still(&all[i]) == nil {
			loaded = append(loaded, all[i].Path)
		}
	}
	return c.among(m.Path, loaded)
}

// still says why a file is not what it was when it was profiled.
func (c *codeSet) still(m *ident.Module) error {
	file, err := c.file(m.Path)
	switch {
	case err != nil:
		return fmt.Errorf("what the code does with the thread number cannot be read: %w", err)
	case m.BuildID == "":
		return fmt.Errorf("nobody knows whether %s is still the file that was profiled: profile it again", m.Path)
	case file.BuildID() != m.BuildID:
		return fmt.Errorf("%s was rebuilt since the profile, so nobody can say what its code did with the thread number: profile it again", m.Path)
	}
	return nil
}

// permutable judges calls in files by their paths.
func permutable() func(path string, loaded []string, returns uint64) error { return newCodeSet().judge }

func writePlan(std *stdio, path string, p *plan.Plan) error {
	if path != "" && path != "-" {
		return plan.WriteFile(path, p)
	}
	var b bytes.Buffer
	if err := plan.Write(&b, p); err != nil {
		return err
	}
	_, err := b.WriteTo(std.out)
	return err
}

// summarizePlan says on stderr what the plan is predicted to change, what to
// mistrust in it, and what to do next.
func summarizePlan(w io.Writer, path string, r *planner.Result, source string) error {
	var b strings.Builder
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	what := "DRAM accesses"
	if r.AllLevels {
		what = "accesses"
	}
	alone, loops := "", ""
	if n := len(r.Plan.Loops); n > 0 {
		alone, loops = units.FormatPercent(r.PagesOnly.RemotePct())+" with pages alone, ", ", "+plural(n, "loop", "loops")
	}
	fmt.Fprintf(&b, "remote %s %s -> %s predicted (%s%s with every page on its best node), controller imbalance %.2f -> %.2f, %s%s\n", what,
		units.FormatPercent(r.Before.RemotePct()), units.FormatPercent(r.After.RemotePct()), alone, units.FormatPercent(r.Best.RemotePct()),
		r.Before.Imbalance(), r.After.Imbalance(), plural(len(r.Plan.Objects), "entry", "entries"), loops)
	b.WriteString(source)
	for _, note := range r.Plan.Notes[len(r.Warnings):] {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	file := path
	if file == "" || file == "-" {
		file = "FILE"
	}
	command := "./app ARGS"
	if len(r.Plan.From.Command) > 0 {
		command = quote(r.Plan.From.Command)
	}
	if slices.ContainsFunc(r.Plan.Loops, func(l plan.Loop) bool { return l.Schedule != plan.Affine }) {
		fmt.Fprintf(&b, "with its schedule changed, a loop may find in a node's LLC what the one before left there; the prediction counts that as DRAM accesses. To measure it:\n   numaopt profile -o after.nprof --topology %s --plan %s -- %s && numaopt report after.nprof\n",
			r.Plan.From.Topology, file, command)
	}
	if len(r.Plan.Objects)+len(r.Plan.Loops) == 0 {
		b.WriteString("nothing to apply: the plan only binds the threads\n")
	} else {
		fmt.Fprintf(&b, "next: numaopt apply %[1]s -- %[2]s\n   or numaopt lab --topology %[3]s --plan %[1]s -- %[2]s\n", file, command, r.Plan.From.Topology)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// explainFrom is the share in per cent of the accesses from which an object that
// is not placed, or a loop that stays static, has a line of its own.
const explainFrom = 0.01

// explainPlan is tables of what became of every object and every loop.
func explainPlan(w io.Writer, r *planner.Result) {
	explainObjects(w, r)
	if len(r.Loops) > 0 {
		fmt.Fprintln(w)
		explainLoops(w, r)
	}
}

// explanation is an empty table, with the columns right from the first to the last
// of two numbers aligned to the right.
func explanation(w io.Writer, first, last int, header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	var columns []table.ColumnConfig
	for n := first; n <= last; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

func explainObjects(w io.Writer, r *planner.Result) {
	t := explanation(w, 3, 8, "object", "kind", "size", "share", "before", "after", "best", "2M", "placed", "because")
	rest := 0
	for _, d := range r.Decisions {
		if d.Place == "" && units.Percent(float64(d.Accesses), float64(r.After.Known)) < explainFrom {
			rest++
			continue
		}
		name := d.Name
		if d.Instances > 1 {
			name = fmt.Sprintf("%s, %d times", name, d.Instances)
		}
		place := d.Place
		if place == "" {
			place = "first touch"
		}
		t.AppendRow(table.Row{name, d.Kind, d.Bytes, share(d.Accesses, r.After.Known),
			share(d.Profiled, d.Seen), share(d.After, d.Accesses), share(d.Best, d.Accesses), huge(r, &d), place, d.Reason})
	}
	t.Render()
	explainRest(w, rest, "left to first touch")
}

// huge is what would be remote of an object with huge pages; "-" where the plan is not
// made page by page.
func huge(r *planner.Result, d *planner.Decision) string {
	if r.Plan.PageSize > 0 {
		return "-"
	}
	return share(d.Huge, d.Accesses)
}

func explainLoops(w io.Writer, r *planner.Result) {
	t := explanation(w, 2, 4, "loop", "share", "before", "after", "schedule", "because")
	rest := 0
	for _, l := range r.Loops {
		if (l.Schedule == "static" || l.Schedule == planner.AsItIs) && units.Percent(float64(l.Accesses), float64(r.Before.Known)) < explainFrom {
			rest++
			continue
		}
		t.AppendRow(table.Row{l.Name, share(l.Accesses, r.Before.Known), share(l.Before, l.Accesses), share(l.After, l.Accesses+l.Again), l.Schedule, l.Reason})
	}
	t.Render()
	explainRest(w, rest, "left as they are")
}

// explainRest counts what has no line of its own.
func explainRest(w io.Writer, n int, what string) {
	if n > 0 {
		fmt.Fprintf(w, " and %d with less than %v %% of the accesses each, %s\n", n, explainFrom, what)
	}
}

// share is part of whole in per cent, "-" of nothing.
func share(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return units.FormatPercent(units.Percent(float64(part), float64(whole)))
}

// quote is a command line that a shell splits into words again.
func quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if w != "" && strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == "" {
			quoted[i] = w
		} else {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
