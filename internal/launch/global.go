package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"numaopt/internal/plan"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/units"
)

// global resolves a global: its symbol's address and size in the file as it is
// now. Of several of one name the source file decides.
func (r *resolver) global(o *runfile.Object, e *plan.Entry) error {
	file, how := r.files.find(e.Module)
	if file == nil {
		return fmt.Errorf("%s is not among the program and its libraries", e.Module.Name)
	}
	v, err := pick(file, e, how == verySame)
	if err != nil {
		return err
	}
	if v.Size < units.PageSize {
		return fmt.Errorf("it has %d bytes now, less than a page", v.Size)
	}
	if v.Size != uint64(e.Bytes) {
		why := "it was rebuilt: profile it again if this is much"
		if how == verySame {
			why = "the file is the profiled one: was the plan edited?"
		}
		r.res.warn("%s has %v, and %v in the plan, whose place is stretched to what it has; %s", e.Name, units.Bytes(v.Size), e.Bytes, why)
	}
	o.MinBytes, o.MaxBytes = v.Size, v.Size
	o.Symbol = &runfile.Symbol{Module: r.module(file.Path(), file.BuildID()), VAddr: v.VAddr, Bytes: v.Size}
	return nil
}

// pick returns the variable of a file that e means.
func pick(file *symbol.Module, e *plan.Entry, same bool) (symbol.Variable, error) {
	if found := file.Objects(e.Symbol); len(found) == 1 && same {
		return found[0], nil
	}
	name := filepath.Base(file.Path())
	var exact, near []symbol.Variable
	for _, v := range file.Variables() {
		switch {
		case v.Symbol == e.Symbol:
			exact = append(exact, v)
		case v.Symbol != "" && withoutNumber(v.Symbol) == withoutNumber(e.Symbol):
			near = append(near, v) // work.0 of a function may be work.1 today
		}
	}
	for _, found := range [][]symbol.Variable{exact, near} {
		if e.File != "" {
			found = fromFile(found, e.File)
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return symbol.Variable{}, fmt.Errorf("%s has %d symbols %s of %s", name, len(found), e.Symbol, fileName(e.File))
		}
	}
	if len(exact) > 0 {
		return symbol.Variable{}, fmt.Errorf("%s has a symbol %s, but of another source file than %s", name, e.Symbol, fileName(e.File))
	}
	why := ""
	if len(file.Functions()) == 0 {
		why = ": it is stripped"
	}
	return symbol.Variable{}, fmt.Errorf("%s has no symbol %s%s", name, e.Symbol, why)
}

// fromFile returns those of vars that come from a source file: of the same path
// if there are any, else of the same base name. One without a known file fits.
func fromFile(vars []symbol.Variable, file string) []symbol.Variable {
	var path, base, unknown []symbol.Variable
	for _, v := range vars {
		switch {
		case v.File == file:
			path = append(path, v)
		case v.File == "":
			unknown = append(unknown, v)
		case filepath.Base(v.File) == filepath.Base(file):
			base = append(base, v)
		}
	}
	switch {
	case len(path) > 0:
		return path
	case len(base) > 0:
		return base
	}
	return unknown
}

// withoutNumber drops the number that gcc appends to a static of a function.
func withoutNumber(symbol string) string {
	if i := strings.LastIndexByte(symbol, '.'); i > 0 && strings.Trim(symbol[i+1:], "0123456789") == "" {
		return symbol[:i]
	}
	return symbol
}

// fileName is a source file in a message.
func fileName(file string) string {
	if file == "" {
		return "unknown files"
	}
	return filepath.Base(file)
}
