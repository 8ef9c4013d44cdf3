package planner

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// LoopDecision is what became of one worksharing loop, or of what a parallel region
// does outside such loops.
type LoopDecision struct {
	Region int // in profile.Regions
	Name   string
	// Accesses are those in the loop to pages with a known home; Before and After
	// the remote ones of them, as profiled and with the plan. Again is accesses that
	// the plan adds, because caches lose what another node uses next.
	Accesses, Before, After, Again uint64
	// Stolen is the part of After that is remote because an affine loop's nodes have
	// not as much to do in their parts, and help each other.
	Stolen uint64
	// Schedule is what the plan does with it: AsItIs, "static", "static-inverse", "nodes" and
	// plan.Loop.Nodes, "block-exclusive", these and plan.Loop.Step, or
	// "affine". Reason says why: what it and others would leave remote,
	// in points of all accesses, of those to the pages that permutable loops use.
	Schedule, Reason string
	// Refused is why its schedule cannot be changed in this binary; empty if it can.
	Refused string
}

// AsItIs is the schedule of what is not static, or whose schedule is not known.
const AsItIs = "as it is"

// scheduled plans the loops as well as the pages, for which Options speaks and which
// saves enough beside the pages alone; it notes in r what those save.
func (d *demand) scheduled(r *Result) ([]group, dropped) {
	groups, drop := d.solve()
	r.PagesOnly = d.splitBy(d.expected, groups)
	pages := d.split(groups, false).Remote
	choice := d.search()
	if choice == nil {
		return groups, drop
	}
	d.otherwise = placesOf(groups)
	groups = nil // large profiles need the memory; it is soon made again
	d.arrange(choice)
	groups, drop = d.solve()
	gain := int64(pages) - int64(d.split(groups, false).Remote)
	if float64(gain) >= d.opt.MinSchedule/100*float64(d.known) {
		return groups, drop
	}
	for g, c := range choice {
		if !c.static() {
			d.verdict[g] = fmt.Sprintf("kept static: all schedules together would save %.2f points beside the pages, less than %v; %s",
				d.points(uint64(max(0, gain))), d.opt.MinSchedule, d.verdict[g])
		}
	}
	d.otherwise = nil
	d.arrange(nil)
	return d.solve()
}

// search is the best schedules by group of loops; nil where all stay static.
func (d *demand) search() []schedule {
	s := newSearch(d)
	if s == nil {
		return nil
	}
	best, loads := s.evenly(s.run())
	d.compared(s, best, loads)
	if best.moved == 0 {
		return nil
	}
	return best.choice
}

// compared notes for each group of loops what the schedules that were tried would
// cost, each with the pages that the loops use following, and what loads says of them.
func (d *demand) compared(s *search, best *state, loads map[int]string) {
	d.verdict = make([]string, len(best.choice))
	for g, c := range best.choice {
		if d.loops.groups[g].all == 0 {
			d.verdict[g] = "no accesses that move with its chunks"
			continue
		}
		now := s.remoteOf(best, g, c)
		points := func(remote uint64) float64 {
			return units.Percent(float64(best.remote-now+remote), float64(d.known))
		}
		var others []string
		if !c.static() {
			others = append(others, fmt.Sprintf("static %.2f", points(s.remoteOf(best, g, schedule{}))))
		}
		rejected := s.rejected(best, g)
		for _, other := range rejected {
			others = append(others, fmt.Sprintf("%v %.2f", other.schedule, points(other.remote)))
		}
		d.verdict[g] = fmt.Sprintf("%v leaves %.2f points of all accesses remote", c, points(now))
		if d.distances != nil {
			d.verdict[g] = fmt.Sprintf("%v costs as %.2f points of all accesses to the farthest node", c, points(now))
		}
		for _, o := range others {
			d.verdict[g] += ", " + o
		}
		d.verdict[g] += "; most in it are to " + clean(d.p.Objects[s.mostly(g)].Name)
		switch says := loads[g]; {
		case c.static() && says != "":
			d.verdict[g] = says + ": " + d.verdict[g]
		case c.static():
			d.verdict[g] = s.whyStatic(best, g, now, rejected) + ": " + d.verdict[g]
		case says != "":
			d.verdict[g] += "; " + says
		}
	}
}

// whyStatic is why group g stays static, leaving now remote, though others were tried.
func (s *search) whyStatic(best *state, g int, now uint64, others []rejected) string {
	if len(others) == 0 || others[0].remote >= now {
		return "nothing is better"
	}
	saves, to := now-others[0].remote, slices.Clone(best.to)
	to[g] = s.d.loops.targets(others[0].schedule)
	switch {
	case s.tooLittle(g, saves):
		return fmt.Sprintf("nothing saves enough, %v of the accesses in it", units.FormatPercent(100*s.d.opt.ScheduleGain))
	case !s.real(&state{to: to}, g, saves):
		return "what another saves is only what the caches happened to hold"
	}
	return "another saves by itself, but not with what the other loops get"
}

