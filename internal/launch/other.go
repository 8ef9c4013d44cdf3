package launch

import (
	"fmt"

	"numaopt/internal/plan"
)

// nothingFound warns that no object and no loop of the plan is in the files at hand: once,
// with the programs' names, in place of the warnings for each object, those from
// number first on. Where it is the very program, those say why.
func (r *resolver) nothingFound(first int) {
	meant := r.program()
	file, how := r.files.find(meant)
	if how == verySame {
		return
	}
	if file == nil && len(r.files.programs) > 0 {
		file, _ = r.files.table.Open(r.files.programs[0])
	}
	this := "no ELF program"
	if file != nil {
		this = named(file.Path(), file.BuildID())
	}
	reasons := r.res.Warnings[first:]
	r.res.Warnings = r.res.Warnings[:first:first]
	all := fmt.Sprintf("%d objects", len(r.plan.Objects))
	if n := len(r.plan.Loops); n > 0 {
		all += fmt.Sprintf(" and %d loops", n)
	}
	what := fmt.Sprintf("%d of its %s are found if it starts that one", r.hoped, all)
	if r.hoped == 0 {
		what = fmt.Sprintf("none of its %s is found (%v); profile this one", all, reasons[0])
	}
	r.res.warn("this plan is for %s, and this is %s: %s", named(meant.Name, meant.BuildID), this, what)
}

// program is the module of the plan that is the program itself.
func (r *resolver) program() plan.Module {
	for i := range r.plan.Objects {
		e := &r.plan.Objects[i]
		if e.Module.Name == r.files.planned {
			return e.Module
		}
		for _, f := range e.Stack {
			if f.Module.Name == r.files.planned {
				return f.Module
			}
		}
	}
	for i := range r.plan.Loops {
		if l := &r.plan.Loops[i]; l.Module.Name == r.files.planned {
			return l.Module
		}
	}
	return plan.Module{Name: r.files.planned}
}

// named is a file with its build id, for a message.
func named(file, buildID string) string {
	if buildID == "" {
		return file
	}
	return fmt.Sprintf("%s (build id %.16s)", file, buildID)
}
