package check

import (
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

const ruleID = "remote-accesses"

// writeSARIF writes a SARIF 2.1.0 log with one result for each failed figure, at the lines
// where the pages were first touched. Files below the root of Result.Relative are
// relative, as code scanning wants them.
func writeSARIF(w io.Writer, r *Result) error {
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(sarif.NewToolComponent().WithName("numaopt")))
	run.AddRule(ruleID).WithName("RemoteAccesses").
		WithShortDescription(multiformat("Too many accesses are remote")).
		WithFullDescription(multiformat("More accesses than allowed are served by another node than that of the accessing CPU.")).
		WithHelp(multiformat("A page lies on the node of the thread that touches it first. Let each thread touch first what it later uses, in a loop with the same static schedule, or place the pages by a plan: numaopt plan."))
	for _, f := range r.failed() {
		result := sarif.NewRuleResult(ruleID).WithRuleIndex(0).WithLevel("error").
			WithMessage(plainMessage(f.sentence(r.Metric))).
			WithPartialFingerprints(map[string]string{"numaopt/v1": string(f.Kind) + " " + f.Stable})
		for i := range f.Places {
			result.AddLocation(f.Places[i].sarif().WithMessage(plainMessage(f.lines()[i])))
		}
		run.AddResult(result)
	}
	told := []*sarif.Notification{}
	notes := r.Warnings
	if r.NoVerdict != "" {
		notes = append([]string{r.Verdict}, notes...)
	}
	for _, text := range notes {
		told = append(told, sarif.NewNotification().WithLevel("warning").WithMessage(plainMessage(text)))
	}
	run.AddInvocation(sarif.NewInvocation().WithExecutionSuccessful(r.NoVerdict == "").WithToolExecutionNotifications(told))
	log := sarif.NewReport()
	log.AddRun(run)
	return log.PrettyWrite(w)
}

// plainMessage is text in which no name is a link.
//
// Source: SARIF 2.1.0, §3.11.6.
func plainMessage(text string) *sarif.Message {
	return sarif.NewTextMessage(strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`).Replace(text))
}

func multiformat(text string) *sarif.MultiformatMessageString {
	return sarif.NewMultiformatMessageString().WithText(text)
}

// sarif is the place as a location.
func (x *Place) sarif() *sarif.Location {
	file := sarif.NewArtifactLocation().WithURI((&url.URL{Path: x.File}).String()).WithURIBaseID("%SRCROOT%")
	if filepath.IsAbs(x.File) {
		file = sarif.NewArtifactLocation().WithURI((&url.URL{Scheme: "file", Path: x.File}).String())
	}
	at := sarif.NewPhysicalLocation().WithArtifactLocation(file).WithRegion(sarif.NewRegion().WithStartLine(x.Line))
	return sarif.NewLocation().WithPhysicalLocation(at)
}
