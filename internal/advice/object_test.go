package advice

import (
	"math"
	"slices"
	"strings"
	"testing"

	"numaopt/internal/access"
	"numaopt/internal/planner"
	"numaopt/internal/profile"
	"numaopt/internal/profile/profiletest"
)

// drawn is the advice for a drawn profile, without source files.
func drawn(t *testing.T, p *profile.Profile) *Advice {
	t.Helper()
	r, err := planner.Build(p, planner.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	a, err := Find(p, r, Options{Planner: planner.DefaultOptions(), MinSave: DefaultMinSave, Read: func(string) []byte { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if a.Source > a.Automatic {
		t.Errorf("with all changes %.1f %% are remote, without %.1f %%", a.Source, a.Automatic)
	}
	for i := range a.Items {
		if x := &a.Items[i]; x.Remote < 0 || x.Remote > a.Automatic || x.Saves < DefaultMinSave {
			t.Errorf("%s: %.1f %% remote, saves %.1f", x.Kind, x.Remote, x.Saves)
		}
	}
	return a
}

func times(n int, page string) string { return strings.Repeat(page+" | ", n-1) + page }

// kinds is the kinds of the items with what they are for.
func (a *Advice) kinds() string {
	var list []string
	for _, x := range a.Items {
		list = append(list, string(x.Kind)+" "+strings.Join(x.Objects, "+"))
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

// writes makes every access in a loop to object o a store.
func writes(p *profile.Profile, o int) {
	for i := range p.Rows {
		if r := &p.Rows[i]; p.Pages[r.Page].Object == o && r.Region != profiletest.Main {
			r.Op = profile.Store
		}
	}
}

// onePage makes object 1, a global, begin in the last page of object 0.
func onePage(p *profile.Profile) {
	a, b := &p.Objects[0], &p.Objects[1]
	a.Bytes -= 2048
	b.Offset, b.Head = a.Offset+uint64(a.Bytes), 2048
	b.Bytes -= 2048
}

func TestObjects(t *testing.T) {
	local := "v global: " + times(8, "0 9000 0") + " | " + times(8, "1 0 9000")
	for _, c := range []struct {
		name string
		p    *profile.Profile
		edit func(*profile.Profile)
		want string
	}{
		{name: "read by all, after one thread filled it", p: profiletest.Draw(2, 1, "table heap: "+times(8, "0!64 900 900"), local), want: "replicate table"},
		{name: "the same, written in the loop", p: profiletest.Draw(2, 1, "table heap: "+times(8, "0!64 900 900"), local),
			edit: func(p *profile.Profile) { writes(p, 0) }, want: ""},
		{name: "the same, written in a loop that is entered once", p: profiletest.Draw(2, 1, "table heap: "+times(8, "0!64 900 900/9 9"), local),
			edit: func(p *profile.Profile) {
				p.Regions[profiletest.Back].Entries = 1
				for i := range p.Rows {
					if p.Rows[i].Region == profiletest.Back {
						p.Rows[i].Op = profile.Store
					}
				}
			}, want: "replicate table"},
		{name: "small allocations of the main thread's", p: profiletest.Draw(2, 1, "keys small: "+times(8, "0!64 900 0")+" | "+times(8, "0!64 0 900"), local), want: "initialise keys"},
		{name: "small allocations first touched in the loop", p: profiletest.Draw(2, 1, "keys small: "+times(8, "0 900 20")+" | "+times(8, "0 20 900"), local), want: ""},
		{name: "an array on the main thread's stack", p: profiletest.Draw(2, 1, "stack stack: "+times(8, "0!64 900 0")+" | "+times(8, "0!64 0 900"), local), want: "initialise thread stacks"},
		{name: "slots of threads", p: profiletest.Draw(2, 1, "sums heap: 0 9000 9000", local), edit: func(p *profile.Profile) { writes(p, 0) }, want: "separate sums"},
		{name: "neighbours in one page", p: profiletest.Draw(2, 1, "a global: 0 900 0 | 0 9000 0", "b global: 0 0 9000 | 1 0 900", local), edit: onePage, want: "separate a+b"},
		{name: "neighbours of one node", p: profiletest.Draw(2, 1, "a global: 0 900 0 | 0 9000 0", "b global: 0 9000 0 | 1 0 900", local), edit: onePage, want: ""},
		{name: "all is local", p: profiletest.Draw(2, 1, local), want: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(c.p)
			}
			a := drawn(t, c.p)
			if got := a.kinds(); got != c.want {
				t.Errorf("got %q, want %q\n%s", got, c.want, printed(t, a))
			}
		})
	}
}

// The copies make reads local, and nothing else: a table of 144 k reads, half of
// them remote, beside 144 k local accesses; the table is read for its copies and the copy
// is written once, line by line, on the other node.
func TestReplicatePrediction(t *testing.T) {
	p := profiletest.Draw(2, 1, "table heap: "+times(8, "0!64 9000 9000"), "v global: "+times(8, "0 9000 0")+" | "+times(8, "1 0 9000"))
	a := drawn(t, p)
	item := a.only(t, Replicate)
	if a.Automatic < 24 || a.Automatic > 26 || math.Abs(item.Remote-100*1024/(288e3+1024)) > 0.01 {
		t.Errorf("%.2f %% -> %.2f %%", a.Automatic, item.Remote)
	}
	compare(t, a, "replicate.txt")
	// What is stored at its border may be a neighbour's.
	p.Objects[0].Head, p.Objects[0].Bytes = 32, p.Objects[0].Bytes-64
	for i := range p.Rows {
		if r := &p.Rows[i]; p.Pages[r.Page].Object == 0 && p.Pages[r.Page].Index == 7 && r.Region != profiletest.Main {
			r.Op = profile.Store
		}
	}
	drawn(t, p).only(t, Replicate)
	writes(p, 0)
	if a := drawn(t, p); len(a.Items) > 0 {
		t.Errorf("%s", a.kinds())
	}
}

func TestSeparateText(t *testing.T) {
	p := profiletest.Draw(2, 1, "a global: 0 900 0 | 0 9000 0", "b global: 0 0 9000 | 1 0 900")
	onePage(p)
	a := drawn(t, p)
	if item := a.only(t, Separate); item.Remote > 0.01 {
		t.Errorf("%.2f %% -> %.2f %%", a.Automatic, item.Remote)
	}
	compare(t, a, "separate.txt")
}

// Only loops that were asked for count.
func TestOnly(t *testing.T) {
	p := profiletest.Draw(2, 1, "table heap: "+times(8, "0!64 900 900"), "v global: "+times(8, "0 9000 0/9 9000"))
	opt := planner.DefaultOptions()
	opt.Only = []string{"back"}
	r, err := planner.Build(p, opt)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Find(p, r, Options{Planner: opt, MinSave: DefaultMinSave, Read: func(string) []byte { return nil }})
	if err != nil || len(a.Items) > 0 {
		t.Errorf("%v, %s", err, a.kinds())
	}
}

// TestSeveral: allocations of one call stack that nothing is advised for.
func TestSeveral(t *testing.T) {
	f := &finder{opt: Options{MinSave: 1}, known: 100, far: []float64{50, 50, 0.5, 50}, taken: []bool{false, true, false, false}}
	for _, objects := range [][]int{{0, 1}, {2, 3}, {4, 5}, {6}} {
		f.groups = append(f.groups, access.Group{Kind: profile.Heap, Name: "rows", Objects: objects})
	}
	if notes := f.several(); len(notes) != 1 || !strings.Contains(notes[0], "rows is 2 allocations of one call stack, which leave 50.0 points remote") {
		t.Errorf("%q", notes)
	}
}

// An option names one object.
func TestShapeOption(t *testing.T) {
	f := &finder{groups: []access.Group{{Name: "a.f90:7 (p)"}, {Name: "a.f90:7 (p) #2"}, {Name: "u in a.f90"}}}
	for g, want := range []string{"'a.f90:7 (p)=N1,N2,…:BYTES'", "'a.f90:7 (p) #2=N1,N2,…:BYTES'", "u=N1,N2,…:BYTES"} {
		if got := f.shapeOption(g); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
