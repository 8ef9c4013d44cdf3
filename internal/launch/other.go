package launch

import (
	"fmt"
	"slices"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/symbol"
)

// otherProgram warns where the command starts another program than the plan is
// for: once, with both names, in place of the warnings [first, last), which say
// of each object and loop that it is not there. A program of the plan's name may be
// that program rebuilt, and then they say what became of each.
func (r *resolver) otherProgram(first, last int) {
	meant := r.program()
	if _, how := r.files.find(meant); how == verySame || how == byName {
		return
	}
	reasons := r.res.Warnings[first:last]
	what := r.shares(len(r.hoped), len(r.hopedLoops))
	switch {
	case len(r.hoped)+len(r.hopedLoops) > 0:
		what = "nothing of it is in force here; where this one starts that one, " + what
	case len(reasons) > 0:
		what += fmt.Sprintf(" (%v); profile this one", reasons[0])
	}
	claim := fmt.Errorf("this plan is for %s, and this is %s: %s", named(meant.Name, meant.BuildID), r.started(), what)
	r.res.Warnings = slices.Replace(r.res.Warnings, first, last, claim)
}

// isItself reports whether file, guessed to be module m of the plan under another name,
// has something of the plan in it: it is that program rebuilt then, not one that may
// start it.
func (r *resolver) isItself(m plan.Module, file *symbol.Module) bool {
	if is, ok := r.itself[m]; ok {
		return is
	}
	is := slices.ContainsFunc(r.plan.Objects, func(e plan.Entry) bool {
		if e.Symbol != "" {
			_, err := pick(file, &e, false)
			return e.Module == m && err == nil
		}
		if !slices.ContainsFunc(e.Stack, func(f plan.Frame) bool { return f.Module == m }) {
			return false
		}
		items, err := r.items(e.Stack)
		if err == nil {
			_, err = r.frames(items)
		}
		return err == nil
	}) || slices.ContainsFunc(r.plan.Loops, func(l plan.Loop) bool {
		_, err := r.rebuilt(file, &l)
		return l.Module == m && err == nil
	})
	if r.itself == nil {
		r.itself = make(map[plan.Module]bool)
	}
	r.itself[m] = is
	return is
}

// program is the module of the plan that is the program itself: of the command's
// name, or else, as a wrapper may have started it, the first that is no library.
func (r *resolver) program() plan.Module {
	var modules []plan.Module
	for _, e := range r.plan.Objects {
		modules = append(modules, e.Module)
		for _, f := range e.Stack {
			modules = append(modules, f.Module)
		}
	}
	for _, l := range r.plan.Loops {
		modules = append(modules, l.Module)
	}
	program := plan.Module{Name: r.files.planned}
	found := false
	for _, m := range modules {
		if m.Name == r.files.planned {
			return m
		}
		if !found && m.Name != "" && !library(m.Name) {
			program, found = m, true
		}
	}
	return program
}

// library reports whether a base name is a shared library's.
func library(name string) bool {
	return strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.")
}

// started names the command's program, and what it may start as a wrapper.
func (r *resolver) started() string {
	var names []string
	for _, path := range r.files.programs {
		id := ""
		if file, err := r.files.table.Open(path); err == nil {
			id = file.BuildID()
		}
		names = append(names, named(path, id))
	}
	switch len(names) {
	case 0:
		return "no ELF program"
	case 1:
		return names[0]
	}
	return names[0] + ", which may start " + strings.Join(names[1:], ", ")
}

// shares says how many of the plan's objects and loops are placed and permuted, of
// each kind that it has.
func (r *resolver) shares(objects, loops int) string {
	var list []string
	if n := len(r.plan.Objects); n > 0 {
		list = append(list, share(objects, n, "object", "placed"))
	}
	if n := len(r.plan.Loops); n > 0 {
		list = append(list, share(loops, n, "loop", "permuted"))
	}
	return strings.Join(list, " and ")
}

// share says that so many of the plan's things are done.
func share(some, of int, thing, done string) string {
	switch {
	case of == 1 && some == 1:
		return fmt.Sprintf("its one %s is %s", thing, done)
	case of == 1:
		return fmt.Sprintf("its one %s is not %s", thing, done)
	case some == 0:
		return fmt.Sprintf("none of its %d %ss is %s", of, thing, done)
	case some == 1:
		return fmt.Sprintf("one of its %d %ss is %s", of, thing, done)
	}
	return fmt.Sprintf("%d of its %d %ss are %s", some, of, thing, done)
}

// named is a file with its build id, for a message.
func named(file, buildID string) string {
	if buildID == "" {
		return file
	}
	return fmt.Sprintf("%s (build id %.16s)", file, buildID)
}
