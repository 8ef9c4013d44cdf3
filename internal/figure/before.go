package figure

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/access"
	"numaopt/internal/profile"
)

// pair is what two runs did to one object.
type pair struct {
	name          string
	before, after access.Flow
}

// beforeAfter is the remote accesses to each object in both runs.
func beforeAfter(in *Input, opt Options) (*sheet, string) {
	if in.Before == nil {
		return nil, ""
	}
	if in.Report.DRAMAccesses == 0 || in.Before.Report.DRAMAccesses == 0 {
		return nil, "one of the profiles has no DRAM accesses"
	}
	list := pairs(in.Before.Profile, in.Profile, opt)
	most := 0.0
	for _, x := range list {
		most = max(most, float64(x.before.Remote), float64(x.after.Remote))
	}
	unit, name := scale(most)
	b := &bars{
		beside: true, axis: "remote " + in.counted() + name, ticks: upTo(most / unit),
		parts: []part{{name: "before", fill: grey}, {name: "after", fill: blue}},
	}
	for _, x := range list {
		b.names = append(b.names, x.name)
		for i, f := range []access.Flow{x.before, x.after} {
			b.parts[i].values = append(b.parts[i].values, float64(f.Remote)/unit)
			b.parts[i].notes = append(b.parts[i].notes, remoteNote(f))
		}
	}
	if was := in.Before.origin(); was != in.origin() {
		b.parts[0].name += ": " + was
	}
	return b.sheet("Remote " + in.counted() + " before and after"), ""
}

// pairs is all objects as one, the objects with most remote accesses in either run, and
// the rest as one.
func pairs(before, after *profile.Profile, opt Options) []pair {
	index := make(map[string]int)
	var list []pair
	all := pair{name: "all"}
	put := func(p *profile.Profile, side func(*pair) *access.Flow) {
		groups, of := access.Groups(p)
		for i, t := range access.By(p, len(groups), func(r *profile.Row) int { return of[p.Pages[r.Page].Object] }) {
			k := string(groups[i].Kind) + " " + groups[i].Name
			at, ok := index[k]
			if !ok {
				at = len(list)
				index[k] = at
				list = append(list, pair{name: groups[i].Name})
			}
			side(&list[at]).Merge(t.DRAM)
			side(&all).Merge(t.DRAM)
		}
	}
	put(before, func(x *pair) *access.Flow { return &x.before })
	put(after, func(x *pair) *access.Flow { return &x.after })
	slices.SortStableFunc(list, func(a, b pair) int {
		return cmp.Compare(max(b.before.Remote, b.after.Remote), max(a.before.Remote, a.after.Remote))
	})
	least := opt.LeastPct / 100 * float64(max(all.before.Remote, all.after.Remote))
	most := 0
	for most < min(opt.Names, len(list)) && float64(max(list[most].before.Remote, list[most].after.Remote)) >= least {
		most++
	}
	out := append([]pair{all}, list[:most]...)
	if rest := list[len(out)-1:]; len(rest) > 0 {
		others := pair{name: fmt.Sprintf("others (%d)", len(rest))}
		for _, x := range rest {
			others.before.Merge(x.before)
			others.after.Merge(x.after)
		}
		out = append(out, others)
	}
	return out
}
