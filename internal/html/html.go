// Package html writes a report as one page that people look at: a file of its own,
// which a browser opens without a server, a network or anything beside it.
//
// # Input
//
// A profile, its report, and perhaps a plan.
//
// # Output
//
// HTML of MaxBytes at most, sources aside, however large the profile: tables have the
// rows that matter most, and maps the finest tiles that there is room for. What was
// cut is said on the page.
//
// # Method
//
// What is text is written by html/template and can be read, printed and searched
// without scripts. What is drawn is data in JSON, packed, which page.js gives to Apache
// ECharts once the page was painted. All that comes from a profile goes through the escaping of
// html/template, and the page's own policy (Content-Security-Policy) allows it neither
// a script of another's nor a request.
//
// # Limits
//
// Browsers of 2024 and later: light-dark() of CSS, DecompressionStream.
package html

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/topo"
	"numaopt/internal/units"
)

// MaxBytes is the most that a page without sources takes: what mail takes and a browser
// opens in a second. ECharts is half a megabyte of it.
const MaxBytes = 5_000_000

//go:embed assets
var assets embed.FS

// Input is what a page is made of.
type Input struct {
	Profile *profile.Profile // restricted as the report is
	Report  *report.Report
	Next    string     // the command that comes next in a session
	Plan    *plan.Plan // nil is none
	PlanIs  string     // its file name
	// OtherPlan is true where the plan was made from another profile.
	OtherPlan bool
	// Source reads a source file by its path in the debug information; nil leaves
	// source out.
	Source func(path string) Source
}

// Write writes the page of in.
func Write(w io.Writer, in *Input) error {
	t, err := template.New("page.tmpl").ParseFS(assets, "assets/page.tmpl")
	if err != nil {
		return err
	}
	p, err := newPage(in)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// page is what the template prints. Names in it are escaped there.
type page struct {
	Policy          string
	Style           template.CSS
	Script          template.JS
	ECharts, Packed template.HTML // the library and Data, packed

	*report.Report
	Title, Tone  string
	Next, PlanIs string
	OtherPlan    bool
	Figures      []figure
	Bars         []bar
	Facts        [][2]string
	Counted      string // what the figures of memory are of

	Objects, Loops, Threads, FirstTouch, Wants, Lines, Plan, PlanLoops *table
	Conflicts                                                          []conflict
	PlanNotes                                                          []string
	Source                                                             *table
	Sources                                                            []sourceFile
	Timed                                                              bool // lines of source have a latency
	Data                                                               *data
}

// data is what page.js draws.
type data struct {
	Counted  string         `json:"counted"`
	Nodes    int            `json:"nodes"`
	Columns  []column       `json:"columns"` // of heat
	Heat     []*heatMap     `json:"heat"`
	HeatCut  string         `json:"heatCut"`
	Matrix   *report.Matrix `json:"matrix"`
	Latency  *latencyData   `json:"latency"`
	Timeline *timelineData  `json:"timeline"`
}

// figure is a number of the first screen.
type figure struct{ Name, Value, Note string }

// bar is a whole and its parts.
type bar struct {
	Name  string
	Parts []part
}

type part struct {
	Name, Class string
	Pct         report.Pct
}

func newPage(in *Input) (*page, error) {
	r := in.Report
	p := &page{
		Report: r, Title: strings.Join(r.Run.Command, " "), Tone: tone(r), Next: in.Next, PlanIs: in.PlanIs, OtherPlan: in.OtherPlan,
		Figures: figures(in), Bars: bars(in), Facts: facts(r), Counted: counted(r),
		Objects: objects(in), Loops: loops(r), Threads: threads(r), FirstTouch: firstTouches(r), Wants: wants(r), Lines: lines(r),
		Conflicts: conflicts(r),
	}
	if in.Plan != nil {
		p.planned(in)
	}
	if len(in.Profile.CodeUses) > 0 {
		p.annotated(in)
	}
	p.Data = &data{Counted: p.Counted, Nodes: r.Run.Nodes, Matrix: matrix(r), Latency: latencies(in.Profile), Timeline: timelines(in.Profile)}
	p.Data.heat(in)
	return p, p.embed()
}

// embed takes the style, the scripts and the data in, and allows these scripts alone.
func (p *page) embed() error {
	script, echarts := asset("page.js"), asset("echarts/echarts.min.js")
	p.Style, p.Script, p.ECharts = template.CSS(asset("page.css")), template.JS(script), packed(echarts)
	p.Policy = fmt.Sprintf("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '%s' '%s'", digest(script), digest(echarts))
	text, err := json.Marshal(p.Data)
	if err != nil {
		return err
	}
	p.Packed = packed(text)
	return nil
}

func asset(name string) []byte {
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is in the binary
	}
	return text
}

// packed is text as base64 of gzip: a browser paints a page once it has read all of it,
// and this is a third to read.
func packed(text []byte) template.HTML {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		panic(err) // memory does not refuse
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return template.HTML(base64.StdEncoding.EncodeToString(b.Bytes()))
}

