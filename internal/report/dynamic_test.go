package report

import (
	"math/rand/v2"
	"strings"
	"testing"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// TestThreadPool: pages that threads outside OpenMP use like dealt cards are in no
// finding that promises a better place, and the reader learns why.
func TestThreadPool(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pages := make([]string, 256)
	for i := range pages {
		pages[i] = "0!1" + strings.Repeat(" 0", 1+rng.IntN(7)) + " 900"
	}
	p := profiletest.Draw(4, 2, "u heap: "+strings.Join(pages, " | "))
	for _, pool := range []bool{false, true} {
		if pool {
			p.Regions[profiletest.Work].Kind = profile.Function
		}
		r, err := Build(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := r.Verdict + strings.Join(append(r.Findings, r.Warnings...), "\n")
		for _, word := range []string{"in this run", "handed out at run time, as by a thread pool"} {
			if strings.Contains(text, word) != pool {
				t.Errorf("pool %v: %q in\n%s", pool, word, text)
			}
		}
		if strings.Contains(text, "Serial initialisation") == pool {
			t.Errorf("pool %v: serial initialisation in\n%s", pool, text)
		}
		if o := r.Objects[0]; (o.Dynamic > 90) != pool || r.Loops[0].Dynamic != pool {
			t.Errorf("pool %v: object %v, loop %v", pool, o.Dynamic, r.Loops[0].Dynamic)
		}
	}
}
