package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// TestThreadPool: of pages that threads outside OpenMP use like dealt cards the
// reader learns that a better place is only a guess, of an OpenMP loop that it is
// none.
func TestThreadPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pages := make([]string, 256)
	for i := range pages {
		pages[i] = "0!1" + strings.Repeat(" 0", 1+rng.IntN(7)) + " 900"
	}
	p := profiletest.Draw(4, 2, "u heap: "+strings.Join(pages, " | "), "only touched heap: 0!0")
	for _, c := range []struct {
		kind    profile.RegionKind
		dynamic bool
		has     string
		hasNot  string
	}{
		{profile.Loop, false, "removes up to 84.6 points without a source change.|Serial initialisation: |in parallel. u", "in this run|run time"},
		{profile.Function, false, "in this run|handed out at run time, as by a thread pool|much of the work looks handed out|Serial initialisation: |in parallel, if its work is not handed out at run time. u", "but work that"},
		{profile.Loop, true, "in this run|but work that is handed out at run time uses|hands out work while running", "Serial initialisation|Wrong node|looks"},
	} {
		work := &p.Regions[profiletest.Work]
		work.Kind, work.Dynamic = c.kind, c.dynamic
		r, err := Build(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Verdict + strings.Join(append(r.Findings, r.Warnings...), "\n")
		for _, has := range strings.Split(c.has, "|") {
			if !strings.Contains(text, has) {
				t.Errorf("%s, dynamic %v: no %q in\n%s", c.kind, c.dynamic, has, text)
			}
		}
		for _, hasNot := range strings.Split(c.hasNot, "|") {
			if strings.Contains(text, hasNot) {
				t.Errorf("%s, dynamic %v: %q in\n%s", c.kind, c.dynamic, hasNot, text)
			}
		}
		var table strings.Builder
		if err := WriteText(&table, r, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(table.String(), "dynamic?"); got != (c.kind == profile.Function) {
			t.Errorf("%s, dynamic %v: a guess in the table: %v", c.kind, c.dynamic, got)
		}
		chance := c.dynamic || c.kind == profile.Function
		if o := r.Objects[0]; (o.Dynamic > 90) != chance || r.Loops[0].Dynamic != chance {
			t.Errorf("%s, dynamic %v: object %v, loop %v", c.kind, c.dynamic, o.Dynamic, r.Loops[0].Dynamic)
		}
	}
}

// TestLittleChance: where placement wins by other objects than those of chance,
// the verdict is not in doubt; the warning says what is.
func TestLittleChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	sure, dealt := make([]string, 256), make([]string, 256)
	for i := range sure {
		sure[i] = "0!1" + strings.Repeat(" 0", i/32) + " 900"
		dealt[i] = "0!1 /" + strings.Repeat(" 0", 1+rng.IntN(7)) + " 90"
	}
	p := profiletest.Draw(4, 2, "u heap: "+strings.Join(sure, " | "), "v heap: "+strings.Join(dealt, " | "))
	p.Regions[profiletest.Back].Dynamic, p.Regions[profiletest.Back].Kind = true, profile.Loop
	r, err := Build(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := strings.Join(r.Warnings, "\n"); strings.Contains(r.Verdict, "run") || !strings.Contains(warnings, "hands out work while running") {
		t.Errorf("verdict %q, warnings %q", r.Verdict, warnings)
	}
}
