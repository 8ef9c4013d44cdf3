package launch

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"numaopt/internal/bounds"
	"numaopt/internal/plan"
	"numaopt/internal/symbol"
)

// files finds the ELF files that a program will have loaded.
type files struct {
	table *symbol.Table
	// programs are the ELF files that the command may start: the program itself
	// first, then what a wrapper names.
	programs []string
	planned  string // base name of the program that the plan was made from
	environ  []string
	words    []string // the command
	all      []string // programs and the libraries that they are linked to; nil until needed
	own      []string // see loaded; nil until needed
}

// linkerTimeout ends a dynamic linker that hangs, as on a lost network file system.
const linkerTimeout = 10 * time.Second

// scriptBytes is how much of a script is searched for programs.
const scriptBytes = 64 << 10

// newFiles lists the programs of a command; planned is the command of the plan.
func newFiles(command, environ, planned []string, table *symbol.Table) *files {
	f := &files{table: table, environ: environ, words: command}
	if len(planned) > 0 {
		f.planned = filepath.Base(planned[0])
	}
	for i, word := range command {
		p, err := symbol.Describe(word)
		switch {
		case err != nil:
		case p.Script:
			f.add(p.ELF)
			f.script(p.Path)
		case i == 0 || strings.Contains(word, "/") || filepath.Base(word) == f.planned:
			f.add(p.ELF)
		}
	}
	return f
}

// add adds a program once.
func (f *files) add(path string) {
	for _, p := range f.programs {
		if p == path {
			return
		}
	}
	f.programs = append(f.programs, path)
}

// script adds the programs that the words of a script name by a path, relative
// to the working directory or to the script's.
func (f *files) script(path string) {
	in, err := os.Open(path)
	if err != nil {
		return
	}
	defer in.Close()
	text := make([]byte, scriptBytes)
	n, _ := in.Read(text)
	split := func(c rune) bool { return strings.ContainsRune(" \t\n\"';|&()`=", c) }
	for _, word := range strings.FieldsFunc(string(text[:n]), split) {
		base := filepath.Base(word)
		if !strings.Contains(word, "/") && base != f.planned {
			continue
		}
		for _, p := range []string{word, filepath.Join(filepath.Dir(path), word), filepath.Join(filepath.Dir(path), base)} {
			if d, err := symbol.Describe(p); err == nil && !d.Script {
				f.add(d.ELF)
				break
			}
		}
	}
}

// match is how well a file fits what a plan says of a module.
type match int

const (
	none     match = iota
	guessed        // the program itself, under another name
	byName         // rebuilt, or nobody knows
	verySame       // by build id
)

// find returns the file that a module of the plan is now.
func (f *files) find(m plan.Module) (*symbol.Module, match) {
	var named *symbol.Module
	for _, path := range f.closure() {
		fits := sameName(path, m.Name)
		if !fits && m.BuildID == "" {
			continue
		}
		e, err := f.table.Open(path)
		if err != nil {
			continue
		}
		if m.BuildID != "" && e.BuildID() == m.BuildID {
			return e, verySame
		}
		if fits && named == nil {
			named = e
		}
	}
	if named != nil {
		return named, byName
	}
	if m.Name == f.planned && len(f.programs) > 0 {
		if e, err := f.table.Open(f.programs[0]); err == nil {
			return e, guessed
		}
	}
	return nil, none
}

// late finds the very file of a module that no program is linked to, as one that it
// loads while it runs: in the folders of the programs, of what is in these, of their
// libraries and of LD_LIBRARY_PATH, and where a word of the command names it. nil is
// none.
func (f *files) late(m plan.Module) *symbol.Module {
	for _, path := range f.latePaths(m.Name) {
		if abs, err := filepath.Abs(path); err == nil {
			path = abs // the dynamic linker searches for one without a slash
		}
		if e, err := f.table.Open(path); err == nil && m.BuildID != "" && e.BuildID() == m.BuildID {
			return e
		}
	}
	return nil
}

func (f *files) latePaths(name string) (paths []string) {
	dirs := []string{".", "*"}
	for _, p := range f.programs {
		dirs = append(dirs, filepath.Dir(p), filepath.Join(filepath.Dir(p), "*"))
	}
	for _, p := range f.closure() {
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, kv := range f.environ {
		if list, ok := strings.CutPrefix(kv, "LD_LIBRARY_PATH="); ok {
			dirs = append(dirs, filepath.SplitList(list)...)
		}
	}
	slices.Sort(dirs)
	for _, d := range slices.Compact(dirs) {
		found, _ := filepath.Glob(filepath.Join(d, name))
		paths = append(paths, found...)
	}
	for _, word := range f.words {
		if filepath.Base(word) == name {
			paths = append(paths, word)
		}
	}
	return paths
}

// sameName reports whether path is a file of this base name, another version of
// the same library, or a link to it.
func sameName(path, name string) bool {
	base := filepath.Base(path)
	if base == name {
		return true
	}
	if stem, _, so := strings.Cut(name, ".so"); so && strings.HasPrefix(base, stem+".so") {
		return true
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && filepath.Base(real) == name
}

// closure returns the programs and the libraries that they are linked to.
func (f *files) closure() []string {
	if f.all != nil {
		return f.all
	}
	f.all = append(f.all, f.programs...)
	seen := make(map[string]bool)
	for _, p := range f.programs {
		for _, lib := range libraries(symbol.Interpreter(p), p, f.environ) {
			if !seen[lib] {
				seen[lib] = true
				f.all = append(f.all, lib)
			}
		}
	}
	return f.all
}

// loaded returns the files, other than compilers' and the system's, whose code may run
// with the loops of p: those of closure, and the files of loops that a program loads
// while it runs, with their libraries.
func (f *files) loaded(p *plan.Plan) []string {
	if f.own != nil {
		return f.own
	}
	all := slices.Clone(f.closure())
	for i := range p.Loops {
		m := p.Loops[i].Module
		if file, _ := f.find(m); file != nil || len(f.programs) == 0 {
			continue
		}
		if file := f.late(m); file != nil {
			all = append(append(all, file.Path()), libraries(symbol.Interpreter(f.programs[0]), file.Path(), f.environ)...)
		}
	}
	f.own = []string{}
	for _, path := range all {
		if !bounds.IsPlain(path) && !slices.Contains(f.own, path) {
			f.own = append(f.own, path)
		}
	}
	return f.own
}

// libraries asks a dynamic linker which libraries it would load for a file,
// in its order. A failure counts as none.
func libraries(linker, file string, environ []string) []string {
	if linker == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), linkerTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, linker, "--list", file)
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var libs []string
	for _, line := range bytes.Split(out, []byte("\n")) {
		// "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f…)" or
		// "\t/lib64/ld-linux-x86-64.so.2 (0x…)"
		text := string(line)
		if _, right, found := strings.Cut(text, " => "); found {
			text = right
		}
		if i := strings.LastIndex(text, " (0x"); i > 0 {
			text = text[:i]
		}
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "/") {
			libs = append(libs, text)
		}
	}
	return libs
}
