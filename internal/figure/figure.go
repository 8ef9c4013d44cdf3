// Package figure draws a profile as a reader of a paper wants to see it.
//
// # Input
//
// A profile, perhaps restricted by access.Only, its report, and for a comparison
// the profile of an earlier run.
//
// # Output
//
// Figures, each as wide as a column (8.5 cm) or a page (17 cm) of a paper, as SVG
// with text that can be selected and as PNG. Equal input gives equal bytes.
//
// # Method
//
// What is drawn is the report's, and of heat and timeline. Colours are those of Okabe
// and Ito, and of ColorBrewer's YlGnBu where they stand for a quantity: both are told
// apart by colour-blind people, and blue for local and orange for remote also in grey.
//
// # Limits
//
// PNG has letters of Latin, Greek and Cyrillic; SVG has whatever the viewer has.
package figure

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"numaopt/internal/profile"
	"numaopt/internal/report"
	"numaopt/internal/topo"
)

// Input is what figures are drawn of.
type Input struct {
	Profile *profile.Profile // restricted as the report is
	Report  *report.Report
	// Before is the same of an earlier run; nil where there is nothing to compare with.
	Before *Input
}

// Options bound what is drawn, so that it stays readable at paper width.
type Options struct {
	// Objects is how many objects have a heatmap: more do not fit on a page.
	Objects int
	// LeastPct is the share of the DRAM accesses, in per cent, below which an object
	// has no heatmap and no bar: placing it better gains less than runs differ by.
	LeastPct float64
	// Tiles and Columns bound a heatmap's cells: a cell of less than half a
	// millimetre is not seen in print.
	Tiles, Columns int
	// Bars is how many bars a figure has, the last of them of all that is left: so many
	// fill the height of a page.
	Bars int
	// Names is how many objects and loops are listed where they are few of many.
	Names int
	// Parts is how many parts of the run a timeline shows: four a millimetre.
	Parts int
}

// DefaultOptions fit a page of a paper.
func DefaultOptions() Options {
	return Options{Objects: 4, LeastPct: 1, Tiles: 128, Columns: 64, Bars: 60, Names: 6, Parts: 600}
}

// Figure is one picture.
type Figure struct {
	Name string // of its files, without the ending
	*sheet
}

// kind is one kind of figure. Of returns why there is none instead, where the profile
// has no data for it; both are empty where nobody asked for it.
type kind struct {
	name, shows string
	of          func(*Input, Options) (*sheet, string)
}

// kinds are all of them, in the order of the index.
var kinds = []kind{
	{"sharing", "pages, accesses and DRAM accesses by class of page (CGO'12 fig. 3)", sharing},
	{"accesses", "local and remote DRAM accesses of each node (CGO'12 fig. 2, TBB-NUMA fig. 15)", accesses},
	{"matrix", "DRAM accesses by node of the thread and of the memory", matrix},
	{"heatmap", "which thread uses which pages of the objects that matter most", heatmap},
	{"latency-cdf", "how long loads took, by the level that served them; samples only", latencyCDF},
	{"latency-ranges", "which loads the latency is of, by object and loop; samples only", latencyRanges},
	{"timeline", "which thread worked in which loop, on data of which node, and when", timelines},
	{"before-after", "remote DRAM accesses by object in two runs, with --before", beforeAfter},
}

// Index is a line for each kind of figure: its name and what it shows.
func Index() string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-15s %s\n", k.name, k.shows)
	}
	return b.String()
}

// Missing is figures for which there is no data.
type Missing struct {
	Names []string
	Why   string
}

// Of returns the figures of in, and those that it has no data for.
func Of(in *Input, opt Options) (figures []Figure, missing []Missing) {
	for _, k := range kinds {
		s, why := k.of(in, opt)
		last := len(missing) - 1
		switch {
		case s != nil:
			s.subtitle = in.origin()
			figures = append(figures, Figure{k.name, s})
		case why == "":
		case last >= 0 && missing[last].Why == why:
			missing[last].Names = append(missing[last].Names, k.name)
		default:
			missing = append(missing, Missing{[]string{k.name}, why})
		}
	}
	return figures, missing
}

const noAccesses = "the profile has no DRAM accesses"

// faults reports whether what is counted is page faults: they tell who touched pages
// first, and not who used them.
func (in *Input) faults() bool { return in.Report.Run.Source == "faults" }

// counted is what the numbers are of.
func (in *Input) counted() string {
	if in.faults() {
		return "page faults"
	}
	return "DRAM accesses"
}

// origin says what was run, in the words of a figure's caption.
func (in *Input) origin() string {
	r := in.Report
	s := "program"
	if len(r.Run.Command) > 0 {
		s = filepath.Base(r.Run.Command[0])
	}
	s += ", " + r.Run.Topology
	switch {
	case in.faults():
		s += ", page faults"
	case r.Quality.Exact:
		s += ", every access counted"
	default:
		s += fmt.Sprintf(", %d DRAM samples", r.Quality.DRAMSamples)
	}
	if r.Run.Plan != "" {
		s += ", under " + r.Run.Plan
	}
	if only := slices.Concat(r.Only, r.OnlyObjects); len(only) > 0 {
		s += ", only " + strings.Join(only, ", ")
	}
	if len(r.OnlyThreads) > 0 {
		s += ", threads " + topo.FormatList(r.OnlyThreads)
	}
	return s
}

// The widths of a column and of a page.
const (
	columnWidth = 8.5 * vg.Centimeter
	pageWidth   = 17 * vg.Centimeter
)
