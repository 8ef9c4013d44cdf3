package advice

import (
	"strings"
	"testing"
)

// TestStrips: which loops go in strips of their fastest dimension.
func TestStrips(t *testing.T) {
	for body, want := range map[string]string{
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][i];":     "",
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][i + 1];": "",
		"for (j = 0; j < n; j++)\n b[i][j] = a[i][j];":     "i does not run along the fastest subscript of a",
		"for (j = 0; j < n; j++)\n b[i][j] = a[j][p[i]];":  "i does not run along",
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
