package advice

import (
	"strings"
	"testing"
)

// Dependences between iterations that different threads have, and none where loops
// around keep them apart.
func TestCrossing(t *testing.T) {
	const par = "#pragma omp parallel for\n"
	for _, c := range []struct{ file, code, want string }{
		{"a.c", par + "for (int i = n - 2; i >= 0; i--) for (int j = b; j < b + 8; j++) v[i][j] = 0.5 * v[i][j] + 0.3 * v[i + 1][j];", "v[i+1][j] (line 2)"},
		{"a.c", par + "for (int i = 1; i < n; i++)\n a[i] += a[i - 1];", "a[i-1] (line 3)"},
		{"a.c", par + "for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) u[i * m + j] -= u[(i - 1) * m + j];", "u[(i-1)*m+j]"},
		{"a.c", par + "for (int i = 1; i < n; i++) for (int j = 1; j < m; j++) v[i][j] = v[i - 1][j - 1];", "v[i-1][j-1]"},
		{"a.f90", "!$omp do\ndo j = n-1, 1, -1\n do i = 1, m\n  v(i,j) = v(i,j) + v(i,j+1)\n end do\nend do\n!$omp end do\n", "v(i,j+1) (line 4)"},
		{"a.c", par + "for (int i = 1; i < n; i++) for (int j = 1; j < m; j++) v[i][j] = v[i][j - 1] + w[i - 1][j];", ""},
		{"a.c", "for (int k = 1; k < n; k++)\n" + par + "for (int i = 1; i < n; i++) v[k][i] = v[k - 1][i - 1];", ""},
		{"a.c", par + "for (int i = 1; i < n; i++) for (int j = i % 2; j < m; j += 2) v[i][j] = v[i - 1][j] + v[i + 1][j];", ""},
		{"a.c", par + "for (int i = 1; i < n; i++) v[i][1] = v[i - 1][0];", ""},
		{"a.c", par + "for (int i = 1; i < n; i++) if (v[i - 1] == v[i]) s[i] = 1;", ""},
		{"a.f90", "!$omp do\ndo j = 2, n\n if (v(j-1) == v(j)) s(j) = 1\nend do\n!$omp end do\n", ""},
	} {
		f := parse(c.file, c.code)
		for _, l := range f.loops {
			if got := ""; l.parallel() {
				if got = f.crossing(l); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
					t.Errorf("%s\ngot  %q\nwant %q", c.code, got, c.want)
				}
			}
		}
	}
}
