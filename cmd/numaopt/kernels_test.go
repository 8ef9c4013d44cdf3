package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/pattern"
	"numaopt/internal/profile"
	"numaopt/internal/programs"
	"numaopt/internal/report"
	"numaopt/internal/runfile"
)

// use is what the source of a kernel says of how one of its loops divides an object.
// Where kinds are several, either is right.
type use struct {
	object, loop string // begins, contains
	kinds        []pattern.Kind
}

func uses(object, loops string, kinds ...pattern.Kind) []use {
	var list []use
	for _, loop := range strings.Fields(loops) {
		list = append(list, use{object, "(" + loop + ")", kinds})
	}
	return list
}

// kernelUses is what the loops of the kernels want. The thread number divides the
// outer loop, so x-wise is its own dimension, y-wise the next. Objects of one site are
// one object: srad's six images are its slowest dimension.
var kernelUses = map[string][]use{
	"lu": slices.Concat(
		uses("u in", "setiv residual blts update l2norm", pattern.XWise),
		uses("rsd in", "setiv residual blts update", pattern.XWise),
		uses("frct in", "setiv residual", pattern.XWise),
		uses("u in", "buts", pattern.Inverse), // from the last plane to the first
		uses("rsd in", "buts", pattern.Inverse)),
	"cg": slices.Concat(
		uses("cg.c:31", "multiply", pattern.XWise), // row
		uses("cg.c:44", "multiply", pattern.XWise), // column
		uses("cg.c:45", "multiply", pattern.XWise), // value
		uses("cg.c:115", "dot update", pattern.XWise),
		uses("cg.c:116 (main) #2", "multiply dot update", pattern.XWise),            // q
		[]use{{"cg.c:116 (main)", "(multiply)", []pattern.Kind{pattern.AllToAll}}}), // p, through the column numbers
	"bt": slices.Concat(
		uses("u in", "initialize compute_rhs x_solve y_solve add checksum", pattern.XWise),
		uses("rhs in", "compute_rhs x_solve y_solve add", pattern.XWise),
		uses("forcing in", "initialize compute_rhs", pattern.XWise),
		uses("lhs in", "x_solve y_solve", pattern.XWise),
		uses("u in", "z_solve", pattern.YWise),
		uses("rhs in", "z_solve", pattern.YWise),
		uses("lhs in", "z_solve", pattern.YWise)),
	"sp": slices.Concat(
		uses("u in", "initialize compute_rhs add checksum", pattern.XWise),
		uses("rhs in", "compute_rhs x_solve y_solve add", pattern.XWise),
		uses("speed in", "compute_rhs x_solve y_solve", pattern.XWise),
		uses("rho in", "compute_rhs", pattern.XWise),
		uses("rhs in", "z_solve", pattern.YWise),
		uses("speed in", "z_solve", pattern.YWise)),
	"ft": slices.Concat(
		uses("u0 in", "cffts12", pattern.XWise),
		uses("u1 in", "cffts12", pattern.XWise),
		uses("u0 in", "cffts3", pattern.YWise),
		uses("u1 in", "cffts3", pattern.YWise)),
	// A step leaves out the rows above its own; on the whole threads have their rows.
	"dense-lu": uses("dense-lu.c:31", "factorise", pattern.XWise),
	"heat":     uses("heat.c:27", "initialize step", pattern.XWise),
	// Both matrices are written by rows and read by columns in the same loop.
	"transpose": slices.Concat(uses("transpose.c:33", "initialize", pattern.XWise), uses("transpose.c:33", "transpose", pattern.None, pattern.AllToAll)),
	"srad":      slices.Concat(uses("srad.c:75", "statistics", pattern.XWise), uses("srad.c:75", "derivatives diffuse", pattern.YWise)),
	"sor":       slices.Concat(uses("sor.c:40", "initialize red", pattern.XWise), uses("sor.c:40", "black", pattern.Inverse)),
	"z-wise": slices.Concat(
		uses("v in", "initialize", pattern.XWise), uses("v in", "sweep", pattern.ZWise),
		uses("flux in", "initialize", pattern.XWise), uses("flux in", "sweep", pattern.ZWise)),
	"ragged": uses("ragged.c:30", "initialize sweep", pattern.YWise),
}

