package check

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/access"
	"numaopt/internal/golden"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// remote draws a profile of 10 000 DRAM accesses, pct hundredths of a per cent
// of them remote.
func remote(hundredths int) *profile.Profile {
	p := profiletest.Draw(2, 1, "u heap: 0 1 1")
	p.Rows[0].Count, p.Rows[1].Count = uint64(10000-hundredths), uint64(hundredths)
	return p
}

// judge1 checks one profile with the thresholds of the command.
func judge1(p *profile.Profile, only []string, l Limits) (*Result, error) {
	return judgeAll([]*profile.Profile{p}, only, l)
}

func judgeAll(list []*profile.Profile, only []string, l Limits) (*Result, error) {
	runs, err := measureAll(list, only, l)
	if err != nil {
		return nil, err
	}
	return Judge(runs, l, DefaultOptions())
}

func measureAll(list []*profile.Profile, only []string, l Limits) ([]*Measurement, error) {
	var runs []*Measurement
	for i, p := range list {
		m, err := Measure(fmt.Sprintf("run%d", i+1), p, Scope{Only: only, Named: sortedKeys(l.Named), Metric: l.Metric})
		if err != nil {
			return nil, err
		}
		runs = append(runs, m)
	}
	return runs, nil
}

func baselineOf(p ...*profile.Profile) (*Baseline, error) {
	runs, err := measureAll(p, nil, Limits{})
	if err != nil {
		return nil, err
	}
	return NewBaseline(runs, DefaultOptions())
}

func pct(f float64) *float64 { return &f }

func base(f float64) *Baseline {
	return &Baseline{Command: []string{"app", "100"}, Topology: "2x1", Program: BaselineFigure{DRAM: []float64{f}, All: []float64{f}}}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name    string
		p       *profile.Profile
		limits  Limits
		pass    bool
		verdict string
	}{
		{"below", remote(900), Limits{MaxRemote: pct(10)}, true, "ok: 9.00 % of DRAM accesses are remote, within the limit 10.00 %"},
		{"at the limit", remote(1000), Limits{MaxRemote: pct(10)}, true, "ok: 10.00 % of DRAM accesses are remote, within the limit 10.00 %"},
		{"above", remote(1001), Limits{MaxRemote: pct(10)}, false, "FAIL: 10.01 % of DRAM accesses are remote, above the limit 10.00 %"},
		{"nothing remote, limit 0", remote(0), Limits{MaxRemote: pct(0)}, true, "ok: 0.00 % of DRAM accesses are remote, within the limit 0.00 %"},
		{"as the baseline", remote(900), Limits{Baseline: base(9)}, true, "ok: 9.00 % of DRAM accesses are remote, within the baseline 9.00 %"},
		{"increase allowed", remote(1100), Limits{Baseline: base(9), MaxIncrease: 2}, true, "ok: 11.00 % of DRAM accesses are remote, within the baseline 9.00 % + 2 points"},
		{"increase too large", remote(1101), Limits{Baseline: base(9), MaxIncrease: 2}, false, "FAIL: 11.01 % of DRAM accesses are remote, above the baseline 9.00 % + 2 points"},
		{"both hold", remote(900), Limits{MaxRemote: pct(20), Baseline: base(9)}, true, "ok: 9.00 % of DRAM accesses are remote, within the limit 20.00 % and within the baseline 9.00 %"},
		{"limit holds, baseline does not", remote(900), Limits{MaxRemote: pct(20), Baseline: base(2)}, false, "FAIL: 9.00 % of DRAM accesses are remote, above the baseline 2.00 %"},
		{"baseline holds, limit does not", remote(900), Limits{MaxRemote: pct(5), Baseline: base(9)}, false, "FAIL: 9.00 % of DRAM accesses are remote, above the limit 5.00 %"},
		{"only written", remote(900), Limits{}, true, "ok: 9.00 % of DRAM accesses are remote"},
	} {
		c.limits.Metric = DRAM
		r, err := judge1(c.p, nil, c.limits)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Pass != c.pass || r.Verdict != c.verdict || (len(r.Failures) == 0) != c.pass {
			t.Errorf("%s: pass %v, %q, want %v, %q", c.name, r.Pass, r.Verdict, c.pass, c.verdict)
		}
		if len(r.Warnings) != 0 {
			t.Errorf("%s: warnings %q", c.name, r.Warnings)
		}
	}
}

func TestMetricAndOnly(t *testing.T) {
	p := profiletest.Draw(2, 1, "u heap: 0!9000 1000 2000")
	p.Rows[1].Level = profile.L1
	for _, c := range []struct {
		metric Metric
		only   []string
		want   float64
	}{
		{DRAM, nil, 100 * 2000 / 11000.0},
		{All, nil, 100 * 2000 / 12000.0},
		{DRAM, []string{"work"}, 100},
		{All, []string{"work"}, 100 * 2000 / 3000.0},
	} {
		r, err := judge1(p, c.only, Limits{Metric: c.metric, MaxRemote: pct(50)})
		if err != nil || r.Remote != c.want || r.Pass != (c.want <= 50) {
			t.Errorf("%s %v: %+v, %v", c.metric, c.only, r, err)
		}
	}
	if _, err := judge1(p, []string{"nothing"}, Limits{Metric: DRAM}); err == nil || NoVerdict(err) {
		t.Errorf("unknown name: %v", err)
	}
	if _, err := ParseMetric("l1"); err == nil {
		t.Error("metric l1 is known")
	}
}

func TestNoVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		p    *profile.Profile
		want error
	}{
		{"one node", profiletest.Draw(1, 4, "u heap: 0 5000 5000"), topo.ErrOneNode},
		{"few accesses", profiletest.Draw(2, 1, "u heap: 0 500 499"), access.ErrTooFew},
		{"homes unknown", profiletest.Draw(2, 1, "u heap: ? 50000 499"), access.ErrTooFew},
	} {
		_, err := judge1(c.p, nil, Limits{Metric: DRAM, MaxRemote: pct(10)})
		if !errors.Is(err, c.want) || !NoVerdict(err) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if _, err := baselineOf(c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: baseline: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*profile.Profile, *Limits)
		want   string
	}{
		{"another command", func(p *profile.Profile, _ *Limits) { p.Run.Command[1] = "200" }, `another command: "app 100", now "app 200"`},
		{"another set of loops", func(_ *profile.Profile, l *Limits) { l.Baseline.Only = []string{"solve"} }, "another set of loops"},
		{"cut short", func(p *profile.Profile, _ *Limits) { p.Run.Complete = false }, "not complete"},
		{"its own", func(p *profile.Profile, _ *Limits) { p.Warnings = []string{"x"} }, "x"},
		{"sampled", func(p *profile.Profile, _ *Limits) { p.Run.Period = 10 }, "inside the 95 % interval"},
		{"unknown homes", func(p *profile.Profile, _ *Limits) {
			p.Pages = append(p.Pages, profile.Page{Home: topo.Unknown, Thread: -1, Region: -1, Place: -1})
			p.Rows = append(p.Rows, profile.Row{Page: 1, Region: 1, Level: profile.DRAM, Count: 10000})
		}, "50.00 % of the accesses are to pages whose home is not known"},
	} {
		p, l := remote(900), Limits{Metric: DRAM, Baseline: base(9), MaxIncrease: 1}
		c.change(p, &l)
		r, err := judge1(p, nil, l)
		if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], c.want) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}

func TestBaselineFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base.json")
	p := remote(1234)
	p.Rows[0].Count += 3 // 12.3363 %, which the file rounds
	b, err := baselineOf(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	golden.Compare(t, "testdata/base.json", text)
	back, err := ReadBaseline(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b, back); d != "" {
		t.Error(d)
	}
	if r, err := judge1(p, nil, Limits{Metric: All, Baseline: back}); err != nil || !r.Pass || len(r.Warnings) != 0 {
		t.Errorf("a profile against its own baseline: %+v, %v", r, err)
	}
	if _, err := ReadBaseline(path + "x"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "--write-baseline") {
		t.Errorf("missing: %v", err)
	}
	if err := b.WriteFile(filepath.Join(path, "x")); err == nil {
		t.Error("a path below a file can be written")
	}
}

func TestBadBaselines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "EOF"},
		{"{", "EOF"},
		{"{\n\"numaopt_baseline\": x}", "line 2"},
		{"[]", "--write-baseline"},
		{"{}", "not a baseline"},
		{`{"numaopt_report": 1, "remote_dram_pct": 4}`, "not a baseline"},
		{`{"numaopt_baseline": 3}`, "update numaopt"},
		{`{"numaopt_baseline": 1, "remote_dram_pct": 101}`, "not a percentage"},
		{`{"numaopt_baseline": 1, "remote_dram_pct": "9"}`, "--write-baseline"},
		{`{"numaopt_baseline": 2, "program": {"remote_dram_pct": [4, -1]}}`, "not a percentage"},
		{`{"numaopt_baseline": 2, "program": {"remote_dram_pct": [NaN]}}`, "line 1"},
		{`{"numaopt_baseline": 2, "program": {"remote_dram_pct": [1], "sampling_points": -2}}`, "sampling_points"},
		{`{"numaopt_baseline": 2, "objects": [{"remote_dram_pct": [4]}]}`, "no name"},
		{"{\"numaopt_baseline\": 1}\n\n{\"numaopt_baseline\": 1}\n", "line 3"},
		{"{\"numaopt_baseline\": 1}\n>>>>>>> theirs\n", "line 2"},
	} {
		if _, err := parseBaseline([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	b, err := parseBaseline([]byte(`{"numaopt_baseline": 1, "remote_dram_pct": null, "later": 3}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := judge1(remote(1), nil, Limits{Metric: DRAM, Baseline: b}); err == nil || NoVerdict(err) {
		t.Errorf("a baseline without the figure: %v", err)
	}
}

func TestFormats(t *testing.T) {
	p := remote(5000)
	p.Run.Command = []string{"./app", "<&>"}
	p.Warnings = []string{"<careful>"}
	for name, limit := range map[string]float64{"pass": 60, "fail": 40} {
		r, err := judge1(p, nil, Limits{Metric: DRAM, MaxRemote: &limit, Baseline: base(50)})
		if err != nil {
			t.Fatal(err)
		}
		var js, junit bytes.Buffer
		if err := errors.Join(writeJSON(&js, r), writeJUnit(&junit, r)); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+name+".json", js.Bytes())
		golden.Compare(t, "testdata/"+name+".xml", junit.Bytes())
		if !json.Valid(js.Bytes()) {
			t.Errorf("%s: not JSON", name)
		}
		if err := xml.Unmarshal(junit.Bytes(), new(suites)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var skipped bytes.Buffer
	if err := writeJUnit(&skipped, NoResult(All, []string{"work"}, topo.ErrOneNode)); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/skipped.xml", skipped.Bytes())
}

func FuzzBaseline(f *testing.F) {
	f.Add([]byte(`{"numaopt_baseline": 1, "remote_dram_pct": 4}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if b, err := parseBaseline(text); (b == nil) != (err != nil) {
			t.Fatalf("%v, %v", b, err)
		}
	})
}
