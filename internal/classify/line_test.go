package classify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
	"numaopt/internal/topo"
)

// use is the use of a line by a node, each sample at one of the bytes that are marked.
func use(offset int64, node topo.NodeID, read, written, hitm uint64) profile.LineUse {
	u := profile.LineUse{Offset: offset, Node: node, Read: read, Written: written, HITM: hitm, Loads: hitm}
	if read != 0 {
		u.Loads += 12
	}
	if written != 0 {
		u.Stores = 13
	}
	return u
}

func TestLines(t *testing.T) {
	p := profiletest.Draw(3, 1, "u heap: 0!1")
	few := use(320, 1, 0, 2, 0)
	few.Stores = sharingSamples - 1
	p.Lines = []profile.LineUse{
		use(0, 0, 0, 1, 0), use(0, 1, 0, 2, 0), // each its own byte
		use(64, 0, 0, 1, 0), use(64, 2, 1, 0, 0), // reads what is written
		use(128, 1, 1, 0, 7),                                              // who wrote it is not seen
		use(192, 0, 0, 4, 0), use(192, 0, 2, 0, 0), use(192, 1, 1, 0, 20), // reads beside what is written
		use(256, 0, 0, 1, 0), use(256, 1, 0, 1, 0), use(256, 2, 0, 1, 0), // no HITM, and yet three write it
		use(320, 0, 0, 1, 0), few, // too few to say
	}
	type row struct {
		Offset          int64
		Nodes           []int
		Sharing         LineSharing
		HITM, Elsewhere uint64
	}
	var got []row
	for _, l := range Lines(p) {
		got = append(got, row{l.Offset, l.Nodes, l.Sharing, l.HITM, l.Elsewhere})
	}
	want := []row{
		{256, []int{0, 1, 2}, TrueSharing, 0, 26},
		{192, []int{0, 1}, FalseSharing, 20, 25},
		{0, []int{0, 1}, FalseSharing, 0, 13},
		{64, []int{0, 2}, TrueSharing, 0, 12},
		{320, []int{0, 1}, UnclearSharing, 0, 9},
		{128, []int{1}, UnclearSharing, 7, 7},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
