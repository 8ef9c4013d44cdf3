package advice

import (
	"fmt"
	"testing"
)

// Rows that all threads read are those of one index that no loop here changes.
func TestForeign(t *testing.T) {
	for body, want := range map[string]string{
		"for (int j = k + 1; j < n; j++) a[i][j] -= a[i][k] * a[k][j];": "[k] true",
		"a[i][k] /= a[k][k];":                                "[k] true",
		"a[k][i] /= a[i][k];":                                "[] false", // written
		"a[i][k] = a[i - 1][k];":                             "[] false",
		"for (int j = 0; j < n; j++) a[i][j] += a[j][i];":    "[] false",
		"for (int j = 0; j < n; j++) a[i][j] += a[x[k]][j];": "[] false",
		"f(a[i], a[k]);":                                     "[] false",
		"use(a);":                                            "[] false",
		"a[i][k] = sqrt(a[i][k]);":                           "[] true",
	} {
		f := parse("a.c", "#pragma omp parallel for\nfor (int i = k + 1; i < n; i++)\n"+body+"\n")
		rows, ok := (&nest{file: f, par: f.loops[0]}).foreign("a")
		if !ok {
			rows = nil
		}
		if got := fmt.Sprint(rows, ok); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
