package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"numaopt/internal/safefile"
	"numaopt/internal/units"
)

// end is the last line of a plan file, YAML's mark for the end of a document; a
// file without it was cut short.
const end = "..."

const headComment = `# A numaopt plan: which node each page of a program's data should be on, and which
# threads run which part of a loop. Review and edit it like source; "numaopt plan
# --schema" describes every field, and
#     numaopt apply THIS-FILE -- PROGRAM ARGS
# runs the program with it.
`

// WriteFile writes p to path, whole or not at all.
func WriteFile(path string, p *Plan) error {
	if err := safefile.Write(path, func(w io.Writer) error { return Write(w, p) }); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Write writes p as YAML. The same plan gives the same bytes. Each entry stands
// below a comment that says why and what it is predicted to change.
func Write(w io.Writer, p *Plan) error {
	if err := p.Check(); err != nil {
		return err
	}
	text, err := p.text()
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

func (p *Plan) text() (string, error) {
	var b strings.Builder
	b.WriteString(headComment)
	if err := put(&b, p.head()); err != nil {
		return "", err
	}
	if len(p.Objects) == 0 {
		b.WriteString("objects: []\n")
	} else {
		b.WriteString("objects:\n")
	}
	for i := range p.Objects {
		e := &p.Objects[i]
		b.WriteString("\n" + comment(e.Why) + comment(fmt.Sprintf("%v; %s", e.Place, effect("to", e.Predict))))
		if err := put(&b, []Entry{*e}); err != nil {
			return "", fmt.Errorf("object %q: %w", e.Name, err)
		}
	}
	if err := p.loops(&b); err != nil {
		return "", err
	}
	if len(p.Notes) > 0 {
		b.WriteString("\n")
		if err := put(&b, tail{p.Notes}); err != nil {
			return "", err
		}
	}
	b.WriteString(end + "\n")
	return b.String(), nil
}

// loops writes the loops, if there are any.
func (p *Plan) loops(b *strings.Builder) error {
	if len(p.Loops) > 0 {
		b.WriteString("\nloops:\n")
	}
	for i := range p.Loops {
		l := &p.Loops[i]
		b.WriteString("\n" + comment(l.Why) + comment(fmt.Sprintf("%v; %s", l, effect("in", l.Predict))))
		if err := put(b, []Loop{*l}); err != nil {
			return fmt.Errorf("loop %q: %w", l.Name, err)
		}
	}
	return nil
}

// head and tail are the parts of a plan before and after its objects, so that
// comments can be put between these.
type head struct {
	Version int     `yaml:"numaopt-plan"`
	From    From    `yaml:"from"`
	Predict Predict `yaml:"predicted"`
	Threads Threads `yaml:"threads"`
	// PageSize as in Plan.
	PageSize units.Bytes `yaml:"page-size,omitempty"`
}

type tail struct {
	Notes []string `yaml:"notes"`
}

func (p *Plan) head() head { return head{p.Version, p.From, p.Predict, p.Threads, p.PageSize} }

// effect is a prediction in words, of the accesses "to" an object or "in" a loop.
func effect(what string, p Predict) string {
	return fmt.Sprintf("remote DRAM accesses %s it %.1f %% -> %.1f %%", what, p.RemoteBefore, p.RemoteAfter)
}

func put(b *strings.Builder, v any) error {
	text, err := yaml.MarshalWithOptions(v,
		yaml.UseLiteralStyleIfMultiline(true),
		yaml.CustomMarshaler[uint64](func(v uint64) ([]byte, error) { return fmt.Appendf(nil, "%#x", v), nil }))
	if err != nil {
		return err
	}
	b.Write(text)
	return nil
}

// comment is text as comment lines; "" gives none.
func comment(text string) string {
	var b strings.Builder
	for _, line := range wrap(strings.Fields(text), lineWidth-2) {
		b.WriteString("# " + line + "\n")
	}
	return b.String()
}
