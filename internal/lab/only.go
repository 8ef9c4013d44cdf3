package lab

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"numaopt/internal/access"
	"numaopt/internal/ident"
	"numaopt/internal/profile"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
)

// dynamicLinker lists what a program would load.
const dynamicLinker = "/lib64/ld-linux-x86-64.so.2"

// windows resolves names of loops, as a report prints them, to the entries of
// their outlined functions, in the program's own file elfPath and the libraries
// it is linked to. Every name must match a parallel loop: only a team of threads
// that enters and leaves one can open and close a window.
func windows(elfPath string, names []string) ([]runfile.FuncOffset, error) {
	if len(names) == 0 {
		return nil, nil
	}
	var p profile.Profile
	var at []runfile.FuncOffset
	for _, path := range append([]string{elfPath}, libraries(elfPath)...) {
		m, err := symbol.Open(path)
		if err != nil {
			continue // a library that is no ELF file of ours has no loops of the user's
		}
		p.Modules = append(p.Modules, ident.Module{Path: path, BuildID: m.BuildID()})
		for _, l := range m.OutlinedLoops() {
			p.Regions = append(p.Regions, loopRegion(l, len(p.Modules)-1, m.Code(l.Lo)))
			at = append(at, runfile.FuncOffset{Path: path, Offset: l.Lo})
		}
	}
	in, err := access.Regions(&p, names)
	if err != nil {
		return nil, inputf("--only: %w: the lab counts parallel loops only", errors.New(shorten(p, err)))
	}
	var out []runfile.FuncOffset
	for i, yes := range in {
		if yes {
			out = append(out, at[i])
		}
	}
	return out, nil
}

// shorten is err's message, or a list of the program's loops.
func shorten(p profile.Profile, err error) string {
	if len(p.Regions) == 0 {
		return "the program has no outlined loops (was it compiled with OpenMP?)"
	}
	text, _, _ := strings.Cut(err.Error(), "; ")
	var names []string
	for _, r := range p.Regions {
		if len(names) == 12 {
			names = append(names, "...")
			break
		}
		names = append(names, r.Name)
	}
	return text + "; the program has " + strings.Join(names, ", ")
}

// loopRegion is the region that a profile has for a loop.
func loopRegion(l symbol.Loop, module int, code ident.Code) profile.Region {
	code.Module = module
	r := profile.Region{Kind: profile.Loop, Code: code, Name: l.Symbol, Function: l.Function, File: l.File, Line: l.Line}
	switch {
	case l.File != "" && l.Function != "":
		r.Name = fmt.Sprintf("%s:%d (%s)", filepath.Base(l.File), l.Line, l.Function)
	case l.File != "":
		r.Name = fmt.Sprintf("%s:%d", filepath.Base(l.File), l.Line)
	}
	return r
}

// libraries is what the dynamic linker loads for the program; nil where it
// cannot say.
func libraries(elfPath string) []string {
	out, err := exec.Command(dynamicLinker, "--list", elfPath).Output()
	if err != nil {
		return nil
	}
	var libs []string
	for _, line := range strings.Split(string(out), "\n") {
		if _, path, ok := strings.Cut(line, " => "); ok {
			if path, _, ok = strings.Cut(path, " ("); ok {
				libs = append(libs, path)
			}
		}
	}
	return libs
}
