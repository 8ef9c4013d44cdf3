package check

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"strings"
)

// mostAnnotations is how many errors GitHub shows of one step.
const mostAnnotations = 10

// writeGitHub writes workflow commands: an ::error at each line of source behind what
// failed, a ::warning for each warning, and the verdict as text.
//
// Source: GitHub's "Workflow commands" and toolkit/packages/core/src/command.ts for the
// escapes.
func writeGitHub(w io.Writer, r *Result) error {
	var b bytes.Buffer
	if r.NoVerdict != "" {
		command(&b, "warning", nil, r.Verdict)
	} else {
		fmt.Fprintln(&b, oldCommand.Replace(r.Verdict))
	}
	for _, text := range r.Warnings {
		command(&b, "warning", nil, text)
	}
	for _, x := range r.annotations() {
		command(&b, "error", x.at, x.text)
	}
	_, err := b.WriteTo(w)
	return err
}

// oldCommand breaks the prefix of the runner's older commands, ##[error], which it finds
// anywhere in a line and which has no escape.
var oldCommand = strings.NewReplacer("##[", "## [")

// annotation is a text at a line; at is nil where no line is known.
type annotation struct {
	at   *Place
	text string
}

// annotations are one for each line behind what failed, parts before the program; objects
// first touched at one line share it. Where a part is above the baseline, the program is
// by that, too.
func (r *Result) annotations() []annotation {
	failed := r.failed()
	if len(failed) > 1 && failed[0] == &r.Figure {
		failed = failed[1:]
		if r.MaxRemote != nil && hundredths(r.Remote) > hundredths(*r.MaxRemote) {
			failed = append(failed, &r.Figure)
		}
	}
	type line struct {
		file string
		n    int
	}
	at := make(map[line]int) // in list
	var list []annotation
	for _, f := range failed {
		head := f.claim(r.Metric) + ", " + strings.Join(f.Failures, " and ")
		if len(f.Places) == 0 {
			list = append(list, annotation{text: head})
		}
		told := make(map[line]bool) // of f
		for i := range f.Places {
			x := &f.Places[i]
			here := line{x.File, x.Line}
			text := fmt.Sprintf("%s; %.0f %% of these are to %s, %s here", head, x.RemotePct, x.Object, x.what())
			if n, ok := at[here]; !ok {
				at[here] = len(list)
				list = append(list, annotation{x, text})
			} else if f.Kind == Object && !told[here] {
				list[n].text += "\n" + text
			}
			told[here] = true
		}
	}
	return list[:min(mostAnnotations, len(list))]
}

// command writes one workflow command.
func command(b *bytes.Buffer, level string, at *Place, text string) {
	message := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	where := ""
	if at != nil {
		where = fmt.Sprintf(" file=%s,line=%d,title=numaopt", property.Replace(at.File), at.Line)
	}
	fmt.Fprintf(b, "::%s%s::%s\n", level, where, message.Replace(oldCommand.Replace(text)))
}

// writeMarkdown writes a summary of the job: the verdict, a table of what was held
// against something, the lines behind what failed, and warnings.
func writeMarkdown(w io.Writer, r *Result) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### numaopt check\n\n%s\n", markdown(r.Verdict))
	if r.NoVerdict == "" {
		r.table(&b)
		r.sources(&b)
	}
	if len(r.Warnings) > 0 {
		b.WriteString("\n")
	}
	for _, text := range r.Warnings {
		fmt.Fprintf(&b, "- Warning: %s\n", markdown(text))
	}
	b.WriteString("\n")
	_, err := b.WriteTo(w)
	return err
}

func (r *Result) table(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n| | remote, of its %s | of all | limit | baseline | |\n|---|--:|--:|--:|--:|---|\n", r.Metric.accesses())
	for _, f := range r.figures() {
		if f.Kind != Program && f.MaxRemote == nil && f.Baseline == nil {
			continue
		}
		remote, share, word := percent(f.Remote), fmt.Sprintf("%.1f %%", f.SharePct), "ok"
		switch {
		case f.NoVerdict != "":
			remote, share, word = "", "", "no verdict"
		case len(f.Failures) > 0:
			word = "**FAIL**"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", markdown(f.title()), remote, share, optional(f.MaxRemote), optional(f.Baseline), word)
	}
}

func optional(pct *float64) string {
	if pct == nil {
		return ""
	}
	return percent(*pct)
}

func (r *Result) sources(b *bytes.Buffer) {
	failed := r.failed()
	if len(failed) > 0 {
		b.WriteString("\n")
	}
	for _, f := range failed {
		for i := range f.Places {
			x := &f.Places[i]
			file := x.File
			if filepath.IsAbs(file) {
				file = filepath.Base(file)
			}
			fmt.Fprintf(b, "- %s: %.0f %% of its remote accesses are to %s, %s at %s\n",
				markdown(f.title()), x.RemotePct, markdown(x.Object), x.what(), markdown(fmt.Sprintf("%s:%d", file, x.Line)))
		}
	}
}

// markdown escapes what a name could have that Markdown or HTML takes for its own.
func markdown(s string) string {
	s = html.EscapeString(s)
	for _, c := range []string{`\`, "`", "*", "_", "[", "]", "|", "~", "$"} {
		s = strings.ReplaceAll(s, c, `\`+c)
	}
	return s
}
