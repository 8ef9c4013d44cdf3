package advice

import "testing"

// Phases cut lines only where what goes along them goes from one element to the next.
func TestWholeLinesOfCalls(t *testing.T) {
	const loops = "#pragma omp parallel for\nfor (int j = 0; j < n; j++)\nfor (int i = 0; i < n; i++) "
	const solve = "static void solve(vec *r, long n, long step)\n{\n\tfor (long i = 1; i < n; i++)\n\t\tone(r[i * step], r[(i - 1) * step]);\n\tfor (long i = n - 2; i >= 0; i--)\n\t\tone(r[i * step], r[(i + 1) * step]);\n}\n"
	const fft = "static void fft(dc *v, int n)\n{\n\tfor (int i = 0; i < n / 2; i++) {\n\t\tdc t = v[i] + v[i + n / 2];\n\t\tv[i] = t;\n\t}\n}\n"
	const line = "static void line(int i, int j)\n{\n\tdc y[9];\n\tfor (int k = 0; k < n; k++)\n\t\ty[k] = u[k][j][i];\n\tfft(y, n);\n\tfor (int k = 0; k < n; k++)\n\t\tu[k][j][i] = y[k];\n}\n"
	for _, c := range []struct {
		file, code string
		whole      bool
	}{
		{"a.c", solve + loops + "solve(&u[1][j][i], n - 2, n * n);\n", false},
		{"a.c", fft + loops + "fft(&u[1][j][i], n);\n", true},
		{"a.c", fft + line + loops + "line(i, j);\n", true},
		{"a.c", loops + "elsewhere(i, j);\n", true},
		{"a.c", fft + loops + "{ for (int k = 0; k < n; k++) y[k] = u[k][j][i]; fft(y, n); put(y); }\n", true},
		{"a.c", loops + "u[0][j][i] = sqrt(u[0][j][i]);\n", false},
		{"a.f90", "subroutine s(i, j)\ndo k = 2, n\nu(i, j, k) = u(i, j, k - 1)\nend do\nend subroutine\n!$omp parallel do\ndo j = 1, n\ncall s(i, j)\nend do\n", false},
		{"a.f90", "subroutine s(i, j)\ndo k = 2, n\nu(i, j, k) = u(i, j, n - k)\nend do\nend subroutine\n!$omp parallel do\ndo j = 1, n\ncall s(i, j)\nend do\n", true},
	} {
		f := parse(c.file, c.code)
		var par *loop
		for _, l := range f.loops {
			if l.parallel() {
				par = l
			}
		}
		var indices []string
		for _, s := range f.subscripts(f.code[par.start:par.end], "u") {
			indices = append(indices, s[0])
		}
		if _, whole, why := (&nest{file: f, par: par}).serialLoops(indices, "X"); whole != c.whole {
			t.Errorf("%s: %v %s", c.code, whole, why)
		}
	}
}

// Phases cut a loop whose bounds are the same in all loops around it.
func TestPerfectBounds(t *testing.T) {
	for bounds, want := range map[string]string{"j = 1; j < n": "", "j = k; j < n": "the bounds of line 4 depend on k", "j = 0; j < i": "the bounds of line 4 depend on i"} {
		f := parse("a.c", "#pragma omp parallel for\nfor (k = 0; k < n; k++)\nfor (i = 0; i < n; i++)\nfor ("+bounds+"; j++)\na[k][j] = 0;\n")
		n := &nest{file: f, par: f.loops[0], ser: f.loops[2]}
		if got := n.perfect(); got != want {
			t.Errorf("%s: %q, want %q", bounds, got, want)
		}
	}
}
