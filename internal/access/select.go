package access

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// Selection is the part of a profile that is asked for: the accesses that are of one of
// Loops, of one of Objects and of one of Threads; an empty list is all.
type Selection struct {
	Loops   []string // names as Only takes them
	Objects []string // names as Called takes them
	Threads []int    // ranks
	// Variable is the variable behind an object, as far as it is known; nil is never.
	Variable func(object int) string
}

// Select returns p restricted to s: other rows are gone, and so are the pages that no
// row is left of, latencies, uses of code and intervals, and all of those of these that
// do not tell what s asks for: latencies and code have no threads, intervals no objects.
// Cache lines stay whole where one of their parties is selected. Everything but the
// tables is shared with p. A name that matches nothing is an error that lists the names
// at hand. The whole of p is p itself.
func Select(p *profile.Profile, s Selection) (*profile.Profile, error) {
	if len(s.Loops)+len(s.Objects)+len(s.Threads) == 0 {
		return p, nil
	}
	loops, err := Regions(p, s.Loops)
	if err != nil {
		return nil, err
	}
	objects, err := s.objects(p)
	if err != nil {
		return nil, err
	}
	threads, err := s.threads(p)
	if err != nil {
		return nil, err
	}
	q := *p
	q.Pages, q.Rows = selectRows(p, func(r *profile.Row) bool {
		return loops[r.Region] && objects[p.Pages[r.Page].Object] && threads[r.Thread]
	})
	q.Latencies = selected(p.Latencies, func(l *profile.Latency) bool { return len(s.Threads) == 0 && loops[l.Region] && objects[l.Object] })
	q.CodeUses = selected(p.CodeUses, func(u *profile.CodeUse) bool { return len(s.Threads) == 0 && loops[u.Region] && objects[u.Object] })
	q.Intervals = selected(p.Intervals, func(v *profile.Interval) bool { return len(s.Objects) == 0 && loops[v.Region] && threads[v.Thread] })
	q.Lines = selectLines(p, func(l *profile.LineUse) bool { return len(s.Threads) == 0 && loops[l.Region] && objects[l.Object] })
	return &q, nil
}

// selected is the entries that keep wants.
func selected[T any](list []T, keep func(*T) bool) (out []T) {
	for i := range list {
		if keep(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// selectRows is the rows that keep wants and their pages.
func selectRows(p *profile.Profile, keep func(*profile.Row) bool) (pages []profile.Page, rows []profile.Row) {
	rows = selected(p.Rows, keep)
	number := make([]int32, len(p.Pages)) // of the page in pages, plus 1; 0 is not there
	for i := range rows {
		number[rows[i].Page] = 1
	}
	for i, used := range number {
		if used != 0 {
			pages = append(pages, p.Pages[i])
			number[i] = int32(len(pages))
		}
	}
	for i := range rows {
		rows[i].Page = number[rows[i].Page] - 1
	}
	return pages, rows
}

// selectLines is the cache lines of p of which keep wants a party.
func selectLines(p *profile.Profile, keep func(*profile.LineUse) bool) []profile.LineUse {
	type line struct {
		object int32
		offset int64
	}
	found := make(map[line]bool)
	for i := range p.Lines {
		if l := &p.Lines[i]; keep(l) {
			found[line{l.Object, l.Offset}] = true
		}
	}
	return selected(p.Lines, func(l *profile.LineUse) bool { return found[line{l.Object, l.Offset}] })
}

// everything is n times true.
func everything(n int) []bool { return slices.Repeat([]bool{true}, n) }

// objects tells for each object of p whether it is selected.
func (s *Selection) objects(p *profile.Profile) ([]bool, error) {
	if len(s.Objects) == 0 {
		return everything(len(p.Objects)), nil
	}
	in := make([]bool, len(p.Objects))
	groups, _ := Groups(p)
	for _, name := range s.Objects {
		exact := slices.ContainsFunc(groups, func(g Group) bool { return g.Name == name })
		found := false
		for i := range groups {
			g := &groups[i]
			if exact && g.Name != name || !Called(p, g, s.variable(g), name) {
				continue
			}
			found = true
			for _, o := range g.Objects {
				in[o] = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no object is called %q; the profile has %s", name, objectsAtHand(p, groups))
		}
	}
	return in, nil
}

func (s *Selection) variable(g *Group) string {
	if s.Variable == nil {
		return ""
	}
	return s.Variable(g.Objects[0])
}

// Called reports whether a user means group g by a name: its own, the first word of
// it, its symbol, or its variable. Those of Fortran match in upper and lower case.
func Called(p *profile.Profile, g *Group, variable, name string) bool {
	o := &p.Objects[g.Objects[0]]
	fortran := ident.Fortran(o.File)
	if o.Site >= 0 && o.Site < len(p.Sites) {
		for _, c := range p.Sites[o.Site].Frames {
			fortran = fortran || len(c.Inlined) > 0 && ident.Fortran(c.Inlined[0].File)
		}
	}
	first, _, _ := strings.Cut(g.Name, " ")
	for _, s := range []string{g.Name, first, o.Symbol, variable} {
		if s != "" && (s == name || fortran && strings.EqualFold(s, name)) {
			return true
		}
	}
	return false
}

// objectsAtHand lists groups, those with most accesses first.
func objectsAtHand(p *profile.Profile, groups []Group) string {
	sums := ByObject(p)
	return atHand(len(groups), func(i int) (string, uint64) {
		var n uint64
		for _, o := range groups[i].Objects {
			n += sums[o].All.Total()
		}
		return groups[i].Name, n
	})
}

// threads tells for each thread of p whether it is selected.
func (s *Selection) threads(p *profile.Profile) ([]bool, error) {
	if len(s.Threads) == 0 {
		return everything(len(p.Threads)), nil
	}
	in := make([]bool, len(p.Threads))
	for _, rank := range s.Threads {
		found := false
		for i := range p.Threads {
			if p.Threads[i].Rank == rank {
				in[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("no thread has the rank %d; the profile has %s", rank, ranksAtHand(p))
		}
	}
	return in, nil
}

func ranksAtHand(p *profile.Profile) string {
	var ranks []int
	for _, t := range p.Threads {
		ranks = append(ranks, t.Rank)
	}
	slices.Sort(ranks)
	return topo.FormatList(slices.Compact(ranks))
}