// mostly is the object that group g uses most.
func (s *search) mostly(g int) (object int) {
	weight := make(map[int]uint64)
	for _, k := range s.byGroup[g] {
		o := s.d.p.Pages[s.pages[k].page].Object
		for _, f := range s.pages[k].flows {
			if int(f.group) == g {
				weight[o] += f.count
			}
		}
		if w := weight[o]; w > weight[object] || w == weight[object] && o < object {
			object = o
		}
	}
	return object
}

// maxRejected bounds the schedules that an explanation compares with.
const maxRejected = 2

type rejected struct {
	schedule schedule
	remote   uint64
}

// rejected is the candidates for group g but static and what best has, those with
// the fewest remote accesses first; in large profiles only static-inverse.
func (s *search) rejected(best *state, g int) []rejected {
	var list []rejected
	candidates := s.candidates(g)
	if s.steps += float64(len(candidates) * len(s.byGroup[g])); s.steps > maxSteps {
		candidates = s.list[:min(2, len(s.list))]
	}
	for _, c := range candidates {
		if to := s.d.loops.targets(c); !c.static() && !slices.Equal(to, best.to[g]) {
			list = append(list, rejected{c, s.remoteOf(best, g, c)})
		}
	}
	slices.SortStableFunc(list, func(a, b rejected) int { return cmp.Compare(a.remote, b.remote) })
	return list[:min(len(list), maxRejected)]
}

// loopEntries is the loops of the plan, the groups with most accesses first.
func (d *demand) loopEntries(decisions []LoopDecision) []plan.Loop {
	if d.schedules == nil {
		return nil
	}
	var list []plan.Loop
	seen := make(map[codeKey]bool)
	number := 0
	for _, g := range d.byWeight() {
		c, regions := d.schedules[g], d.loops.groups[g].regions
		if c.static() {
			continue
		}
		number++
		for _, i := range regions {
			if at := codeOf(d.p.Regions[i].Site); !seen[at] { // one loop may be called from several regions
				seen[at] = true
				list = append(list, d.loopEntry(i, c, decisions))
				if c.kind == plan.BlockExclusive {
					list[len(list)-1].Sweep = d.loops.groups[g].sweep
				}
				if len(regions) > 1 {
					list[len(list)-1].Group = number
				}
			}
		}
	}
	return list
}

// byWeight is the groups of loops, those with most accesses first.
func (d *demand) byWeight() []int {
	order := make([]int, len(d.loops.groups))
	for g := range order {
		order[g] = g
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(d.loops.groups[b].all, d.loops.groups[a].all)
	})
	return order
}

func (d *demand) loopEntry(i int, c schedule, decisions []LoopDecision) plan.Loop {
	r := &d.p.Regions[i]
	f := d.frame(r.Site, moduleName(d.p, r.Site.Module))
	x := decisions[slices.IndexFunc(decisions, func(x LoopDecision) bool { return x.Region == i })]
	l := plan.Loop{
		Name: clean(r.Name), Module: f.Module, Offset: r.Site.Offset,
		Function: f.Function, File: f.File, Line: f.Line, FunctionLine: f.FunctionLine,
		Runtime: r.Runtime, Schedule: c.kind, Nodes: c.nodes, Step: c.step,
		Why:     fmt.Sprintf("%s of the %s. %s.", loopShare(x.Accesses, d.known), d.counted(), upper(x.Reason)),
		Predict: plan.Predict{RemoteBefore: pct(x.Before, x.Accesses), RemoteAfter: pct(x.After, x.Accesses+x.Again)},
	}
	if l.Name == "" {
		l.Name = "unnamed"
	}
	return l
}

// upper is text with a capital letter.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

// regionLeft is why nothing can be done with a parallel region outside its loops.
const regionLeft = "no static loop was seen here: schedule(runtime), ordered, sections, or code outside loops"

// loopDecision is what becomes of region i, but for its figures.
func (d *demand) loopDecision(i int) LoopDecision {
	r := &d.p.Regions[i]
	x := LoopDecision{Region: i, Name: r.Name, Schedule: schedule{}.String(), Reason: d.loops.why[i], Refused: d.loops.why[i]}
	switch g := d.loops.of[i]; {
	case affine(r):
		x.Schedule = string(plan.Affine)
	case !worksharing(d.p, r):
		x.Schedule, x.Reason = AsItIs, regionLeft
		if r.Dynamic {
			x.Reason = "it hands out its work dynamically"
		}
	case r.Schedule == profile.Affine || r.Schedule == "" && r.Runtime != "libgomp":
		x.Schedule = AsItIs
	case g >= 0 && d.verdict != nil:
		x.Reason = d.verdict[g]
		x.Schedule = d.scheduleOf(g).String()
	}
	return x
}

// loopDecisions says what became of each worksharing loop, and of what parallel regions
// do outside these where that is a point of all accesses, most accesses first.
func (d *demand) loopDecisions(groups []group) []LoopDecision {
	at := make([]int, len(d.p.Regions)) // index in list, plus 1
	var list []LoopDecision
	for i := range d.p.Regions {
		if r := &d.p.Regions[i]; worksharing(d.p, r) || r.Kind == profile.Loop && !r.Worksharing() {
			list = append(list, d.loopDecision(i))
			at[i] = len(list)
		}
	}
	if len(list) > 0 {
		d.countLoops(list, at, groups)
		d.steal(list, groups)
	}
	list = slices.DeleteFunc(list, func(x LoopDecision) bool { return d.points(x.Accesses) < 1 && !d.p.Regions[x.Region].Worksharing() })
	slices.SortStableFunc(list, func(a, b LoopDecision) int { return cmp.Compare(b.Accesses, a.Accesses) })
	return list
}

