package html

import (
	"bytes"
	"crypto/sha256"
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
	_, rest, _ := strings.Cut(string(page), `<script type="application/json" id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
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

func TestBytes(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7: "7", 9999: "9999", 10_000: "100e2", 123_456: "123e3", 999_999: "100e4", 1.5e15: "150e13"} {
		if got, err := num(n).MarshalJSON(); err != nil || string(got) != want && string(got) != strings.Replace(want, "100e4", "1000e3", 1) {
			t.Errorf("%v is %s, want %s", n, got, want)
		}
	}
}
