package html

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

func drawn(nodes, cpus int, lines ...string) *profile.Profile {
	return profiletest.Draw(nodes, cpus, lines...)
}

// TestECharts holds the library against what its README says it is.
func TestECharts(t *testing.T) {
	text, err := assets.ReadFile("assets/echarts/echarts.min.js")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := assets.ReadFile("assets/echarts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); !bytes.Contains(readme, []byte(sum)) {
		t.Errorf("echarts.min.js is %s, its README says otherwise", sum)
	}
}

// embedded is the data of a page.
func embedded(t *testing.T, page []byte) (d data) {
	t.Helper()
	_, rest, _ := strings.Cut(string(page), `<script type="text/plain" id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSections(t *testing.T) {
	page := string(written(t, rich(), withPlan))
	for _, want := range []string{
		`id="objects"`, `id="loops"`, `id="heat"`, `id="nodes"`, `id="first"`, `id="wants"`, `id="latency"`, `id="lines"`, `id="plan"`, `id="run"`,
		"What to do next", "numaopt plan app.nprof -o app.plan.yaml", "Serial initialisation", "init.c:5 (main)", "12.5 %", "static-inverse", "bind to node 2",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, not := range []string{"http-equiv=\"refresh\"", "src=", "@import", "ZgotmplZ"} {
		if html, _, _ := strings.Cut(page, `id="echarts"`); strings.Contains(html, not) {
			t.Errorf("the page has %q", not)
		}
	}
}

// A plan that was made from another profile is shown, and said to be so.
func TestOtherPlan(t *testing.T) {
	const doubt = "made from another profile"
	if page := string(written(t, rich(), withPlan)); strings.Contains(page, doubt) || !strings.Contains(page, ">with plan %</button>") {
		t.Error("its own plan is doubted, or not shown beside the objects")
	}
	if page := string(written(t, rich(), func(in *Input) { withPlan(in); in.OtherPlan = true })); !strings.Contains(page, doubt) {
		t.Error("another's plan is not doubted")
	}
	if page := string(written(t, rich(), nil)); strings.Contains(page, ">with plan %</button>") {
		t.Error("a column for no plan")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7: "7", 9999: "9999", 10_000: "100e2", 123_456: "123e3", 999_999: "100e4", 1.5e15: "150e13"} {
		if got, err := num(n).MarshalJSON(); err != nil || string(got) != want && string(got) != strings.Replace(want, "100e4", "1000e3", 1) {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}
