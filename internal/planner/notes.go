package planner

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/classify"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// maxNamed bounds the objects that notes name one by one.
const maxNamed = 8

// warnings say how far to trust a plan made from this profile.
func (d *demand) warnings(r *Result) []string {
	var w []string
	run := &d.p.Run
	if run.Plan != "" {
		w = append(w, fmt.Sprintf("the profile was taken with the plan %s in force: what that plan already placed counts as right and is missing here; profile without --plan", run.Plan))
	}
	if !run.Complete {
		w = append(w, "the profiled run was cut short; what came after is not planned for")
	}
	if d.allLevels {
		w = append(w, fmt.Sprintf("the profile has fewer than %d DRAM accesses, so accesses of all levels were counted; a larger problem size tells more", d.opt.MinDRAM/d.grain*max(1, run.Period)))
	}
	if d.few != "" {
		w = append(w, d.few)
	}
	if d.known == 0 {
		w = append(w, "the profile has no accesses to pages with a known home; there is nothing to plan")
	}
	if run.OtherAccesses > d.known/d.grain {
		w = append(w, fmt.Sprintf("%d other processes of the run are not in the profile", run.Processes-1))
	}
	return append(append(w, d.missingPages()...), d.dealtWork(r)...)
}

// notes say what the plan does not do, and why.
func (d *demand) notes(r *Result, groups []group, drop dropped) []string {
	notes := append(weighing(d.p, d.opt), d.uncertainty(r)...)
	right, small := 0, 0
	var smallSaves uint64
	for i := range r.Decisions {
		x := &r.Decisions[i]
		switch {
		case x.Place != "" || x.Accesses == 0:
		case asGood(x.Before, x.Best, x.Accesses):
			if x.luck() {
				continue // hopeless says why
			}
			if d.points(x.Accesses) >= d.opt.MinGain {
				right++
			}
		default:
			small++
			smallSaves += x.Before - x.Best
		}
	}
	if right > 0 {
		notes = append(notes, fmt.Sprintf("%s placed by first touch already as well as pages can be, and not in the plan", count(right, "object is", "objects are")))
	}
	if share := d.points(smallSaves); small > 0 && share >= 0.005 {
		notes = append(notes, fmt.Sprintf("%s left out: all together they would save at most %.2f points of the %s", count(small, "object is", "objects are"), share, d.counted()))
	}
	if drop.entries > 0 {
		notes = append(notes, fmt.Sprintf("%s beyond the most that a plan has, %d, left out: %.2f points", count(drop.entries, "entry is", "entries are"), d.opt.MaxEntries, d.points(drop.saves)))
	}
	notes = append(notes, d.rangeNotes(groups)...)
	notes = append(notes, d.hopeless(r)...)
	notes = append(notes, d.stuckLoops(r)...)
	return append(notes, d.excluded(groups)...)
}

