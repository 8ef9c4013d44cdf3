package advice

import (
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/jedib0t/go-pretty/v6/text"

	"numaopt/internal/units"
)

// sheet is the text of all items. Explanations are wrapped, changes are not: they are
// to be copied.
var sheet = template.Must(template.New("advice").Funcs(template.FuncMap{
	"percent": units.FormatPercent,
	"wrap":    wrapped,
	"title":   title,
	"indent":  indented,
	"inc":     func(i int) int { return i + 1 },
}).Parse(`{{if not .Items}}No change of the source that is known here would save a point beyond the plan, which leaves {{percent .Automatic}} of the DRAM accesses remote.
{{range .Notes}}{{wrap "Note: " .}}{{end}}{{else}}The plan alone leaves {{percent .Automatic}} of the DRAM accesses remote; with the changes below {{percent .Source}} are predicted{{if .Assumed}}, if the loops whose source is not understood can be changed, too{{end}}.{{if gt (len .Items) 1}}
The figure of each is for it alone; they do not add up.{{end}}
{{range .Notes}}{{wrap "Note: " .}}{{end}}{{range $i, $x := .Items}}
{{inc $i}}. {{title $x}}
{{wrap "   " $x.Why}}{{range .Loops}}{{wrap "     - " .}}{{end}}{{range .Respect}}{{wrap "   To respect: " .}}{{end}}{{range .Notes}}{{wrap "   Note: " .}}{{end}}{{range .Changes}}
{{wrap "   " (print .Where ":")}}
{{indent .Text}}{{end}}{{end}}{{end}}`))

// Write prints a for people.
func Write(w io.Writer, a *Advice) error { return sheet.Execute(w, a) }

// title says what an item is for, and what it is predicted to leave.
func title(x Item) string {
	what := map[Kind]string{
		Phases:     "Block-exclusive blocks and phases for ",
		Pad:        "Rows of whole pages for ",
		Owner:      "Each node works on its own part of ",
		Schedule:   "Another schedule for ",
		Replicate:  "A copy a node of ",
		Separate:   "Separate ",
		Initialise: "Initialise in parallel: ",
		Blockwise:  "Blockwise transposition of ",
	}[x.Kind]
	list := x.Objects
	if x.Kind == Schedule {
		list = nil
		for _, l := range x.Loops {
			name, _, _ := strings.Cut(l, ": ")
			list = append(list, name)
		}
	}
	return fmt.Sprintf("%s%s: %s remote", what, strings.Join(list, ", "), x.Predicted())
}

// Predicted is the remote share with x done: "2.1 %", or "at least 2.1 %".
func (x *Item) Predicted() string {
	if x.AtMost {
		return "at least " + units.FormatPercent(x.Remote)
	}
	return units.FormatPercent(x.Remote)
}

const width = 100

// wrapped is s behind label, lines below it indented as far.
func wrapped(label, s string) string {
	pad := strings.Repeat(" ", len(label))
	body := text.WrapSoft(s, width-len(label))
	list := strings.Split(body, "\n")
	for i := range list {
		list[i] = strings.TrimRight(list[i], " ")
	}
	return label + strings.Join(list, "\n"+pad) + "\n"
}

func indented(s string) string {
	var b strings.Builder
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		b.WriteString(strings.TrimRight("       "+strings.ReplaceAll(l, "\t", "    "), " ") + "\n")
	}
	return b.String()
}
