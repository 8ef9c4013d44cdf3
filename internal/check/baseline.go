package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/safefile"
)

// BaselineVersion is the version of the baseline file that this package writes; it
// reads version 1 too, one run without objects and loops.
const BaselineVersion = 2

// Baseline is what later profiles are held against. Its file is small JSON that belongs
// in version control: equal figures give equal bytes, one line an object or loop,
// sorted by names that an edit elsewhere in the source does not change.
type Baseline struct {
	Version  int              `json:"numaopt_baseline"`
	Command  []string         `json:"command"`
	Topology string           `json:"topology"`
	Only     []string         `json:"only"`
	Program  BaselineFigure   `json:"program"`
	Objects  []BaselineFigure `json:"objects"`
	Loops    []BaselineFigure `json:"loops"`
}

// BaselineFigure is the remote percentages of one part in each run, ascending, rounded to
// two digits after the point.
type BaselineFigure struct {
	Name string    `json:"name,omitempty"` // empty for the program
	DRAM []float64 `json:"remote_dram_pct"`
	All  []float64 `json:"remote_access_pct"`
	// Sampling is the standard deviation, in points, that a run has from sampling; 0 for
	// full traces.
	Sampling float64 `json:"sampling_points,omitempty"`
}

// figure is a BaselineFigure for one metric.
type figure struct {
	kind     Kind
	name     string
	values   []float64
	sampling float64
}

// NewBaseline makes the baseline of runs, of which there is at least one and which Judge
// has accepted.
func NewBaseline(runs []*Measurement, opt Options) (*Baseline, error) {
	if err := alike(runs); err != nil {
		return nil, err
	}
	first := runs[0]
	b := &Baseline{
		Version: BaselineVersion, Command: program(first.Command), Topology: first.Topology,
		Only: append([]string{}, first.Only...), Objects: []BaselineFigure{}, Loops: []BaselineFigure{},
	}
	for i, x := range first.parts {
		f, ok := newFigure(runs, x, opt)
		switch {
		case i == 0:
			f.Name = ""
			b.Program = f
		case ok && x.kind == Object:
			b.Objects = append(b.Objects, f)
		case ok:
			b.Loops = append(b.Loops, f)
		}
	}
	for _, list := range [][]BaselineFigure{b.Objects, b.Loops} {
		slices.SortFunc(list, func(x, y BaselineFigure) int { return strings.Compare(x.Name, y.Name) })
	}
	return b, nil
}

// newFigure takes the percentages of x, a part of the first run, in all runs; ok tells
// whether it matters in each.
func newFigure(runs []*Measurement, x *part, opt Options) (f BaselineFigure, ok bool) {
	f = BaselineFigure{Name: x.stable, DRAM: []float64{}, All: []float64{}}
	for i, m := range runs {
		y := x
		if i > 0 {
			y = m.part(x.kind, x.stable)
		}
		if y == nil || !m.matters(y, opt) {
			return f, false
		}
		f.DRAM = append(f.DRAM, round(y.traffic.DRAM.RemotePct()))
		f.All = append(f.All, round(y.traffic.All.RemotePct()))
		lo, hi := access.RemoteInterval(m.run, y.traffic.DRAM)
		f.Sampling = max(f.Sampling, round((hi-lo)/(2*1.96)))
	}
	slices.Sort(f.DRAM)
	slices.Sort(f.All)
	return f, true
}

func round(pct float64) float64 { return math.Round(pct*100) / 100 }

// program is the baseline's figure of the whole program.
func (b *Baseline) program(m Metric) (figure, error) {
	f := b.Program.figure(Program, m)
	if len(f.values) == 0 {
		return f, fmt.Errorf("the baseline has no figure for the metric %s; write it again with --write-baseline", m)
	}
	return f, nil
}

