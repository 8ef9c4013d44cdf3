package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"numaopt/internal/html"
	"numaopt/internal/plan"
	"numaopt/internal/profile"
)

// writeHTML writes the page of a report, with the plan of --plan.
func writeHTML(w io.Writer, r *reportInput) error {
	p, err := r.selected()
	if err != nil {
		return err
	}
	in := &html.Input{Profile: p, Report: r.report, Next: afterReport(r.opt.profile, r.report)}
	if path := r.opt.plan; path != "" {
		if in.Plan, err = plan.ReadFile(path); err != nil {
			return err
		}
		in.OtherPlan = in.Plan.From.Profile != r.sum
		in.PlanIs, in.Next = path, fmt.Sprintf("numaopt apply %s -- %s", quote([]string{path}), quote(r.report.Run.Command))
	}
	if r.opt.sources {
		in.Source = func(path string) html.Source { return sourceOf(&r.profile.Run, path) }
	}
	return html.Write(w, in)
}

// sourceOf reads a source file of a profiled program: where the debug information says
// that it is, or below the directory that the program or numaopt runs in.
func sourceOf(run *profile.Run, path string) html.Source {
	at := []string{path}
	if !filepath.IsAbs(path) {
		at = []string{filepath.Join(run.Dir, path), path}
	}
	for _, file := range append(at, filepath.Join(run.Dir, filepath.Base(path))) {
		st, err := os.Stat(file)
		text := readSource(file)
		if err != nil || text == nil {
			continue
		}
		if st.ModTime().After(run.Start) {
			return html.Source{Text: text, Doubt: "changed since the profile was made: lines may be off"}
		}
		return html.Source{Text: text}
	}
	return html.Source{Doubt: "not found"}
}
