package ingest

import (
	"cmp"
	"fmt"
	"slices"

	"numaopt/internal/arena"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/topo"
)

// codeCounts is Counts that know which instructions access DRAM, and when.
type codeCounts interface {
	EachUse(do func(u *arena.Use)) error
	EachInterval(do func(v *arena.Interval)) error
}

// codeUses makes the uses of code: instructions of one line become one.
func (b *builder) codeUses() error {
	a, ok := b.a.(codeCounts)
	if !ok {
		return nil
	}
	var uses []arena.Use
	if err := a.EachUse(func(u *arena.Use) { uses = append(uses, *u) }); err != nil {
		return err
	}
	b.codes(uses)
	list := make([]profile.CodeUse, 0, len(uses))
	for i := range uses {
		u := &uses[i]
		object := b.owner(u)
		if object < 0 || u.Op > int(profile.Store) || u.Local+u.Remote+u.Unknown == 0 {
			continue
		}
		list = append(list, profile.CodeUse{
			Code: int32(b.codeI[u.Code]), Object: int32(object), Region: int32(b.region(u.Region)), Op: profile.Op(u.Op),
			Local: u.Local, Remote: u.Remote, Unknown: u.Unknown, Latency: u.Latency, Loads: u.Loads,
		})
	}
	b.p.CodeUses = profile.MergeCodeUses(list)
	return nil
}

// codes numbers the lines of the instructions of uses; a line is known by the
// instruction with the lowest address.
func (b *builder) codes(uses []arena.Use) {
	b.codeI = map[arena.Code]int{}
	var list []arena.Code
	for i := range uses {
		if _, ok := b.codeI[uses[i].Code]; !ok {
			b.codeI[uses[i].Code] = -1
			list = append(list, uses[i].Code)
		}
	}
	slices.SortFunc(list, func(x, y arena.Code) int {
		return cmp.Or(cmp.Compare(x.Module, y.Module), cmp.Compare(x.VAddr, y.VAddr))
	})
	lines := map[string]int{}
	for _, c := range list {
		code := ident.Code{Module: -1} // made while the program ran, there may be much of it
		if c.Module >= 0 {
			code = b.code(c)
		}
		key := lineKey(code)
		i, ok := lines[key]
		if !ok {
			i = len(b.p.Codes)
			lines[key] = i
			b.p.Codes = append(b.p.Codes, code)
		}
		b.codeI[c] = i
	}
}

// lineKey tells lines apart, with what is inlined there, failing that functions.
func lineKey(c ident.Code) string {
	if len(c.Inlined) == 0 {
		return fmt.Sprint(c.Module, c.Symbol)
	}
	return fmt.Sprint(c.Module, c.Inlined)
}

// owner is the object that an instruction accesses; -1 is none.
func (b *builder) owner(u *arena.Use) int {
	object, page, site := u.Owner.Of()
	switch {
	case object > 0 && object < len(b.objs):
		return b.owners.allocated(object, b.objs[object])
	case page > 0 && page < len(b.pageI) && b.pageI[page] >= 0:
		return b.p.Pages[b.pageI[page]].Object
	case site > 0 && site < len(b.sites):
		return b.owners.ofSite(site)
	case u.Owner == 0:
		object, _ = b.owners.find(arena.Page{Number: u.Page})
		return object
	}
	return -1
}

// intervals makes the parts of the run, all as long as the longest of the counts.
func (b *builder) intervals() error {
	a, ok := b.a.(codeCounts)
	if !ok {
		return nil
	}
	shift := 0
	valid := func(v *arena.Interval) bool {
		return v.Part < profile.MostIntervals && v.Shift < 50 && v.Thread < len(b.p.Threads)
	}
	if err := a.EachInterval(func(v *arena.Interval) {
		if valid(v) {
			shift = max(shift, v.Shift)
		}
	}); err != nil {
		return err
	}
	var list []profile.Interval
	err := a.EachInterval(func(v *arena.Interval) {
		if !valid(v) {
			return
		}
		x := profile.Interval{Thread: int32(v.Thread), At: int32(v.Part >> (shift - v.Shift)), Region: int32(b.region(v.Region))}
		for i, n := range v.Count {
			x.Home, x.Count, x.Work = topo.NodeID(i), n, 0
			if i == len(v.Count)-1 {
				x.Home = topo.Unknown
			}
			if int(x.Home) == v.Home {
				x.Work = v.Work
			}
			if x.Count > 0 || x.Work > 0 {
				list = append(list, x)
			}
		}
	})
	if err != nil || len(list) == 0 {
		return err
	}
	b.p.Intervals = profile.MergeIntervals(list)
	b.p.Run.IntervalWidth, b.p.Run.IntervalClock = 1<<shift, profile.Nanoseconds
	if _, counted := b.a.(*arena.Arena); counted {
		b.p.Run.IntervalClock = profile.Accesses
	}
	return nil
}
