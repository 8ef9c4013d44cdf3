package planner

import (
	"strings"
	"testing"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

func TestEntry(t *testing.T) {
	p := profiletest.Draw(2, 1, picture("u heap", "8 x 0!1 900 0", "2 x ", "6 x 0!1 0 900"))
	e := build(t, p, DefaultOptions()).Plan.Objects[0]
	for _, want := range []string{"Serial initialisation: first touched by thread 0 on node 0 in main (init.c:5)", "node 0 (57 %), node 1 (43 %)", "100.0 % of the DRAM accesses"} {
		if !strings.Contains(e.Why, want) {
			t.Errorf("no %q in %q", want, e.Why)
		}
	}
	if got, want := e.Touched.String(), "1*8 -*2 1*6"; got != want {
		t.Errorf("touched %s, want %s", got, want)
	}
	if len(e.Stack) != 1 || e.Stack[0].Module != (plan.Module{Name: "app", BuildID: "abcd"}) || e.Stack[0].Line != 3 {
		t.Errorf("stack %+v", e.Stack)
	}
}

// What an entry says was touched is no more than the profile saw, of every
// object that it places.
func TestTouched(t *testing.T) {
	all := profiletest.Draw(2, 1, picture("u heap", "4 x 0 900 0"))
	holes := profiletest.Draw(2, 1, picture("u heap", "8 x 0 900 0"), picture("u heap", "2 x ", "6 x 0 900 0"), picture("u heap", "3 x 0 900 0", "1 x "))
	disjoint := profiletest.Draw(2, 1, picture("u heap", "4 x 0 900 0", "4 x "), picture("u heap", "4 x ", "4 x 0 900 0"))
	for _, c := range []struct {
		p    *profile.Profile
		unit unit
		want string
	}{
		{all, unit{objects: []int{0}, pages: 4}, "1*4"},
		{holes, unit{objects: []int{1}, pages: 8, instance: &plan.Instance{First: 1, Count: 1}}, "-*2 1*6"},
		{holes, unit{objects: []int{0, 1}, pages: 8}, "-*2 1*6"},
		{holes, unit{objects: []int{0, 1, 2}, pages: 8}, "-*2 1*4 -*1 1*1"},
		{holes, unit{objects: []int{2, 0}, pages: 4}, "1*3 -*1"},
		{holes, unit{objects: []int{0, 1}, pages: 24, instance: &plan.Instance{Count: 3}}, "1*8 -*2 1*6 -*8"},
		{disjoint, unit{objects: []int{0, 1}, pages: 8}, ""}, // -*8 would place nothing
		{disjoint, unit{objects: []int{0}, pages: 8, instance: &plan.Instance{Count: 1}}, "1*4 -*4"},
	} {
		for o := range c.p.Objects {
			c.p.Objects[o].Ordinal = o
		}
		d, err := newDemand(c.p, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		if got := d.touched(&c.unit).String(); got != c.want {
			t.Errorf("objects %v: %s, want %s", c.unit.objects, got, c.want)
		}
	}
	ragged := plan.Runs{{Node: 1, Count: 2}, {Node: -1, Count: 1}, {Node: 1, Count: 5}, {Node: -1, Count: 1}, {Node: 1, Count: 2}, {Node: -1, Count: 3}, {Node: 1, Count: 1}}
	if got, want := coarse(ragged, 5).String(), "1*2 -*1 1*8 -*3 1*1"; got != want {
		t.Errorf("coarse %s, want %s: every touched page counts", got, want)
	}
}
