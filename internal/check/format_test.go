package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"numaopt/internal/access"
	"numaopt/internal/golden"
	"numaopt/internal/profile"
)

// nasty is a name that means something to Markdown, HTML, workflow commands and terminals.
const nasty = "a=b|<script>alert(1)</script>\n::error::`x` 50 %,\x1b[31m größe"

// nastyResult fails on an object of that name, first touched in a file of such a name.
func nastyResult(t *testing.T) *Result {
	p := twoObjects(4000, 100)
	p.Objects[0].Name, p.Objects[0].Symbol = nasty, nasty
	p.Places[0].Inlined[0].File = "/src/a,b:c %.c"
	p.Warnings = []string{nasty}
	r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: pct(50), Named: map[string]float64{nasty: 10, "v": 10}})
	if err != nil || r.Pass {
		t.Fatalf("%+v, %v", r, err)
	}
	r.Relative("/src", func(file string) bool { return file == "a,b:c %.c" })
	return r
}

func write(t *testing.T, format string, r *Result) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, f := range Formats {
		if f.Name == format {
			if err := f.Write(&b, r); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
	}
	t.Fatalf("no format %s", format)
	return nil
}

// TestNasty writes every format: each name stays what it is, a name.
func TestNasty(t *testing.T) {
	r := nastyResult(t)
	for _, f := range Formats {
		text := write(t, f.Name, r)
		golden.Compare(t, "testdata/nasty."+f.Name, text)
		switch f.Name {
		case "json", "sarif":
			if !json.Valid(text) {
				t.Errorf("%s: not JSON", f.Name)
			}
		case "junit":
			if err := xml.Unmarshal(text, new(suites)); err != nil {
				t.Error(err)
			}
		case "markdown":
			if bytes.Contains(text, []byte("<script>")) {
				t.Errorf("markdown: a name is HTML:\n%s", text)
			}
		case "github":
			for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
				if !strings.HasPrefix(line, "::error file=a%2Cb%3Ac %25.c,line=5,title=numaopt::") && !strings.HasPrefix(line, "::warning::") {
					t.Errorf("github: a name begins a line: %q", line)
				}
			}
		}
		if f.Name != "json" && f.Name != "sarif" && bytes.ContainsAny(text, "\x1b") {
			t.Errorf("%s: an escape sequence goes to the terminal", f.Name)
		}
	}
}

// TestSARIF holds what is written against the schema of OASIS, which the library has.
func TestSARIF(t *testing.T) {
	pass, err := judge1(remote(900), nil, Limits{Metric: DRAM, MaxRemote: pct(10)})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]*Result{
		"fail": nastyResult(t), "pass": pass, "no verdict": NoResult(DRAM, nil, access.ErrTooFew),
	} {
		text := write(t, "sarif", r)
		log, err := sarif.FromBytes(text, sarif.WithStrictValidation())
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := map[string]int{"fail": 1}[name]; len(log.Runs) != 1 || len(log.Runs[0].Results) != want {
			t.Errorf("%s: %s", name, text)
		}
	}
	broken := bytes.Replace(write(t, "sarif", pass), []byte(`"kind"`), []byte(`"rank": 3, "kind"`), 1)
	broken = bytes.Replace(broken, []byte(`"results": []`), []byte(`"results": [{"level": "loud", "message": {"text": "x"}}]`), 1)
	if log, err := sarif.FromBytes(broken); err != nil || log.Validate() == nil {
		t.Errorf("a level that there is not is valid: %v", err)
	}
}

// TestOldCommands: the runner takes ##[command] anywhere in a line for a command.
func TestOldCommands(t *testing.T) {
	p := twoObjects(4000, 100)
	p.Objects[0].Name, p.Objects[0].Symbol = "u##[error]", "u##[error]"
	p.Warnings = []string{"###[add-mask]"}
	r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: pct(50), Named: map[string]float64{"u##[error]": 10}})
	if err != nil {
		t.Fatal(err)
	}
	got := string(write(t, "github", r))
	if strings.Contains(got, "##[") || !strings.Contains(got, "u## [error]") || !strings.Contains(got, "### [add-mask]") {
		t.Error(got)
	}
}

