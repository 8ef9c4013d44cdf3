package main

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/planner"
	"numaopt/internal/profile"
)

// tie is worksharing loops of one parallel region, in profile.Regions, and why a thread
// may carry data of its own from one to another; empty if it cannot.
type tie struct {
	loops []int
	why   string
}

// apart tells the planner which loops a barrier frees from the others of their region:
// all, if the user says so, else those of which the machine code shows that no thread
// carries data of its own. It returns what ties the others.
func (o *planOptions) apart(p *profile.Profile, set *codeSet) (tied []tie) {
	if o.barriers {
		o.planner.Apart = func(int) bool { return true }
		return nil
	}
	free := make(map[int]bool)
	for _, t := range ties(p, set) {
		if t.why != "" {
			tied = append(tied, t)
			continue
		}
		for _, i := range t.loops {
			free[i] = true
		}
	}
	o.planner.Apart = func(region int) bool { return free[region] }
	return tied
}

// ties gathers the loops of regions that have several.
func ties(p *profile.Profile, set *codeSet) (list []tie) {
	type entry struct {
		module int
		offset uint64
	}
	at := make(map[entry]int)
	for i := range p.Regions {
		r := &p.Regions[i]
		if !r.Worksharing() || r.Code.Module < 0 {
			continue
		}
		k := entry{r.Code.Module, r.Code.Offset}
		if _, ok := at[k]; !ok {
			at[k] = len(list)
			list = append(list, tie{})
		}
		t := &list[at[k]]
		t.loops = append(t.loops, i)
	}
	list = slices.DeleteFunc(list, func(t tie) bool { return len(t.loops) < 2 })
	for k := range list {
		list[k].why = carried(p, set, list[k].loops)
	}
	return list
}

// carried is why a thread may carry data between these loops of one region.
func carried(p *profile.Profile, set *codeSet, loops []int) string {
	code := p.Regions[loops[0]].Code
	var sites []uint64
	for _, i := range loops {
		r := &p.Regions[i]
		if r.Site.Module != code.Module {
			return "one of its loops is in another file"
		}
		sites = append(sites, r.Site.Offset)
	}
	b, err := set.unchanged(&p.Modules[code.Module], p.Modules)
	if err != nil {
		return err.Error()
	}
	return b.Carries(code.Offset, sites)
}

// acrossBarriers notes in r what --across-barriers would save, and when it may be given.
func (o *planOptions) acrossBarriers(p *profile.Profile, r *planner.Result, tied []tie) error {
	if len(tied) == 0 || o.planner.NoSchedules || len(p.Rows) > quickRows && !o.explain {
		return nil
	}
	options := o.planner
	options.Apart = func(int) bool { return true }
	free, err := planner.Build(p, options)
	if err != nil {
		return err
	}
	before, after := r.After.RemotePct(), free.After.RemotePct()
	if !(before-after >= o.planner.MinSchedule) {
		return nil
	}
	r.Plan.Notes = append(r.Plan.Notes, fmt.Sprintf("plan --across-barriers would leave %.1f %% remote, not %.1f %%: it gives loops of one parallel region different schedules. Give it only if you know that no thread keeps data of its own (threadprivate, on its stack, in memory that it alone uses, by its number) from one of these loops to another: %s",
		after, before, strings.Join(tieNames(tied, free), "; ")))
	return nil
}

// tieNames names the loops that free gives different schedules though they are tied.
func tieNames(tied []tie, free *planner.Result) (names []string) {
	schedule, name := make(map[int]string), make(map[int]string)
	for _, l := range free.Loops {
		schedule[l.Region], name[l.Region] = l.Schedule, l.Name
	}
	for _, t := range tied {
		first := schedule[t.loops[0]]
		if !slices.ContainsFunc(t.loops, func(i int) bool { return schedule[i] != first }) {
			continue
		}
		var loops []string
		for _, i := range t.loops {
			loops = append(loops, name[i])
		}
		names = append(names, fmt.Sprintf("%s (%s)", strings.Join(loops, ", "), t.why))
	}
	return names
}
