package planner

import (
	"errors"
	"fmt"
	"slices"

	"numaopt/internal/plan"
	"numaopt/internal/profile"
	"numaopt/internal/units"
)

// A loop of a dynamic or guided schedule leaves it to chance who uses which page.
// Affine (plan.Affine) it is nearly a static one: each node has its part of the
// iterations. Which pages a part uses no run of the loop as it is can tell, so the
// profile is of a run in which all such loops were affine and no thread stole
// (profile.Affine). Read as chance it says what the program does without that, read
// as it is what it does with it, but for stealing: what a node's part has to do more
// than its share of the CPUs, others do. How long a part takes is not known; its
// accesses of all levels stand for that. Pages that the loop touches first follow the
// thief.

// affine reports whether the plan makes loop r affine.
func affine(r *profile.Region) bool { return r.Schedule == profile.Affine && !r.Dynamic }

// asAffine is p with its affine loops no longer left to chance.
func asAffine(p *profile.Profile) *profile.Profile {
	q := *p
	q.Regions = slices.Clone(p.Regions)
	for i := range q.Regions {
		if r := &q.Regions[i]; r.Schedule == profile.Affine {
			r.Dynamic = false
		}
	}
	return &q
}

// buildAffine makes the plan with all loops affine that ran so in p, or without if
// that does not save enough.
func buildAffine(p *profile.Profile, opt Options) (*Result, error) {
	ran := func(r profile.Region) bool { return r.Schedule == profile.Affine && worksharing(p, &r) }
	switch {
	case !slices.ContainsFunc(p.Regions, ran):
		return nil, errors.New("no loop of the profile ran affine: it has none that hands out its work, or was made without --affine; use numaopt profile --affine")
	case p.Run.Bind == "none":
		return nil, errors.New("affine chunks take threads that stay on their nodes, and those of the profile were not bound: profile it with --bind compact")
	}
	without, err := planFor(p, opt)
	if err != nil {
		return nil, err
	}
	opt.Again = affineAgain(opt.Again)
	with, err := planFor(asAffine(p), opt)
	if err != nil {
		return nil, err
	}
	saves := without.After.RemotePct() - with.After.RemotePct()
	if saves < opt.MinSchedule {
		note := fmt.Sprintf("no loop is made affine: all together would save %.2f points beside this plan, less than %v", saves, opt.MinSchedule)
		without.Plan.Notes = append(without.Plan.Notes, note)
		return without, nil
	}
	with.Before, with.PagesOnly = without.Before, without.After
	with.Plan.Predict.RemoteBefore = round(with.Before.RemotePct())
	with.Plan.Predict.PagesOnly = round(with.PagesOnly.RemotePct())
	return with, with.Plan.Check()
}

// affineAgain is further runs read as asAffine does.
func affineAgain(again []Further) []Further {
	list := slices.Clone(again)
	for i := range list {
		list[i].Profile = asAffine(list[i].Profile)
	}
	return list
}

// affineEntries is the loops of the plan that become affine, each call site once.
func (d *demand) affineEntries(decisions []LoopDecision) []plan.Loop {
	var list []plan.Loop
	seen := make(map[codeKey]bool)
	for _, x := range decisions {
		r := &d.p.Regions[x.Region]
		if at := codeOf(r.Site); affine(r) && !seen[at] {
			seen[at] = true
			list = append(list, d.loopEntry(x.Region, schedule{kind: plan.Affine}, decisions))
		}
	}
	return list
}

// chanceRemote is how many of count accesses to a page with this home are remote
// where any CPU may make them.
func (d *demand) chanceRemote(home int, count uint64) uint64 {
	all := uint64(cpus(d.p))
	return share(count, all-uint64(len(d.p.Run.Topology.Nodes[home].CPUs)), all)
}

// byCPUs divides what the nodes did as their CPUs would divide it.
func (d *demand) byCPUs(nodes []uint64) {
	all, total := sum(nodes), uint64(cpus(d.p))
	for n := range nodes {
		nodes[n] = share(all, uint64(len(d.p.Run.Topology.Nodes[n].CPUs)), total)
	}
}

// steal adds to the affine loops of list what is remote because of stealing.
func (d *demand) steal(list []LoopDecision, groups []group) {
	where, _ := d.places(groups)
	work := make(map[int][]uint64) // by region and node: accesses of all levels
	own := make(map[int]uint64)    // by region: what is local to a thief, too
	for i := range d.p.Rows {
		r := &d.p.Rows[i]
		x, pg := &d.p.Regions[r.Region], &d.p.Pages[r.Page]
		if !affine(x) {
			continue
		}
		if work[int(r.Region)] == nil {
			work[int(r.Region)] = make([]uint64, d.n)
		}
		work[int(r.Region)][d.p.Threads[r.Thread].Node] += r.Count
		if where[int(r.Page)] < 0 && pg.Region == int(r.Region) && pg.Home >= 0 && d.counts(r) {
			own[int(r.Region)] += r.Count * d.grain / max(1, x.Invocations)
		}
	}
	for i := range list {
		x := &list[i]
		nodes := work[x.Region]
		stolen, all := d.stolen(nodes), sum(nodes)
		if stolen == 0 {
			continue
		}
		local := x.Accesses - x.After
		x.Stolen = share(local-min(local, own[x.Region]), stolen, all)
		x.After += x.Stolen
		x.Reason = fmt.Sprintf("%s; %s of its work is of nodes whose part is longer than their share, and others steal it",
			x.Reason, units.FormatPercent(units.Percent(float64(stolen), float64(all))))
	}
}

// uncertainty says between what the prediction of affine loops lies: they are as far
// as predicted where all threads keep running, and as if any thread took any chunk
// where none does.
func (d *demand) uncertainty(r *Result) []string {
	var more, all uint64
	for _, x := range r.Loops {
		if affine(&d.p.Regions[x.Region]) {
			more += max(x.After, x.Accesses-x.Accesses/uint64(d.n)) - x.After
			all += x.Accesses
		}
	}
	if all == 0 {
		return nil
	}
	return []string{fmt.Sprintf("affine loops are predicted for threads that all keep running; from one that is held up others steal. On a busy machine 10 points more were counted, %s of remote accesses are the most it can come to; numaopt lab counts a run with stealing, numaopt profile --plan one without",
		units.FormatPercent(units.Percent(float64(r.After.Remote+more), float64(r.After.Known))))}
}

// stolen is the part of the nodes' work that is more than their CPUs' share.
func (d *demand) stolen(nodes []uint64) (stolen uint64) {
	fair := slices.Clone(nodes)
	d.byCPUs(fair)
	for n := range nodes {
		stolen += nodes[n] - min(nodes[n], fair[n])
	}
	return stolen
}