// countLoops fills in the accesses of list; at is by region the index in it, plus 1.
func (d *demand) countLoops(list []LoopDecision, at []int, groups []group) {
	where, shared := d.places(groups)
	to := make([][]int, len(d.loops.groups))
	for g := range to {
		to[g] = d.loops.targets(d.scheduleOf(g))
	}
	for i := range d.p.Rows {
		r := &d.p.Rows[i]
		home := int(d.p.Pages[r.Page].Home)
		if at[r.Region] == 0 || home < 0 {
			continue
		}
		x, g := &list[at[r.Region]-1], d.loops.of[r.Region]
		moves := g >= 0 && !d.ofThread[d.p.Pages[r.Page].Object]
		if moves {
			d.countAgain(x, to[g], g, r, where, shared)
		}
		if !d.counts(r) {
			continue
		}
		count := r.Count * d.grain
		x.Accesses += count
		if affine(&d.p.Regions[r.Region]) {
			x.Before += d.chanceRemote(home, count)
		} else {
			x.Before += d.farStill(r, count, nil, nil)
		}
		if !moves {
			x.After += d.farStill(r, count, where, shared)
			continue
		}
		sure := d.sure(r, count)
		x.After += d.farDealt(r, count-sure, where, shared)
		for part := range d.loops.pieces(g, r) {
			x.After += d.farFrom(to[g][part.slot], int(r.Page), part.of(sure), where, shared)
		}
	}
}

// countAgain counts in x what row r of a loop of group g adds with its chunks run
// where to says, by slot, and the pages where places says.
func (d *demand) countAgain(x *LoopDecision, to []int, g int, r *profile.Row, where []int, shared map[int][]int) {
	again := d.loops.again(d.p, g, r) * d.grain
	if again == 0 {
		return
	}
	for part := range d.loops.pieces(g, r) {
		if part.from > 0 && d.loops.turned(part.slot, to) {
			x.Again += again
			x.After += d.farFrom(to[part.slot], int(r.Page), again, where, shared)
		}
	}
}

// sure is how many of count accesses of r the same node makes in each run; the others are
// dealt to any.
func (d *demand) sure(r *profile.Row, count uint64) uint64 {
	if d.hands[d.chance.Part(r)] == nil {
		return count
	}
	return uint64(d.chance.Repeats(r) * float64(count))
}

// farStill is farFrom for row r of work that no schedule moves; where nil is as
// profiled.
func (d *demand) farStill(r *profile.Row, count uint64, where []int, shared map[int][]int) uint64 {
	from, sure := int(d.p.Threads[r.Thread].Node), d.sure(r, count)
	far := d.farDealt(r, count-sure, where, shared)
	if where != nil {
		return far + d.farFrom(from, int(r.Page), sure, where, shared)
	}
	if from != int(d.p.Pages[r.Page].Home) {
		far += sure
	}
	return far
}

// farDealt is farStill for count accesses of row r that any node may make: divided as in
// dealt.divide, and pages that such work touches first follow it.
func (d *demand) farDealt(r *profile.Row, count uint64, where []int, shared map[int][]int) uint64 {
	if count == 0 {
		return 0
	}
	from, at, nodes := int(d.p.Threads[r.Thread].Node), int(d.p.Pages[r.Page].Home), d.hands[d.chance.Part(r)]
	switch {
	case shared[int(r.Page)] != nil:
		return count - share(count, mean(nodes, shared[int(r.Page)]), sum(nodes))
	case where != nil && where[r.Page] >= 0:
		return count - share(count, nodes[where[r.Page]], sum(nodes))
	case !d.dealtFirst[r.Page]:
		return count - share(count, nodes[at], sum(nodes))
	case from == at:
		return 0
	}
	return count
}

// farFrom is how many of count accesses from a node to a page are remote, with the
// pages where places says.
func (d *demand) farFrom(node, page int, count uint64, where []int, shared map[int][]int) uint64 {
	if nodes := shared[page]; nodes != nil {
		if slices.Contains(nodes, node) {
			return count - count/uint64(len(nodes))
		}
		return count
	}
	home := where[page]
	if w := d.tossed[page]; home < 0 && w != nil {
		return count - share(count, w[node], sum(w))
	}
	if home < 0 {
		home = d.home[page]
	}
	if home == node {
		return 0
	}
	return count
}

// scheduleOf is what the plan does with group g of loops.
func (d *demand) scheduleOf(g int) schedule {
	if d.schedules == nil {
		return schedule{}
	}
	return d.schedules[g]
}

// counts reports whether the plan is made from r, but for Options.Only.
func (d *demand) counts(r *profile.Row) bool { return d.allLevels || r.Level == profile.DRAM }
