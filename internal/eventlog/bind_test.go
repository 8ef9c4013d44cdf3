package eventlog

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestBindings compares the tree with a search through all binds.
func TestBindings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		var binds []bind
		for range n {
			lo := rnd.Uint64N(50)
			binds = append(binds, bind{rnd.Uint64N(30), lo, lo + rnd.Uint64N(20)})
		}
		tree := newBindings(binds)
		for range 500 {
			page, from := rnd.Uint64N(80), rnd.Uint64N(40)
			to := from + rnd.Uint64N(8)
			want := slices.ContainsFunc(binds, func(b bind) bool {
				return b.time >= from && b.time < to && page >= b.lo && page < b.hi
			})
			if got := tree.any(page, from, to); got != want {
				t.Fatalf("page %d placed from %d to %d: %v, want %v, of %v", page, from, to, got, want, binds)
			}
		}
	}
}

// TestManyBinds: what is asked of each page does not look at every bind.
func TestManyBinds(t *testing.T) {
	const many = 100000
	h := &History{}
	for i := range uint64(many) {
		h.binds = append(h.binds, bind{i, 2 * i, 2*i + 1})
	}
	began, placed := time.Now(), 0
	for page := range uint64(2 * many) {
		if h.Placed(page, 0, Always) {
			placed++
		}
	}
	if took := time.Since(began); placed != many || took > 2*time.Second {
		t.Errorf("%d of %d pages are placed, told in %v", placed, 2*many, took)
	}
}
