package check

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// The JUnit elements that CI systems read: github.com/testmoapp/junitxml.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suite   suite    `xml:"testsuite"`
}

type suite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Errors   int     `xml:"errors,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Cases    []tcase `xml:"testcase"`
}

type tcase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr,omitempty"`
	Failure *message `xml:"failure,omitempty"`
	Skipped *message `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes a test case for the program and one for each object and loop.
func writeJUnit(w io.Writer, r *Result) error {
	s := suite{Name: strings.TrimSpace("numaopt check " + strings.Join(r.Command, " "))}
	for i, f := range r.figures() {
		c := tcase{Class: "numaopt.check", Name: caseName(r, f)}
		if i == 0 {
			c.Out = strings.Join(append([]string{r.Verdict}, r.Warnings...), "\n")
		}
		switch {
		case f.NoVerdict != "":
			s.Skipped++
			c.Skipped = &message{Message: f.NoVerdict}
		case len(f.Failures) > 0:
			s.Failures++
			c.Failure = &message{Message: f.sentence(r.Metric), Text: strings.Join(append(f.Failures[:len(f.Failures):len(f.Failures)], f.lines()...), "\n")}
			if len(f.Places) > 0 {
				c.File = f.Places[0].File
			}
		}
		s.Cases = append(s.Cases, c)
	}
	s.Tests = len(s.Cases)
	text, err := xml.MarshalIndent(suites{Suite: s}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func caseName(r *Result, f *Figure) string {
	name := "remote " + r.Metric.accesses()
	if f.Kind == Object || f.Kind == Loop {
		name += ", " + f.title()
	}
	if len(r.Only) > 0 {
		name += " in " + strings.Join(r.Only, ", ")
	}
	return name
}

// lines names the places of f, one a line.
func (f *Figure) lines() []string {
	var lines []string
	for i := range f.Places {
		x := &f.Places[i]
		lines = append(lines, fmt.Sprintf("%s:%d: %.0f %% of the remote accesses are to %s, %s here", x.File, x.Line, x.RemotePct, x.Object, x.what()))
	}
	return lines
}
