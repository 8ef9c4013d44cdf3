package access

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/ident"
	"numaopt/internal/profile"
)

// Source is the line at which a reader finds c, as CodeName names it; false where no
// file and line is known.
func Source(p *profile.Profile, c ident.Code) (ident.Location, bool) {
	l, ok := Location(p, c)
	return l, ok && l.File != "" && l.Line > 0
}

// StableNames returns for each group a name that survives edits elsewhere in its file
// and rebuilds: "main+5 in init.c" is the allocation five lines below the first one of
// main. Where the line of the function is not known it is the group's own name. The
// names of groups of one kind are unique; where several call stacks have the same
// lines, they are numbered in the order of their code.
func StableNames(p *profile.Profile, groups []Group) []string {
	names := make([]string, len(groups))
	byName := make(map[string][]int)
	for i := range groups {
		names[i] = stableGroup(p, &groups[i])
		key := string(groups[i].Kind) + " " + names[i]
		byName[key] = append(byName[key], i)
	}
	for _, same := range byName {
		tellStableApart(p, groups, names, same)
	}
	return names
}

func stableGroup(p *profile.Profile, g *Group) string {
	if stack := namingStack(p, g); len(stack) > 0 {
		if s, ok := stableCode(p, stack[0]); ok {
			before, _, _ := strings.Cut(p.Objects[g.Objects[0]].Name, CodeName(p, stack[0])) // "small objects of "
			return before + s
		}
	}
	return g.Name
}

// namingStack is the call stack of g from the frame on after which g is called; empty
// where it is not called after code.
func namingStack(p *profile.Profile, g *Group) []ident.Code {
	o := &p.Objects[g.Objects[0]]
	if o.Site < 0 {
		return nil
	}
	frames := p.Sites[o.Site].Frames
	for i, f := range frames {
		// As in "small objects of grid.c:42 (init) #2": the number is of the whole program,
		// and another allocation anywhere changes it.
		if _, ok := stableCode(p, f); ok && strings.Contains(o.Name, CodeName(p, f)) {
			return frames[i:]
		}
	}
	return nil
}

// tellStableApart adds the callers to names that are the same, and a number where they
// are the same too.
func tellStableApart(p *profile.Profile, groups []Group, names []string, same []int) {
	if len(same) < 2 {
		return
	}
	slices.SortStableFunc(same, func(a, b int) int { // the numbers are in the order of the code
		return cmp.Or(cmp.Compare(len(groups[a].Name), len(groups[b].Name)), cmp.Compare(groups[a].Name, groups[b].Name))
	})
	taken := make(map[string]int)
	for _, i := range same {
		for k, caller := range namingStack(p, &groups[i]) {
			if s, ok := stableCode(p, caller); ok && k > 0 {
				names[i] += " from " + s
			}
		}
		taken[names[i]]++
		if n := taken[names[i]]; n > 1 {
			names[i] += " #" + strconv.Itoa(n)
		}
	}
}

// StableRegion is the name of r that survives edits elsewhere in its file and rebuilds.
// Loops of one line share it, as a parallel region does with its only loop.
func StableRegion(p *profile.Profile, r *profile.Region) string {
	code := r.Code
	if r.Worksharing() {
		code = r.Site
	}
	if s, ok := stableCode(p, code); ok && r.Kind == profile.Loop {
		return s
	}
	if r.Name == "" {
		return CodeName(p, r.Code)
	}
	return r.Name
}

// stableCode names c by its line from the first one of its function on.
func stableCode(p *profile.Profile, c ident.Code) (string, bool) {
	l, ok := Source(p, c)
	if !ok || l.Function == "" || l.FunctionLine <= 0 || l.Line < l.FunctionLine {
		return "", false
	}
	return fmt.Sprintf("%s+%d in %s", WithoutArguments(l.Function), l.Line-l.FunctionLine, path.Base(l.File)), true
}