// parts are the baseline's figures of objects and loops.
func (b *Baseline) parts(m Metric) []figure {
	var list []figure
	for _, f := range b.Objects {
		list = append(list, f.figure(Object, m))
	}
	for _, f := range b.Loops {
		list = append(list, f.figure(Loop, m))
	}
	return slices.DeleteFunc(list, func(f figure) bool { return len(f.values) == 0 })
}

func (f BaselineFigure) figure(kind Kind, m Metric) figure {
	values := f.DRAM
	if m == All {
		values = f.All
	}
	return figure{kind, f.Name, values, f.Sampling}
}

// WriteFile writes b to path, whole or not at all.
func (b *Baseline) WriteFile(path string) error {
	text, err := b.text()
	if err != nil {
		return err
	}
	if err := safefile.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return fmt.Errorf("write baseline %s: %w", path, err)
	}
	return nil
}

// numbers is a list of numbers over several lines; a string has no line breaks in JSON.
var numbers = regexp.MustCompile(`\[\n\s+([^\[\]"{}]+?)\s*\n\s*\]`)

// text is b with the runs of each figure in a line, so that a difference is read at once.
func (b *Baseline) text() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(b); err != nil {
		return nil, err
	}
	return numbers.ReplaceAllFunc(out.Bytes(), func(list []byte) []byte {
		return append(append([]byte("["), bytes.Join(bytes.Fields(list[1:len(list)-1]), []byte(" "))...), ']')
	}), nil
}

// ReadBaseline reads the baseline at path. The error names the path and the cure.
func ReadBaseline(path string) (*Baseline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read baseline: %w (--write-baseline makes one)", err)
	}
	b, err := parseBaseline(text)
	if err != nil {
		return nil, fmt.Errorf("read baseline %s: %w", path, err)
	}
	return b, nil
}

func parseBaseline(text []byte) (*Baseline, error) {
	var file struct {
		Baseline
		DRAM *float64 `json:"remote_dram_pct"` // version 1
		All  *float64 `json:"remote_access_pct"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&file); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
			return nil, fmt.Errorf("line %d: %w; --write-baseline makes a new one", line, err)
		}
		return nil, fmt.Errorf("%w; --write-baseline makes a new one", err)
	}
	if rest := bytes.TrimLeft(text[dec.InputOffset():], " \t\r\n"); len(rest) > 0 { // a bad merge
		line := 1 + bytes.Count(text[:len(text)-len(rest)], []byte("\n"))
		return nil, fmt.Errorf("line %d: text behind the end of the baseline; --write-baseline makes a new one", line)
	}
	b := &file.Baseline
	switch b.Version {
	case 0:
		return nil, errors.New("not a baseline of numaopt; --write-baseline makes one")
	case 1:
		b.Program = BaselineFigure{DRAM: one(file.DRAM), All: one(file.All)}
		b.Objects, b.Loops = nil, nil
	case BaselineVersion:
	default:
		return nil, fmt.Errorf("version %d, this numaopt reads up to %d: update numaopt", b.Version, BaselineVersion)
	}
	if err := b.check(); err != nil {
		return nil, err
	}
	return b, nil
}

func one(pct *float64) []float64 {
	if pct == nil {
		return nil
	}
	return []float64{*pct}
}

// check returns what is wrong with the figures of b.
func (b *Baseline) check() error {
	named := append(slices.Clone(b.Objects), b.Loops...)
	for _, f := range named {
		if f.Name == "" {
			return errors.New("an object or a loop has no name; --write-baseline makes a new one")
		}
	}
	for _, f := range append(named, b.Program) {
		for _, pct := range append(slices.Clone(f.DRAM), f.All...) {
			if !(pct >= 0 && pct <= 100) {
				return fmt.Errorf("%v is not a percentage; --write-baseline makes a new one", pct)
			}
		}
		if !(f.Sampling >= 0 && f.Sampling <= 100) {
			return fmt.Errorf("sampling_points %v is not a number of points; --write-baseline makes a new one", f.Sampling)
		}
	}
	return nil
}
