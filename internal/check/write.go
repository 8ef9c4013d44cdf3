package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"numaopt/internal/ident"
)

// Format is a way to write a result.
type Format struct {
	Name  string
	Write func(io.Writer, *Result) error
}

// Formats are all of them, in the order of the help.
var Formats = []Format{
	{"text", writeText}, {"json", writeJSON}, {"junit", writeJUnit}, {"sarif", writeSARIF}, {"github", writeGitHub}, {"markdown", writeMarkdown},
}

// NoResult stands for a profile that supports no verdict, for the formats to say so.
// The reason says that there is none.
func NoResult(m Metric, only []string, reason error) *Result {
	r := &Result{Metric: m, Only: only, Verdict: ident.Printable(reason.Error()), Parts: []*Figure{}}
	r.NoVerdict = reason.Error()
	return r
}

// writeText writes the verdict in one line, and below it one for each object and loop
// that has a limit of its own or failed. Without a verdict it writes nothing: the reason is an error.
func writeText(w io.Writer, r *Result) error {
	if r.NoVerdict != "" {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, r.Verdict)
	for _, f := range r.told() {
		fmt.Fprintf(&b, "%s%s\n", f.word(), f.sentence(r.Metric))
	}
	_, err := b.WriteTo(w)
	return err
}

// told is the parts that a reader wants to see.
func (r *Result) told() []*Figure {
	var list []*Figure
	for _, f := range r.Parts {
		if f.MaxRemote != nil || len(f.Failures) > 0 {
			list = append(list, f)
		}
	}
	return list
}

func (f *Figure) word() string {
	switch {
	case f.NoVerdict != "":
		return "  no verdict: "
	case len(f.Failures) > 0:
		return "  FAIL: "
	}
	return "  ok: "
}

// title is "object u", "loop a.c:5 (f)".
func (f *Figure) title() string {
	if f.Kind == Program {
		return "program"
	}
	return string(f.Kind) + " " + f.Name
}

// claim is the figure in words.
func (f *Figure) claim(m Metric) string {
	if f.Kind == Program {
		return fmt.Sprintf("%s of %s are remote", percent(f.Remote), m.accesses())
	}
	return fmt.Sprintf("%s: %s of its %s are remote", f.title(), percent(f.Remote), m.accesses())
}

// sentence is how f stands, and for one that failed the line behind most of it.
func (f *Figure) sentence(m Metric) string {
	if f.NoVerdict != "" {
		return f.title() + ": " + f.NoVerdict
	}
	s := f.claim(m) + ", " + strings.Join(f.said, " and ")
	if len(f.Failures) > 0 && len(f.Places) > 0 {
		x := &f.Places[0]
		s += fmt.Sprintf("; %.0f %% of these are to %s, %s at %s", x.RemotePct, x.Object, x.what(), x)
	}
	return s
}

// writeJSON writes r as one JSON document; pass is null where there is no verdict.
func writeJSON(w io.Writer, r *Result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if r.NoVerdict != "" {
		return enc.Encode(map[string]any{"pass": nil, "verdict": r.Verdict})
	}
	return enc.Encode(r)
}