// digest names a script in a policy.
func digest(script []byte) string {
	sum := sha256.Sum256(script)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// counted is what the figures of memory are of.
func counted(r *report.Report) string {
	if r.Run.Source == "faults" {
		return "page faults"
	}
	return "DRAM accesses"
}

// tone is how the verdict is shown.
func tone(r *report.Report) string {
	switch {
	case r.Good():
		return "good"
	case r.Quality.Enough && r.Run.Nodes > 1 && r.Accesses > 0:
		return "bad"
	}
	return "unsure"
}

// figures are the numbers of the first screen.
func figures(in *Input) []figure {
	r := in.Report
	what := counted(r)
	list := []figure{{"Remote " + what, r.RemoteDRAM.String(), interval(r)}}
	if in.Plan != nil {
		list = append(list, figure{"With the plan", units.FormatPercent(in.Plan.Predict.RemoteAfter), "remote, as predicted"})
	}
	list = append(list,
		figure{"Best placement", r.BestPlacement.String(), "remote with every page on the node that uses it most"},
		figure{"Uniformly shared", r.Sharing.UniformlyShared.String(), fmt.Sprintf("of the %v touched, used from several nodes", units.Bytes(r.Sharing.TouchedBytes))})
	if i := float64(r.Imbalance); !math.IsNaN(i) && r.Run.Nodes > 1 {
		list = append(list, figure{"Imbalance", fmt.Sprintf("%.2f", i), fmt.Sprintf("busiest memory over the mean: 1 is even, %d is one node for all", r.Run.Nodes)})
	}
	return list
}

// interval says how sure the remote percentage is.
func interval(r *report.Report) string {
	if ci := r.RemoteDRAMCI; ci != nil {
		return fmt.Sprintf("95 %% interval %v to %v", ci[0], ci[1])
	}
	return fmt.Sprintf("of %s, all counted", quantity(r.DRAMAccesses))
}

// bars split accesses and memory.
func bars(in *Input) []bar {
	r := in.Report
	if r.Accesses == 0 {
		return nil
	}
	flow := func(name string, f *report.Flow) bar {
		return bar{name, []part{{"local", "local", f.LocalPct}, {"remote", "remote", f.RemotePct}, {"unknown", "unknown", f.UnknownPct}}}
	}
	list := []bar{flow(counted(r), &r.DRAM)}
	if in.Plan != nil {
		remote := report.Pct(in.Plan.Predict.RemoteAfter)
		list = append(list, bar{"with the plan", []part{{"local", "local", 100 - remote}, {"remote", "remote", remote}}})
	}
	s := &r.Sharing
	return append(list, flow("all accesses", &r.All), bar{"touched memory", []part{
		{"private", "private", s.Private},
		{"one thread", "single", s.SingleThread},
		{"one node", "node", s.NonShared - s.SingleThread},
		{"shared", "shared", s.WithoutSerialInit},
		{"shared by serial initialisation alone", "serial", s.UniformlyShared - s.WithoutSerialInit},
	}})
}

// facts are where the profile comes from and how far to trust it.
func facts(r *report.Report) [][2]string {
	run := &r.Run
	list := [][2]string{
		{"command", strings.Join(run.Command, " ")},
		{"machine", fmt.Sprintf("%s: %d nodes, %d CPUs, host %s", run.Topology, run.Nodes, run.CPUs, run.Host)},
		{"source", source(run)},
		{"threads bound", strings.Join(append([]string{run.Bind}, run.Pinned...), ", ")},
		{"caches of the model", fmt.Sprintf("L1 %s, L2 %s, LLC %s, lines of %d bytes", run.Cache.L1, run.Cache.L2, run.Cache.LLC, run.Cache.LineBytes)},
		{"recorded", fmt.Sprintf("%s, in %.1f s, by numaopt %s", run.Start, run.Elapsed, run.Version)},
		{"matched", fmt.Sprintf("%v of the %s outside stacks and program image fall in a known object", r.Match, counted(r))},
		{"covered", fmt.Sprintf("%v of the pages that became resident have a counted access", r.Coverage)},
	}
	for _, only := range [][2]string{{"only loops", strings.Join(r.Only, ", ")}, {"only objects", strings.Join(r.OnlyObjects, ", ")}, {"only threads", topo.FormatList(r.OnlyThreads)}} {
		if only[1] != "" {
			list = append(list, only)
		}
	}
	if run.Plan != "" {
		list = append(list, [2]string{"plan in force", run.Plan})
	}
	return list
}

func source(run *report.Run) string {
	switch {
	case run.Source == "emulate":
		return "emulation: every access counted"
	case run.Source == "faults":
		return "page faults: every one recorded"
	}
	return fmt.Sprintf("%s: one access in %d", run.Source, run.Period)
}

// matrix is nil where there is nothing to show: one node, or none that was used.
func matrix(r *report.Report) *report.Matrix {
	if len(r.Matrix.DRAM) < 2 || r.Accesses == 0 {
		return nil
	}
	return &r.Matrix
}
