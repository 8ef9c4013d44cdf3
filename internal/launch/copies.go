package launch

import (
	"fmt"
	"path/filepath"
	"slices"

	"numaopt/internal/ident"
	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
)

// callSite is where a loop's call is.
type callSite struct {
	module int // in Run.Modules
	offset uint64
}

// verified says why a loop of the profiled file itself is not applied: the plan's
// offset is no call that begins such a loop, or nobody can say that its code does not
// depend on which thread does which chunk. The code of a file stripped since cannot be
// read; it was when the plan was made, which is enough where it is the only one.
func (r *resolver) verified(file *symbol.Module, l *plan.Loop) error {
	c, err := r.callsOf(file.Path(), functionsOf(l))
	if err != nil {
		return err
	}
	if !slices.Contains(c.returns, l.Offset) {
		return fmt.Errorf("no loop of %s's begins at %#x in %s: the plan was changed, make it again", l.Runtime, l.Offset, filepath.Base(file.Path()))
	}
	if l.Schedule == plan.Affine || r.permutable == nil {
		return nil
	}
	loaded := r.files.loaded(r.plan)
	if _, symbols := file.FunctionAt(l.Offset - 1); !symbols {
		for _, other := range loaded {
			if other != file.Path() {
				return fmt.Errorf("%s was stripped since the profile, so it cannot be read what it calls in %s: do not strip it", filepath.Base(file.Path()), filepath.Base(other))
			}
		}
		return nil
	}
	return r.permutable(file.Path(), loaded, l.Offset)
}

// copiesOf returns the other calls by which threads may begin the loop that the call
// at ra begins: the compiler copies a loop where it inlines its function, or makes
// two paths of one. If one thread takes one copy and another the other, both must
// have the same schedule.
func (r *resolver) copiesOf(file *symbol.Module, l *plan.Loop, ra uint64) ([]uint64, error) {
	c, err := r.callsOf(file.Path(), functionsOf(l))
	if err != nil {
		return nil, err
	}
	fn, symbols := file.FunctionAt(ra - 1)
	at := file.ReturnSite(ra)
	var out []uint64
	for _, other := range c.returns {
		in, ok := file.FunctionAt(other - 1)
		same := ok && symbols && in.Lo == fn.Lo || !symbols // who knows
		switch {
		case other == ra:
			continue
		case len(at.Inlined) == 0 && same, isCopy(at, file.ReturnSite(other), same):
			out = append(out, other)
		}
	}
	return out, nil
}

// isCopy reports whether two calls are of one line of the source, and of one
// construct: they are in one function of the machine code, or the loop is orphaned,
// so that any region may have taken it in. Outlined functions of one line that differ
// are instances of a template.
func isCopy(a, b ident.Code, same bool) bool {
	if len(a.Inlined) == 0 || len(b.Inlined) == 0 {
		return false
	}
	x, y := a.Inlined[0], b.Inlined[0]
	if x.File != y.File || x.Line != y.Line {
		return false
	}
	return same || (orphaned(a) || orphaned(b)) && x.Function == y.Function
}

// orphaned reports whether the loop of a call is in another function than its region.
func orphaned(c ident.Code) bool { return len(c.Inlined) > 1 || !symbol.IsLoop(c.Symbol) }

// apart leaves out loops of which the compiler made copies that do not get the same
// schedule, until all that stay agree.
func (r *resolver) apart(found []runfile.Loop, why []error, leave func(int, error)) {
	for again := true; again; {
		again = false
		at := make(map[callSite]int)
		for i, l := range found {
			if why[i] == nil && !r.groupLeft(why, i) {
				at[callSite{l.Module, l.Offset}] = i
			}
		}
		for site, i := range at {
			if other, ok := r.differs(found, at, i, site); ok {
				leave(i, r.mayDiffer(site, other))
				again = true
			}
		}
	}
}

// mayDiffer says that the call at other may begin the loop of site, too.
func (r *resolver) mayDiffer(site callSite, other uint64) error {
	m := r.res.Run.Modules[site.module]
	if file, err := r.files.table.Open(m.Path); err == nil {
		if _, symbols := file.FunctionAt(site.offset - 1); !symbols {
			return fmt.Errorf("%s is stripped, so its code at %#x cannot be told from that at %#x, which may be a copy of the loop: run the program as it was built", filepath.Base(m.Path), site.offset, other)
		}
	}
	return fmt.Errorf("its code at %#x and that at %#x may be copies of one loop, and do not get the same schedule: profile a run that goes through both, built with -g", site.offset, other)
}

// groupLeft reports whether a loop of the group of loop i is left out.
func (r *resolver) groupLeft(why []error, i int) bool {
	g := r.plan.Loops[i].Group
	for k := range why {
		if why[k] != nil && g > 0 && r.plan.Loops[k].Group == g {
			return true
		}
	}
	return false
}

// differs names a copy of loop i, at site, that does not get its schedule.
func (r *resolver) differs(found []runfile.Loop, at map[callSite]int, i int, site callSite) (uint64, bool) {
	m := r.res.Run.Modules[site.module]
	file, err := r.files.table.Open(m.Path)
	if err != nil || m.BuildID != "" && file.BuildID() != m.BuildID {
		return 0, false // not at hand: see site
	}
	copies, err := r.copiesOf(file, &r.plan.Loops[i], site.offset)
	if err != nil {
		return 0, false
	}
	for _, other := range copies {
		k, ok := at[callSite{site.module, other}]
		if !ok || !sameSchedule(&found[i], &found[k]) {
			return other, true
		}
	}
	return 0, false
}

func sameSchedule(a, b *runfile.Loop) bool {
	return a.Schedule == b.Schedule && a.Sweep == b.Sweep && a.Step == b.Step && slices.Equal(a.Nodes, b.Nodes)
}
