package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMerge(t *testing.T) {
	uses := MergeCodeUses([]CodeUse{
		{Code: 1, Region: 1, Local: 1}, {Code: 0, Op: Store, Remote: 2}, {Code: 1, Region: 1, Unknown: 3, Latency: 9, Loads: 2}, {Code: 0, Op: Load, Local: 4},
	})
	if d := cmp.Diff([]CodeUse{{Local: 4}, {Op: Store, Remote: 2}, {Code: 1, Region: 1, Local: 1, Unknown: 3, Latency: 9, Loads: 2}}, uses); d != "" {
		t.Error(d)
	}
	parts := MergeIntervals([]Interval{{At: 2, Count: 1}, {Thread: 1, Work: 5}, {At: 2, Count: 3, Work: 7}, {At: 2, Home: 1, Count: 1}, {At: 1}})
	if d := cmp.Diff([]Interval{{At: 1}, {At: 2, Count: 4, Work: 7}, {At: 2, Home: 1, Count: 1}, {Thread: 1, Work: 5}}, parts); d != "" {
		t.Error(d)
	}
	if MergeIntervals(nil) != nil {
		t.Error("something of nothing")
	}
}
