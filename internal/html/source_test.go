package html

import (
	"strings"
	"testing"

	"numaopt/internal/profile/profiletest"
)

func TestSource(t *testing.T) {
	text := make([]string, 60)
	for i := range text {
		text[i] = "line"
	}
	text[20] = "\tu[i] = '<b>' & \xff;" // line 21, which work accesses u in
	files := map[string]Source{
		"work.c": {Text: []byte(strings.Join(text, "\n")), Doubt: "changed since"},
		"init.c": {Doubt: "not found"},
	}
	p := profiletest.WithCode(profiletest.Draw(2, 1, "u heap: 0!500 100 300 | 1!500 0 100"))
	page := string(written(t, p, func(in *Input) { in.Source = func(path string) Source { return files[path] } }))
	for _, want := range []string{
		`<code>work.c</code> 33.3 % (changed since)`, `<code>init.c</code> 66.7 % (not found)`,
		`<td class="n">21</td><td class="n" style="--v:33.3">33.3</td><td class="n" style="--v:60">60.0</td>`,
		"\tu[i] = &#39;&lt;b&gt;&#39; &amp; �;", `<td class="n">13</td>`, `<td class="n">29</td>`, `⋮`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	for _, not := range []string{`<td class="n">12</td>`, `<td class="n">30</td>`, "--sources"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if short := string(written(t, p, func(in *Input) { in.Source = func(string) Source { return Source{Text: []byte("one line")} } })); !strings.Contains(short, "fewer lines than the program was compiled from") {
		t.Error("nothing is said of a file that is too short")
	}
	if plain := string(written(t, p, nil)); strings.Contains(plain, "<details") || !strings.Contains(plain, "work.c:21 (work)") || !strings.Contains(plain, "--sources") {
		t.Error("without --sources the page has no lines, or has source")
	}
}