// The shortest runs in which each loop has its part; those that are not here are run as
// they are.
var kernelArgs = map[string][]string{"cg": {"14000", "3", "131"}, "ft": {"3"}}

// TestKernelPatterns holds the report's patterns of every kernel to its source: on
// machines of two and four nodes, from all accesses and from one in 1000 of them.
func TestKernelPatterns(t *testing.T) {
	if testing.Short() {
		t.Skip("emulates the kernels")
	}
	if os.Getenv(runfile.LibDir) == "" {
		t.Setenv(runfile.LibDir, filepath.Join(programs.Root(), "build", "lib", "numaopt"))
	}
	for _, topology := range []string{"2x4", "4x2"} {
		for kernel, want := range kernelUses {
			t.Run(kernel+" "+topology, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "app.nprof")
				args := []string{"profile", "-o", path, "--topology", topology, "--", programs.Build(t, kernel, "gcc")}
				if code, _, err := numaopt(append(args, kernelArgs[kernel]...)...); code != 0 {
					t.Fatal(err)
				}
				p, err := profile.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				holdUses(t, reported(t, path), want, 0)
				// From this many samples a node, one in 1000 of these kernels name what divides.
				const enough = 150
				for seed := range uint64(3) {
					holdUses(t, reported(t, nprof(t, thinned(p, 1000, seed))), want, enough*uint64(len(p.Run.Topology.Nodes)))
				}
			})
		}
	}
}

// reported is the report of the profile at path.
func reported(t *testing.T, path string) *report.Report {
	t.Helper()
	code, out, errors := numaopt("report", path, "--json")
	if code != 0 {
		t.Fatal(errors)
	}
	r := new(report.Report)
	if err := json.Unmarshal([]byte(out), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// holdUses compares the patterns of r with what the source wants. Of samples, fewer
// than enough (0: of all accesses) need not suffice, but none may be named wrongly.
func holdUses(t *testing.T, r *report.Report, want []use, enough uint64) {
	t.Helper()
	named := 0
	for i := range r.Objects {
		o := &r.Objects[i]
		for _, w := range o.Patterns {
			k := slices.IndexFunc(want, func(u use) bool { return strings.HasPrefix(o.Name, u.object) && strings.Contains(w.Loop, u.loop) })
			if k < 0 {
				continue
			}
			got := fmt.Sprintf("%s, %s: %s (%d samples, fits %v, sure %v)", o.Name, w.Loop, w.Pattern, w.Samples, w.Explains, w.Confidence)
			switch kind := pattern.Kind(w.Pattern); {
			case slices.Contains(want[k].kinds, kind):
				named++
			case kind == pattern.NotEnough && enough > 0 && (w.Samples < enough || slices.Contains(want[k].kinds, pattern.None)):
				if w.Need <= w.Samples {
					t.Errorf("%s: wants %d", got, w.Need)
				}
			default:
				t.Errorf("%s, want %v", got, want[k].kinds)
			}
		}
	}
	if enough == 0 && named < len(want) {
		t.Errorf("%d patterns are named, want all %d", named, len(want))
	}
}

// thinned is p as if one access in period had been sampled, at random: each row keeps
// about one in period of its accesses, and each counts for period.
func thinned(p *profile.Profile, period, seed uint64) *profile.Profile {
	random := rand.New(rand.NewPCG(seed, 0))
	q := *p
	q.Run.Period, q.Rows = period, nil
	for _, r := range p.Rows {
		if n := poisson(random, float64(r.Count)/float64(period)); n > 0 {
			r.Count = n * period
			q.Rows = append(q.Rows, r)
		}
	}
	return &q
}

// poisson draws a number of events of which mean are expected (Knuth, The Art of
// Computer Programming 2, §3.4.1), in steps so that exp does not vanish.
func poisson(random *rand.Rand, mean float64) (n uint64) {
	const step = 100
	for ; mean > step; mean -= step {
		n += poisson(random, step)
	}
	limit := math.Exp(-mean)
	for x := random.Float64(); x > limit; x *= random.Float64() {
		n++
	}
	return n
}
