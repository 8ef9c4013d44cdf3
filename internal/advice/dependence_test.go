package advice

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"numaopt/internal/classify"
	"numaopt/internal/ident"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// A loop that the binary does not let be permuted gets another schedule, but not where
// its threads wait for each other; a note says so.
func TestDepending(t *testing.T) {
	half := func(s string) string { return times(8, s) }
	for body, want := range map[string]string{"u[i] += 1;": "schedule ", "u[i] += u[i + 1];": ""} {
		p := profiletest.Draw(2, 1, "u heap: "+half("0 900 0 / 0 800")+" | "+half("1 0 900 / 800 0"))
		writes(p, 0)
		p.Modules = append(p.Modules, ident.Module{Path: "/app", BuildID: "00"})
		opt := planner.DefaultOptions()
		opt.Refuse = make(map[int]string)
		for _, i := range []int{profiletest.Work, profiletest.Back} {
			r := &p.Regions[i]
			r.Site, r.Runtime, r.Schedule, r.File, r.Line = r.Code, "libomp", "static", "a.c", 2
			r.Site.Module, r.Site.Offset = len(p.Modules)-1, uint64(100+i)
			opt.Refuse[i] = "for a test"
		}
		r, err := planner.Build(p, opt)
		if err != nil {
			t.Fatal(err)
		}
		text := []byte("int n;\n#pragma omp parallel for\nfor (int i = 0; i < n; i++) " + body + "\n")
		a, err := Find(p, r, Options{Planner: opt, MinSave: DefaultMinSave, Read: func(string) []byte { return text }})
		if err != nil || a.kinds() != want || (len(a.Notes) > 0) != (want == "") {
			t.Errorf("%s: %v, want %q\n%s", body, err, want, printed(t, a))
		}
	}
}

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

// What a loop reads beside its own index is a dependence only where it writes it, too.
func TestRespect(t *testing.T) {
	for body, want := range map[string]string{
		"r[k][j] = u[k][j - 1] + u[k][j + 1];": "no dependence along j (Y) is seen",
		"r[k][j] = u[k][j - 1] - r[k][j - 1];": "j (Y) is swept ascending and reaches 1 beyond",
		"r[k][j] = u[k][j - 3] - r[k][j - 2];": "j (Y) is swept ascending and reaches 2 beyond",
		"r[k][j] = r[k][j - 1] + r[k][j + 1];": "j (Y) is swept ascending and reaches 1 beyond",
		"r[k][j] = u[k][x[j]];":                "no dependence along j (Y) is seen",
		"r[k][j] = r[k][x[j]];":                "check what its calls read along j",
	} {
		f := &finder{p: &profile.Profile{Regions: []profile.Region{{Name: "a", File: "a.c", Line: 1}}}, files: make(map[string]*file), want: make([]classify.Patterns, 2)}
		f.opt.Read = func(string) []byte {
			return []byte(fmt.Sprintf("#pragma omp parallel for\nfor (int k = 1; k < n; k++)\nfor (int j = 1; j < n; j++) %s\n", body))
		}
		f.stores = map[[2]int]bool{{0, 0}: true}
		x, u := &family{f: f, axes: []int{0, 1}, members: []*member{{name: "r"}, {name: "u", group: 1}}}, &use{}
		x.read(u)
		if got := x.respect(u); u.why != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", body, cmp.Or(u.why, got), want)
		}
	}
}