// TestSARIFLinks: brackets in messages are no links.
func TestSARIFLinks(t *testing.T) {
	const name = `[u](https://example.org)\`
	p := twoObjects(4000, 100)
	p.Objects[0].Name, p.Objects[0].Symbol = name, name
	p.Warnings = []string{name}
	r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: pct(50), Named: map[string]float64{name: 10}})
	if err != nil {
		t.Fatal(err)
	}
	log, err := sarif.FromBytes(write(t, "sarif", r))
	if err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	for what, m := range map[string]*sarif.Message{
		"result": run.Results[0].Message, "location": run.Results[0].Locations[0].Message, "warning": run.Invocations[0].ToolExecutionNotifications[0].Message,
	} {
		if !strings.Contains(*m.Text, `\[u\](https://example.org)\\`) {
			t.Errorf("%s: %s", what, *m.Text)
		}
	}
}

// Where no line is known, the error has none.
func TestNoPlace(t *testing.T) {
	p := remote(5000)
	p.Pages[0].Place, p.Sites[0].Frames = -1, nil
	r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: pct(10)})
	if err != nil {
		t.Fatal(err)
	}
	const want = "\n::error::50.00 %25 of DRAM accesses are remote, above the limit 10.00 %25\n"
	if got := string(write(t, "github", r)); !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a part did is not said again of the program, unless it is above its own limit.
func TestAnnotations(t *testing.T) {
	base, err := baselineOf(twoObjects(1000, 100))
	if err != nil {
		t.Fatal(err)
	}
	base.Loops = nil
	now := twoObjects(4000, 2500)
	now.Pages[1].Place = 2 // v is touched elsewhere
	for _, c := range []struct {
		limit *float64
		want  []string
	}{
		{nil, []string{"object u in a.c:", "object v:"}},
		{pct(10), []string{"object u in a.c:", "object v:"}},
	} {
		r, err := judgeAll([]*profile.Profile{now}, nil, Limits{Metric: DRAM, MaxRemote: c.limit, Baseline: base, MaxIncrease: 1})
		if err != nil {
			t.Fatal(err)
		}
		list := r.annotations()
		if len(list) != len(c.want) {
			t.Fatalf("%+v, want %q", list, c.want)
		}
		for i, x := range list {
			if !strings.HasPrefix(x.text, c.want[i]) || x.at == nil {
				t.Errorf("%q, want %q", x.text, c.want[i])
			}
		}
	}
}

// TestSharedLine: each object that failed is told of, in one error a line.
func TestSharedLine(t *testing.T) {
	p := twoObjects(4000, 2500)
	for i := range p.Pages {
		p.Pages[i].Place = 0
	}
	r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: pct(10), Named: map[string]float64{"u": 10, "v": 10}})
	if err != nil {
		t.Fatal(err)
	}
	list := r.annotations()
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	u, v, two := strings.Cut(list[0].text, "\n")
	if !two || !strings.HasPrefix(u, "object u in a.c:") || !strings.HasPrefix(v, "object v:") || strings.Contains(v, "\n") {
		t.Errorf("%q", list[0].text)
	}
	if got := string(write(t, "github", r)); !strings.Contains(got, "here%0Aobject v:") {
		t.Error(got)
	}
}

func TestNoResult(t *testing.T) {
	r := NoResult(DRAM, []string{"work"}, fmt.Errorf("no verdict: %w", access.ErrTooFew))
	for format, want := range map[string]string{
		"text":     "",
		"json":     `"pass": null`,
		"junit":    `skipped="1"`,
		"github":   "::warning::no verdict: too few\n",
		"markdown": "no verdict: too few",
		"sarif":    `"executionSuccessful": false`,
	} {
		if got := string(write(t, format, r)); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
}
