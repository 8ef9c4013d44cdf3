package advice

import (
	"fmt"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/profile"
)

// initialise finds what the main thread fills and a plan cannot place, although each
// page is mostly used from one node: stacks, allocations below a page.
func (f *finder) initialise() (items []Item) {
	serial := access.SerialCode(f.p)
	pages := make(map[int]*page)
	loops := make([]map[int]float64, len(f.groups))
	f.each(func(r *profile.Row) {
		pg := &f.p.Pages[r.Page]
		if f.plan.Placeable(pg.Object) || !pg.Serial || f.p.Objects[pg.Object].Kind == profile.Image {
			return
		}
		x := f.pageOf(pages, r)
		if serial(r) {
			return // goes with the initialisation
		}
		x.use[f.p.Threads[r.Thread].Node] += float64(r.Count)
		if g := f.of[pg.Object]; loops[g] == nil {
			loops[g] = map[int]float64{int(r.Region): float64(r.Count)}
		} else {
			loops[g][int(r.Region)] += float64(r.Count)
		}
	})
	saved := make([]float64, len(f.groups))
	places := make([]map[int]int, len(f.groups))
	for i, x := range pages {
		most, all := x.most()
		g := f.of[f.p.Pages[i].Object]
		saved[g] += max(0, x.before-(all-most))
		if at := f.p.Pages[i].Place; at >= 0 {
			if places[g] == nil {
				places[g] = make(map[int]int)
			}
			places[g][at]++
		}
	}
	for g := range f.groups {
		if f.taken[g] || !f.ofProgram(g) || !f.matters(saved[g]) {
			continue
		}
		f.taken[g] = true
		x := &f.groups[g]
		item := Item{Kind: Initialise, Objects: []string{x.Name}, Loops: f.loopsOf(loops[g]), saved: saved[g]}
		for region := range loops[g] {
			item.use(region, g)
		}
		at := f.firstTouch(places[g])
		what := fmt.Sprintf("Each thread fills, in a loop with the bounds and schedule of %s, what it uses there.", strings.Join(item.Loops, ", "))
		switch x.Kind {
		case profile.Stack:
			item.Why = fmt.Sprintf("Data on the main thread's stack, first touched%s, is used by threads of other nodes, and no plan places stacks.", at)
			what = "Allocate it, or make it static: plan places it then. Or: " + what
		case profile.Small:
			item.Why = fmt.Sprintf("Allocations smaller than a page (%s) are made and first touched%s by the main thread and used by threads of other nodes, each page mostly from one; no plan places them one by one.", x.Name, at)
			what += " Or: take them from one large block for each thread."
		default:
			item.Why = fmt.Sprintf("%s is first touched%s by the main thread and used by threads of other nodes, and no plan can name it.", x.Name, at)
		}
		item.Respect = []string{"What is read from a file, or follows from the element before, is filled in order: then touch each thread's pages first in parallel (write a zero to them), and fill them after."}
		item.Changes = []Change{{Where: "where it is filled" + at, Text: what + "\n"}}
		items = append(items, item)
	}
	return items
}

// firstTouch is " at init.c:5 (init)", the place with most first touches; "" if not known.
func (f *finder) firstTouch(places map[int]int) string {
	best, most := -1, 0
	for i, n := range places {
		if n > most || n == most && i < best {
			best, most = i, n
		}
	}
	if best < 0 {
		return ""
	}
	return " at " + access.CodeName(f.p, f.p.Places[best])
}
