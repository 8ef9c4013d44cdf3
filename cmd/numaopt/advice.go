package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"numaopt/internal/advice"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/shape"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// findAdvice is the changes of the source for the plan r of p, and the source files
// that are newer than the profiled run.
func findAdvice(p *profile.Profile, r *planner.Result, opt planOptions) (a *advice.Advice, newer []string, err error) {
	table := &symbol.Table{}
	shapes, err := shape.Find(p, table, opt.shapes)
	if err != nil {
		return nil, nil, err
	}
	a, err = advice.Find(p, r, advice.Options{Planner: opt.planner, Shapes: shapes, MinSave: advice.DefaultMinSave, Code: codeLines(p, table),
		Read: func(file string) []byte {
			text := readSource(file)
			if info, err := os.Stat(file); err == nil && info.ModTime().After(p.Run.Start) {
				newer = append(newer, file)
			}
			return text
		}})
	return a, newer, err
}

// codeLines is the lines that the code of a region's function comes from, where the
// file that ran is still there.
func codeLines(p *profile.Profile, table *symbol.Table) func(region int) map[int]bool {
	return func(i int) map[int]bool {
		r := &p.Regions[i]
		code := r.Code
		if r.Worksharing() { // its loop may be in a function that the region calls
			code = r.Site
		}
		if code.Module < 0 {
			return nil
		}
		m, err := table.Open(p.Modules[code.Module].Path)
		if err != nil || m.BuildID() != p.Modules[code.Module].BuildID {
			return nil
		}
		return m.Lines(r.File, code.Offset)
	}
}

// mostSource is more than any source file that somebody wrote has, in bytes.
const mostSource = 16 << 20

// readSource is a source file, nil if it is not there. Its name is out of a profile, which
// may be anybody's: a device, a pipe or a file without end is no source.
func readSource(file string) []byte {
	st, err := os.Stat(file)
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostSource {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return text
}

// printAdvice writes a to stdout.
func printAdvice(std *stdio, format string, a *advice.Advice) error {
	var b strings.Builder // one write, so that a broken pipe is met once
	if format == "json" {
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(a); err != nil {
			return err
		}
	} else if err := advice.Write(&b, a); err != nil {
		return err
	}
	_, err := io.WriteString(std.out, b.String())
	return err
}

// explainAdvice is a table of the changes of the source.
func explainAdvice(w io.Writer, a *advice.Advice) {
	if len(a.Items) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := explanation(w, 2, 3, "change of the source", "remote", "saves", "for")
	for i := range a.Items {
		x := &a.Items[i]
		of := x.Objects
		if len(of) == 0 {
			of = x.Loops
		}
		saves := fmt.Sprintf("%.1f", x.Saves)
		if x.AtMost {
			saves = "at most " + saves
		}
		t.AppendRow(table.Row{x.Kind, x.Predicted(), saves, strings.Join(of, ", ")})
	}
	t.Render()
}

// withSource says what the changes of the source would leave, "" where that is not
// better by what is worth saying.
func withSource(a *advice.Advice) string {
	if !a.Better() {
		return ""
	}
	unless := ""
	if a.Assumed {
		unless = ", if the loops that it does not understand can be changed, too"
	}
	return fmt.Sprintf("with the source changed as plan --advice prints: %s predicted%s\n", units.FormatPercent(a.Source), unless)
}
