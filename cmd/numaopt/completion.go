package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"numaopt/internal/access"
	"numaopt/internal/check"
	"numaopt/internal/profile"
	"numaopt/internal/report"
)

// completer is what cobra asks for the words that may come next.
type completer = func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective)

// profileFiles and planFiles are our files by their endings.
var (
	profileFiles = completeFiles("nprof")
	planFiles    = completeFiles("plan.yaml", "yaml")
)

// commandWords completes the arguments of commands; those of others are files.
var commandWords = map[string]completer{
	"report": once(profileFiles), "plan": profileFiles, "check": profileFiles, "diff": profileFiles,
	"apply": once(planFiles), "doctor": nothing, "version": nothing,
}

// flagWords completes the values of flags, in whichever command they are; those of
// others are files.
var flagWords = map[string]completer{
	"object": completeObjects, "only": completeLoops, "loop": completeLoops, "shape": completeShapes, "thread": completeThreads,
	"plan": planFiles, "baseline": completeFiles("json"), "format": completeFormats, "topology": words("4x2", "2x4", "2x8", "8x8"),
	"source": words("auto", "pmu", "faults", "emulate"), "sort": words(report.SortKeys()...), "color": words(colorModes...),
	"bind": words("compact", "spread", "none"), "metric": words("dram", "all"), "thp": words("never", "madvise", "always"),
	"top": nothing, "max-remote": nothing, "max-increase": nothing, "min-gain": nothing, "repeat": nothing,
}

// addCompletions tells cobra of them.
func addCompletions(cmd *cobra.Command) {
	if complete := commandWords[cmd.Name()]; complete != nil && cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = complete
	}
	for name, complete := range flagWords {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		if _, there := cmd.GetFlagCompletionFunc(name); !there {
			cmd.RegisterFlagCompletionFunc(name, complete) //nolint:errcheck // the flag is there, and has none
		}
	}
}

func words(list ...string) completer {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

func nothing(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func completeFiles(endings ...string) completer {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// once completes the first argument of a command that takes one.
func once(complete completer) completer {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault // a program and its own arguments, if anything
		}
		return complete(cmd, args, toComplete)
	}
}

func completeFormats(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list := []string{"text", "json"}
	switch cmd.Name() {
	case "report":
		list = nil
		for _, f := range reportFormats {
			list = append(list, f.name)
		}
	case "check":
		list = nil
		for _, f := range check.Formats {
			list = append(list, f.Name)
		}
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

// named is a thing of a profile: how to type it, and what it is.
type named struct{ word, what string }

// complete lists things of the profile among args; none where there is no profile.
func complete(args []string, things func(*profile.Profile) []named) ([]cobra.Completion, cobra.ShellCompDirective) {
	var list []cobra.Completion
	for _, arg := range args {
		p, err := profile.ReadNames(arg)
		if err != nil {
			continue
		}
		for _, x := range things(p) {
			list = append(list, cobra.CompletionWithDesc(x.word, x.what))
		}
		break
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func completeObjects(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(args, func(p *profile.Profile) []named {
		return objectNames(p, "", func(*access.Group) bool { return true })
	})
}

// completeShapes stops behind the "=" of OBJECT=DIMENSIONS.
func completeShapes(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	list, directive := complete(args, func(p *profile.Profile) []named {
		return objectNames(p, "=", shaped)
	})
	return list, directive | cobra.ShellCompDirectiveNoSpace
}

func completeLoops(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(args, loopNames)
}

func completeThreads(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(args, func(p *profile.Profile) (list []named) {
		for _, t := range p.Threads {
			list = append(list, named{fmt.Sprint(t.Rank), fmt.Sprintf("CPU %d of node %d", t.CPU, t.Node)})
		}
		return list
	})
}

// objectNames is the objects of p that keep wants, with a suffix: those that have a place by the first words of their
// names, where these tell them apart: names with spaces are hard to type.
func objectNames(p *profile.Profile, suffix string, keep func(*access.Group) bool) []named {
	groups, _ := access.Groups(p)
	firsts := make(map[string]int)
	first := func(g *access.Group) string {
		word, _, _ := strings.Cut(g.Name, " ")
		return word
	}
	for i := range groups {
		firsts[first(&groups[i])]++
	}
	var list []named
	for i := range groups {
		g := &groups[i]
		x := named{g.Name, string(g.Kind)}
		if word := first(g); shaped(g) && firsts[word] == 1 {
			x = named{word, x.what + " " + g.Name}
		}
		if x.word += suffix; keep(g) {
			list = append(list, x)
		}
	}
	return list
}

// shaped reports whether the objects of g are arrays, as far as one can know.
func shaped(g *access.Group) bool {
	return g.Kind == profile.Heap || g.Kind == profile.Global || g.Kind == profile.Mapping
}

// loopNames is the loops of p by their places, and the functions of known source.
func loopNames(p *profile.Profile) []named {
	var list []named
	seen := make(map[string]bool)
	for i := range p.Regions {
		r := &p.Regions[i]
		if r.File == "" || r.Line == 0 {
			continue
		}
		x := named{r.Name, string(r.Kind)}
		if r.Kind == profile.Loop {
			x = named{fmt.Sprintf("%s:%d", path.Base(r.File), r.Line), x.what + " " + r.Function}
		}
		if x.word != "" && !seen[x.word] {
			seen[x.word] = true
			list = append(list, x)
		}
	}
	return list
}
