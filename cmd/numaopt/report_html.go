package main

import (
	"fmt"
	"io"

	"numaopt/internal/html"
	"numaopt/internal/plan"
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
		in.PlanIs, in.Next = path, fmt.Sprintf("numaopt apply %s -- %s", quote([]string{path}), quote(r.report.Run.Command))
	}
	return html.Write(w, in)
}
