package check

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the one-line verdict.
func (r *Result) WriteText(w io.Writer) error {
	_, err := fmt.Fprintln(w, r.Verdict)
	return err
}

// WriteJSON writes r as one JSON document.
func (r *Result) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

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
	Failure *message `xml:"failure,omitempty"`
	Skipped *message `xml:"skipped,omitempty"`
	Out     string   `xml:"system-out,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes r as one JUnit test case.
func (r *Result) WriteJUnit(w io.Writer) error {
	c := tcase{Class: "numaopt.check", Name: caseName(r.Metric, r.Only), Out: strings.Join(append([]string{r.Verdict}, r.Warnings...), "\n")}
	s := suite{Name: "numaopt check " + strings.Join(r.Command, " "), Tests: 1}
	if !r.Pass {
		s.Failures = 1
		c.Failure = &message{Message: r.Verdict, Text: strings.Join(r.Failures, "\n")}
	}
	s.Cases = []tcase{c}
	return writeXML(w, s)
}

// WriteSkippedJUnit writes a test case that could not be judged, with the reason.
func WriteSkippedJUnit(w io.Writer, m Metric, only []string, reason error) error {
	return writeXML(w, suite{
		Name: "numaopt check", Tests: 1, Skipped: 1,
		Cases: []tcase{{Class: "numaopt.check", Name: caseName(m, only), Skipped: &message{Message: reason.Error()}}},
	})
}

func caseName(m Metric, only []string) string {
	name := "remote DRAM accesses"
	if m == All {
		name = "remote accesses"
	}
	if len(only) > 0 {
		name += " in " + strings.Join(only, ", ")
	}
	return name
}

func writeXML(w io.Writer, s suite) error {
	text, err := xml.MarshalIndent(suites{Suite: s}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}
