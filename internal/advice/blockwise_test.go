package advice

import (
	"strings"
	"testing"

	"numaopt/internal/planner"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/shape"
)

// TestStrips: which loops go in strips of their fastest dimension.
func TestStrips(t *testing.T) {
	for body, want := range map[string]string{
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][i];":                                 "",
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][i + 1];":                             "",
		"for (j = 0; j < n; j++)\n b[i][j] = a[i][j];":                                 "i does not run along the fastest subscript of a",
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][p[i]];":                              "its index p[i] is read from memory",
		"for (j = 0; j < n; j++) { if (a[j][i] < 0) break; b[i][j] = a[j][i]; }":       "its body has a break",
		"for (j = 0; j < n; j++) { b[i][j] = a[j][i] - old; old = a[j][i]; }":          "may carry old",
		"for (j = 0; j < n; j++) { if (a[j][i] > 0) u = a[j][i]; b[i][j] = u; }":       "may carry u",
		"for (j = 0; j < n; j++) s += a[j][i];":                                        "may carry s",
		"for (j = 0; j < n; j++) { double t = a[j][i]; u = t; b[i][j] = t * u == 1; }": "",
		"b[i] = a[i];": "no loop is inside",
		"{ s = 0; for (j = 0; j < n; j++)\n s += a[j][i]; }":                "statements beside the loop of line 3",
		"for (j = i; j < n; j++)\n b[i][j] = a[j][i];":                      "the bounds of line 3 depend on i",
		"for (j = 0; j < n; j++)\n for (k = 0; k < n; k++) b[i] = a[k][i];": "",
	} {
		f := parse("a.c", "#pragma omp parallel for\nfor (int i = 0; i < n; i++)\n"+body+"\n")
		n := &nest{file: f, par: f.loops[0]}
		if got := n.strips("a"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	f := parse("a.c", "#pragma omp parallel for lastprivate(s)\nfor (int i = 0; i < n; i++)\nfor (j = 0; j < n; j++)\n s = a[j][i];\n")
	if got := (&nest{file: f, par: f.loops[0]}).strips("a"); !strings.Contains(got, "lastprivate") {
		t.Errorf("%q", got)
	}
}

// TestSpread: what no placement helps is said with its reason.
func TestSpread(t *testing.T) {
	const gather = "#pragma omp parallel for\nfor (int i = 0; i < n; i++)\nfor (int k = 0; k < n; k++) s[i] += table[x[k]];\n"
	for source, want := range map[string]string{
		"":     "that is not printed: work.c cannot be read",
		gather: "no order is known that would fetch it once: its index x[k] is read from memory, so which lines an iteration needs follows from the data",
	} {
		p := profiletest.Draw(2, 1, "table global: "+times(8, "0!64 900 900"))
		writes(p, 0)
		p.Objects[0].Symbol = "table"
		p.Regions[profiletest.Work].Line = 1
		r, err := planner.Build(p, planner.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		shapes := map[int]shape.Shape{0: {Dims: []int64{4096}, Elem: 8, Source: shape.Declared, Variable: "table"}}
		a, err := Find(p, r, Options{Planner: planner.DefaultOptions(), Shapes: shapes, MinSave: DefaultMinSave, Read: func(string) []byte {
			if source == "" {
				return nil
			}
			return []byte(source)
		}})
		if err != nil || len(a.Items) > 0 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], want) {
			t.Errorf("%v, %s, %q, want %q", err, a.kinds(), a.Notes, want)
		}
	}
}
