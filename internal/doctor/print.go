package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Print writes the report for people: what is there, then what works.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	width := 0
	for _, f := range r.Findings {
		width = max(width, len(f.Name))
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", f.State, width, f.Name, f.Text)
		if f.Fix != "" {
			fmt.Fprintf(&b, "%-7s  %-*s  fix: %s\n", "", width, "", f.Fix)
		}
	}
	b.WriteString("\nWhat works here:\n")
	for _, a := range r.Abilities {
		yes := "yes"
		if !a.Works {
			yes = "no"
		}
		fmt.Fprintf(&b, "%-7s  %-*s  %s\n", yes, width, "numaopt "+a.Name, a.Text)
	}
	fmt.Fprintf(&b, "%-7s  %-*s  %s\n", "yes", width, "report, plan, check", "on profiles from here or elsewhere")
	_, err := io.WriteString(w, b.String())
	return err
}