func (d *demand) points(accesses uint64) float64 {
	return units.Percent(float64(accesses), float64(d.known))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// hopeless names the objects that stay remote wherever their pages are.
func (d *demand) hopeless(r *Result) []string {
	var list []Decision
	for _, x := range r.Decisions {
		if x.Place != OwnPlace && x.Accesses > 0 && d.points(x.Best) >= 1 && 5*x.Best > x.Accesses {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b Decision) int { return cmp.Compare(b.Best, a.Best) })
	var notes []string
	for _, x := range list[:min(len(list), maxNamed)] {
		unless := ""
		if x.luck() && x.Evidence == classify.Guessed {
			unless = "if its work is handed out at run time, as it looks, "
		}
		notes = append(notes, fmt.Sprintf("%s: %splacement cannot help further: with every page on its best node %s of the accesses to it stay remote, %s",
			clean(x.Name), unless, units.FormatPercent(units.Percent(float64(x.Best), float64(x.Accesses))), x.because()))
	}
	return notes
}

// luck reports whether x stays remote because its work is handed out at run time.
func (x *Decision) luck() bool { return 2*x.Chance >= x.Accesses && 5*x.Best > x.Accesses }

// why is what makes the use of x chance, as far as it is known.
func (x *Decision) why() string {
	switch x.Evidence {
	case classify.Known:
		return "because OpenMP hands out the work on it at run time, to other threads in each run"
	case classify.Different:
		return "because other threads did the work on it in each of the profiled runs"
	}
	return "because other threads then do the work on it in each run"
}

// stuckLoops names the loops that stay remote and cannot be permuted.
func (d *demand) stuckLoops(r *Result) []string {
	var notes []string
	for _, x := range r.Loops {
		if why := d.loops.why[x.Region]; why != "" && d.points(x.After) >= 1 && len(notes) < maxNamed {
			what := "its schedule is not changed: " + why
			if affine(&d.p.Regions[x.Region]) {
				what = x.Reason
			}
			notes = append(notes, fmt.Sprintf("loop %s: %s; %s of its accesses stay remote", clean(x.Name), what, loopShare(x.After, x.Accesses+x.Again)))
		}
	}
	return notes
}

// because is why accesses stay remote wherever the pages are.
func (x *Decision) because() string {
	const sharing = "because threads of several nodes use the same pages (uniform sharing); where loops divide it differently, another schedule or another layout may change that, and where each thread uses all of it, nothing does"
	switch {
	case x.luck():
		return x.why() + "; only a fixed assignment (a static schedule, a queue for each node) changes that"
	case 10*x.Serial >= 9*x.Best:
		return "those of the main thread outside loops; initialise it in parallel, as it is used"
	case 2*x.Serial >= x.Best:
		return fmt.Sprintf("%.0f %% of these those of the main thread outside loops (initialise it in parallel), the rest %s", units.Percent(float64(x.Serial), float64(x.Best)), sharing)
	}
	return sharing
}

// excluded says what could not be placed at all, where that matters.
func (d *demand) excluded([]group) []string {
	far := make(map[profile.Kind]uint64)
	var nameless, homeless, files, placed uint64
	for i := range d.p.Pages {
		pg := &d.p.Pages[i]
		o := &d.p.Objects[pg.Object]
		use := d.page(i)
		switch {
		case pg.Home < 0 && !o.Kind.Private():
			homeless += sum(use)
		case pg.Home < 0 || d.placeable(o):
		case o.Placed:
			placed += sum(use) - use[d.home[i]]
		case o.FileBacked:
			files += sum(use) - use[d.home[i]]
		case o.Kind == profile.Heap || o.Kind == profile.Mapping || o.Kind == profile.Global:
			nameless += sum(use) - use[d.home[i]]
		default:
			far[o.Kind] += sum(use) - use[d.home[i]]
		}
	}
	var notes []string
	add := func(n uint64, format string) {
		if share := d.points(n); share >= 0.5 {
			notes = append(notes, fmt.Sprintf(format, share))
		}
	}
	add(far[profile.Small], "%.1f points are remote accesses to allocations smaller than a page, which are not placed one by one")
	add(far[profile.Unknown], "%.1f points are remote accesses to memory that nobody could name")
	add(far[profile.Stack]+far[profile.Image], "%.1f points are remote accesses to stacks and the program image, which are not placed")
	add(placed, "%.1f points are remote accesses to memory that the program places itself (mbind, set_mempolicy, move_pages, numaopt.h), which no plan places anew")
	add(files, "%.1f points are remote accesses to mapped files: their pages are on the node that first read them, and no plan moves them; read the file with the threads that use it")
	add(nameless, "%.1f points are remote accesses to objects without a call stack or symbol, which no plan can name")
	add(homeless, "%.1f points more are accesses to pages that were never written (zero pages): they have no home to plan")
	return notes
}

// serialRest is the part of the best totals that serial code makes.
func (d *demand) serialRest(cells []cell) (rest uint64) {
	for i := range cells {
		if c := &cells[i]; c.home >= 0 {
			serial := d.serial[c.profile*d.n : (c.profile+1)*d.n]
			rest += sum(serial) - serial[d.best(c.use, c.home)]
		}
	}
	return rest
}

// chanceOf fills in how much of the accesses to cells is chance, and what says so
// of most of it.
func (d *demand) chanceOf(x *Decision, cells []cell) {
	var most uint64
	for e := range d.luck {
		var luck uint64
		for i := range cells {
			luck += d.luck[e][cells[i].profile]
		}
		x.Chance += luck
		if luck > most {
			most, x.Evidence = luck, classify.Evidence(e)
		}
	}
}

// unplaced is why an object that is used by chance is left to first touch.
var unplaced = [...]string{
	classify.Guessed:   "its work looks handed out at run time, to other threads in each run",
	classify.Known:     "OpenMP hands out its work at run time",
	classify.Different: "other threads use its pages in each run",
}

// saving is why an object is placed that nothing else is said of.
func (x *Decision) saving() string {
	if x.luck() && x.Evidence == classify.Guessed {
		return "used so in this run, though its work looks handed out at run time"
	}
	return "saves remote accesses"
}

// OwnPlace is the place of an object that the program places itself.
const OwnPlace = "by program"

// ownPlaces are the decisions on what the program places itself: none.
func (d *demand) ownPlaces() []Decision {
	var list []Decision
	for i := range d.p.Objects {
		o := &d.p.Objects[i]
		if !o.Placed || !classify.Placeable(o.Kind) {
			continue
		}
		cells := d.cells(i)
		x := Decision{Name: o.Name, Kind: o.Kind, Instances: 1, Bytes: units.Bytes(o.Bytes), Place: OwnPlace,
			Reason: "the program places it itself, and its call wins over a plan's"}
		x.Before, x.Best, x.Accesses = d.totals(cells)
		x.After, x.Best = x.Before, x.Before
		x.Profiled, x.Seen = d.profiled(cells)
		list = append(list, x)
	}
	return list
}

// decisions says what became of each object or call stack, most accesses first.
func (d *demand) decisions(groups []group) []Decision {
	list := d.ownPlaces()
	for i := range groups {
		g := &groups[i]
		o := &d.p.Objects[g.objects[0]]
		x := Decision{Name: o.Name, Kind: o.Kind, Instances: len(g.objects), Reason: g.reason}
		x.Before, x.Best, x.Accesses = d.totals(g.cells)
		x.Profiled, x.Seen = d.profiled(g.cells)
		x.Serial = d.serialRest(g.cells)
		d.chanceOf(&x, g.cells)
		x.After = remoteOf(g.chosen, g, x.Before)
		x.Huge, x.Split = d.huge(g)
		for _, o := range g.objects {
			x.Bytes += units.Bytes(d.p.Objects[o].Bytes)
		}
		switch len(g.chosen) {
		case 0:
			if x.luck() && x.Reason != beyond {
				x.Reason = unplaced[x.Evidence]
			}
		case 1:
			x.Place = g.chosen[0].place.String()
			if x.Reason == "" {
				x.Reason = x.saving()
			}
		default:
			x.Place = fmt.Sprintf("%d entries", len(g.chosen))
			x.Reason = x.saving()
		}
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Decision) int { return cmp.Compare(b.Accesses, a.Accesses) })
	return list
}
