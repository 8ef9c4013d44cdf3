package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"numaopt/internal/access"
	"numaopt/internal/advice"
	"numaopt/internal/export"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/safefile"
	"numaopt/internal/shape"
	"numaopt/internal/symbol"
)

// reportOptions are the arguments of report.
type reportOptions struct {
	profile string // file name
	output  string // file name; "" or "-" is stdout
	format  string // name of one of reportFormats
	only    []string
	objects []string
	threads []int
	shapes  []string
	top     int
	sort    string // one of report.SortKeys
	color   string // "auto", "always" or "never"
	schema  bool
	plan    string // file name of the plan that html shows
	sources bool   // html has the text of the source
	plots   string // folder; "" is none
	before  string // file name of the profile of an earlier run; "" is none
}

func newReportCmd(std *stdio, run func(context.Context, reportOptions) error) *cobra.Command {
	var opt reportOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "report PROFILE",
		Short: "say which data is used from which nodes, and what that costs",
		Long: `report prints what a profile knows: how many accesses are remote and why, which
pages are private, used from one node or uniformly shared (CGO'12 §2.2, §3.1),
and the figures by object, loop, thread, node and place of first touch. The first
lines are the verdict; warnings say what to mistrust.

It names how each loop divides each object over the nodes: x-wise, y-wise, z-wise,
block-cyclic, block-exclusive (CGO'12 §3.1, §4.1), in inverse order of the nodes or
permuted (any other order, as in one phase of block-exclusive), all-to-all, by one
node, or none of these, and says where loops want placements that exclude each other. The array
behind an object is the one that the debug information declares, or an ALLOCATE
statement of Fortran, where the program's files are still there; else its rows are
inferred from the accesses, or given by --shape. Where several variables get their
memory in one line and nothing tells which one this is, it says so.
From fewer than 50 sampled DRAM accesses a node, to one object from one loop,
the answer is "?": not enough samples; a block-exclusive pattern, and what might be
one, takes 16 for each of its nodes x nodes blocks. Above that it is "?" while chance or
another pattern is likelier than 5 %. An object of which every page is seen, as from
exact counts, is called what it looks like, and the column sure has the "?" then: a few
pages may always be chance. 150 a node were enough for the kernels of the
tests, and are asked for where the rows are not known. JSON has samples_needed.

Where samples have latencies, it says how long loads took by the level that served them,
object, loop and pair of nodes, and what remote ones cost beyond local ones, and orders
objects by that; the JSON has the distributions and which part of the latency is of
loads of which length. Cache lines that nodes share are listed with the bytes that each
reads and writes: shared truly where one uses what another writes, else falsely.

--format html is one page to open in a browser, without a server or a network, with
heatmaps by page and thread; --sources takes in the lines of source that access DRAM,
--plan shows what a plan is predicted to change.

--format trace says which thread worked in which loop, on data of which node, and when,
for ui.perfetto.dev and chrome://tracing. Its clock is time where the program ran by
itself, and the accesses of each thread where it was emulated.

A DRAM access is a miss of the node's last-level cache, under emulation by the
cache model of the profile. Remote percentages are of accesses to pages whose home
is known. --loop restricts every figure to the accesses from some loops or
functions, --object to those to some objects, --thread to those of some threads,
and all of them to the pages that these touch.

For other tools, --format csv and parquet write the access table: who accessed which page
of what, from where, a row for each object, page, thread, loop, operation and level that
met; pprof writes sums of it with labels (thread, cpu, node, home, object, loop, op,
data_src), and lines of source where the profile has them. In CSV, names that a spreadsheet
would take for a formula (that begin with = + - @, a tab or a carriage return) get an
apostrophe before them. The fields of JSON stay, with type and meaning, as long as its
version does, see --schema.

` + plotsHelp(),
		Example: `  numaopt report app.nprof
  numaopt report app.nprof --loop solve --loop sweep.c:88
  numaopt report app.nprof --object u --sort remote --top 5
  numaopt report app.nprof --shape u=64,64,64,5:8
  numaopt report app.nprof --format json | jq .remote_dram_pct
  numaopt report app.nprof --format parquet -o app.parquet
  numaopt report app.nprof --format pprof -o app.pprof; go tool pprof -tagroot object -top app.pprof
  numaopt report app.nprof --format trace -o app.trace.json
  numaopt report app.nprof --format html -o app.html
  numaopt report app.nprof --plots figures
  numaopt report --schema > report.schema.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case opt.schema && len(args) > 0:
				return usagef("--schema takes no profile")
			case !opt.schema && len(args) != 1:
				return usagef("report takes one profile, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				opt.profile = args[0]
			}
			if asJSON && !cmd.Flags().Changed("format") {
				opt.format = "json"
			}
			switch {
			case findFormat(opt.format) == nil:
				return usagef("--format %s: not %s", opt.format, formatNames())
			case opt.top < 0:
				return usagef("--top %d is negative", opt.top)
			case opt.plan != "" && opt.format != "html":
				return usagef("--plan is for --format html")
			case opt.sources && opt.format != "html":
				return usagef("--sources is for --format html")
			case opt.before != "" && opt.plots == "":
				return usagef("--before is for --plots")
			case !slices.Contains(report.SortKeys(), opt.sort):
				return usagef("--sort %s: not %s", opt.sort, oneOf(report.SortKeys()))
			case !slices.Contains(colorModes, opt.color):
				return usagef("--color %s: not %s", opt.color, oneOf(colorModes))
			}
			return run(cmd.Context(), opt)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opt.format, "format", "text", "`FORMAT`: "+formatNames())
	f.BoolVar(&asJSON, "json", false, "the same as --format json")
	f.StringVarP(&opt.output, "output", "o", "", "write to `FILE` (default stdout)")
	f.StringArrayVar(&opt.only, "loop", nil, "only accesses from these loops or functions: `NAME` or FILE:LINE; may be repeated")
	f.StringArrayVar(&opt.only, "only", nil, "the same as --loop: `NAME`, as other commands have it")
	f.StringArrayVar(&opt.objects, "object", nil, "only accesses to these objects: `NAME`, or its first word, symbol or variable; may be repeated")
	f.IntSliceVar(&opt.threads, "thread", nil, "only accesses of the thread of this `RANK`; may be repeated")
	f.StringArrayVar(&opt.shapes, "shape", nil, "an object's array: `OBJECT=N1,N2,…:BYTES`, the slowest dimension first and the bytes of an element; may be repeated")
	f.IntVar(&opt.top, "top", 15, "print `N` rows of objects, loops and first touches; 0 is all")
	f.StringVar(&opt.plan, "plan", "", "with --format html: show what `FILE` changes beside the present")
	f.BoolVar(&opt.sources, "sources", false, "with --format html: take in the text of the lines that access DRAM")
	f.StringVar(&opt.plots, "plots", "", "write figures as SVG and PNG into folder `DIR`")
	f.StringVar(&opt.before, "before", "", "compare with the `PROFILE` of an earlier run in a figure")
	f.StringVar(&opt.sort, "sort", "cost", "order objects and loops by `KEY`: "+oneOf(report.SortKeys())+"; cost is that of remote loads where it is known, else dram")
	f.StringVar(&opt.color, "color", "auto", "emphasis by color: `WHEN` is "+oneOf(colorModes)+"; auto is on a terminal, unless NO_COLOR is set")
	f.BoolVar(&opt.schema, "schema", false, "print the JSON schema of the report and exit")
	return cmd
}

// reportInput is what a format of report is made of.
type reportInput struct {
	profile *profile.Profile
	sum     string // checksum of its file
	opt     reportOptions
	build   report.Options
	color   bool
	// Formats that are written from the profile alone have no report, and a table only
	// where objects are selected.
	report *report.Report
	table  *symbol.Table // of the program's files, as far as they are still there
}

// selected is the part of the profile that the report is of.
func (r *reportInput) selected() (*profile.Profile, error) {
	return access.Select(r.profile, r.build.Selection())
}

// reportFormat is one way to write a report.
type reportFormat struct {
	name  string
	write func(io.Writer, *reportInput) error
	// table is true of formats that are written from the profile alone. They may be
	// large, and go to stdout while they are made.
	table  bool
	binary bool // not for a terminal
}

// reportFormats are all of them, in the order of the help.
var reportFormats = []reportFormat{
	{name: "text", write: func(w io.Writer, r *reportInput) error {
		return report.WriteText(w, r.report, report.TextOptions{Top: r.opt.top, Color: r.color})
	}},
	{name: "json", write: func(w io.Writer, r *reportInput) error { return report.WriteJSON(w, r.report) }},
	{name: "html", write: writeHTML},
	{name: "csv", write: exported(export.WriteCSV), table: true},
	{name: "parquet", write: exported(export.WriteParquet), table: true, binary: true},
	{name: "pprof", write: exported(export.WritePprof), table: true, binary: true},
	{name: "trace", write: exported(writeTrace), table: true},
}

// findFormat is nil where there is no format of that name.
func findFormat(name string) *reportFormat {
	i := slices.IndexFunc(reportFormats, func(f reportFormat) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &reportFormats[i]
}

// formatNames is the names of all.
func formatNames() string {
	var names []string
	for _, f := range reportFormats {
		names = append(names, f.name)
	}
	return oneOf(names)
}

// oneOf is "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

func runReport(_ context.Context, std *stdio, opt reportOptions) error {
	if opt.schema {
		_, err := io.WriteString(std.out, report.Schema)
		return err
	}
	progress := newProgress(std.err, "reading "+opt.profile)
	defer progress.end()
	p, sum, err := profile.ReadFileSum(opt.profile)
	if err != nil {
		return err
	}
	in := &reportInput{
		profile: p, sum: sum, opt: opt, color: toFile(opt.output) == "" && colored(std.out, opt.color),
		build: report.Options{Only: opt.only, Objects: opt.objects, Threads: opt.threads, Sort: opt.sort},
	}
	progress.describe("summing up")
	switch {
	case !findFormat(opt.format).table || opt.plots != "":
		err = in.make()
	case len(opt.objects) > 0: // which may be named by their variables
		err = in.findShapes()
	}
	if err != nil {
		return fmt.Errorf("report %s: %w", opt.profile, err)
	}
	progress.end()
	if opt.plots != "" {
		if err := writePlots(std, in); err != nil {
			return fmt.Errorf("report %s: %w", opt.profile, err)
		}
	}
	if err := writeReport(std, in); err != nil {
		return err
	}
	if opt.format == "text" || opt.plots != "" {
		_, err = fmt.Fprintf(std.err, "next: %s\n", afterReport(opt.profile, in.report))
	}
	return err
}

// pagePatterns is how many patterns of use a page shows of a large profile: those of some
// ten objects, which take two seconds.
const pagePatterns = 30

func (r *reportInput) findShapes() (err error) {
	r.table = &symbol.Table{}
	r.build.Shapes, err = shape.Find(r.profile, r.table, r.opt.shapes)
	return err
}

// make makes the report.
func (r *reportInput) make() (err error) {
	if err := r.findShapes(); err != nil {
		return err
	}
	switch {
	case r.opt.format == "text":
		r.build.PatternRows = r.opt.top
	case r.opt.format == "html" && len(r.profile.Rows) > quickRows:
		r.build.PatternRows = pagePatterns
	}
	r.build.Merged = advice.Merged(r.profile, readSource, codeLines(r.profile, r.table))
	r.report, err = report.Build(r.profile, r.build)
	return err
}

func writeReport(std *stdio, r *reportInput) error {
	format := findFormat(r.opt.format)
	write := func(w io.Writer) error { return format.write(w, r) }
	switch out := toFile(r.opt.output); {
	case out != "":
		progress := newProgress(std.err, "writing "+out)
		defer progress.end()
		if err := safefile.Write(out, write); err != nil {
			return fmt.Errorf("write report %s: %w", out, err)
		}
		return nil
	case format.binary && isTerminal(std.out):
		return usagef("--format %s is binary and stdout is a terminal: name a file by -o, or pipe it", format.name)
	case format.table:
		return throughBuffer(std.out, r.opt.profile, write)
	}
	var b bytes.Buffer // one write, so that a broken pipe is met once
	if err := write(&b); err != nil {
		return err
	}
	_, err := b.WriteTo(std.out)
	return err
}

// throughBuffer writes to out while write makes what is of the profile.
func throughBuffer(out io.Writer, profile string, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(out, 1<<16)
	if err := write(w); err != nil {
		return fmt.Errorf("report %s: %w", profile, err)
	}
	return w.Flush()
}

// toFile is the name of an output file; empty for stdout.
func toFile(name string) string {
	if name == "-" {
		return ""
	}
	return name
}

// afterReport is the command that comes next in a session.
func afterReport(path string, r *report.Report) string {
	base := strings.TrimSuffix(path, filepath.Ext(path))
	switch {
	case r.Run.Nodes < 2:
		return fmt.Sprintf("numaopt profile --topology 4x2 -o %s -- %s", quote([]string{path}), quote(r.Run.Command))
	case !r.Quality.Enough:
		return fmt.Sprintf("a profile with more DRAM accesses: numaopt profile -o %s -- %s", quote([]string{path}), quote(r.Run.Command))
	case r.Good():
		return fmt.Sprintf("numaopt check %s --write-baseline %s", quote([]string{path}), quote([]string{base + ".base.json"}))
	}
	only := ""
	for _, name := range r.Only {
		only += " --only " + quote([]string{name})
	}
	return fmt.Sprintf("numaopt plan %s%s -o %s", quote([]string{path}), only, quote([]string{base + ".plan.yaml"}))
}
