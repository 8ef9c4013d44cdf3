// Package shape tells the dimensions of the array behind an object.
//
// # Input
//
// A profile and the files of its modules; or the periods that package pattern found;
// or what the user says.
//
// # Output
//
// A Shape: dimensions in memory order, and where it comes from.
//
// # Method
//
// Globals have their type in the debug information. For an allocation it is the
// type of the variable that the call's result is assigned to: the source line of
// the call names it; without the source, it is the variable that is declared in that
// line. A pointer to an array leaves its first dimension open, which follows from
// the size. Of several variables that get their memory in one line, the column of the
// call tells the one. Fortran's allocatable arrays have the bounds of their ALLOCATE
// statement, as far as these are constants, and one more from the size. What else a
// program computes at run time (arrays of variable length) is not known; then the
// periods of the loops' accesses are taken for rows.
//
// # Limits
//
// A result that a function returns is looked for at the function's callers, one that
// goes to a member of a structure is not found.
package shape

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"numaopt/internal/units"
)

// Source is where a shape comes from.
type Source string

// The sources.
const (
	Declared Source = "declared" // by the debug information
	// Allocated is what an ALLOCATE statement of Fortran asks for.
	Allocated Source = "allocated"
	Inferred  Source = "inferred" // from the accesses
	Given     Source = "given"    // by the user
)

// Shape is the array behind an object.
type Shape struct {
	// Dims are in memory order, the slowest first, all positive; at least one.
	// A declared one-dimensional array has one.
	Dims []int64
	Elem int64 // bytes of an element; for Inferred of a row
	Source
	Variable string // that has the type, for Declared and Allocated; empty is not known
	// Doubt is why the dimensions, of which there are none then, or the variable are
	// not known: "the bounds of v are set at run time".
	Doubt string
}

// Bytes is the size of the whole.
func (s Shape) Bytes() int64 {
	n := s.Elem
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// Strides are the bytes from one index to the next in each dimension but the
// last, descending: those of a row, of a row of a row; for Inferred also of the
// last, whose elements are rows.
func (s Shape) Strides() []int64 {
	var list []int64
	n := s.Elem
	for i := len(s.Dims) - 1; i >= 0; i-- {
		if i < len(s.Dims)-1 || s.Source == Inferred {
			list = append(list, n)
		}
		n *= s.Dims[i]
	}
	slices.Reverse(list)
	return list
}

// String is "64 × 64 × 5 of 8 B", or for Inferred "64 rows of 20 KiB".
func (s Shape) String() string {
	var dims []string
	for _, d := range s.Dims {
		dims = append(dims, strconv.FormatInt(d, 10))
	}
	of := " of "
	if s.Source == Inferred {
		of = " rows of "
	}
	return strings.Join(dims, " × ") + of + units.Bytes(s.Elem).String()
}

// complete sets the first dimension where it is open and says whether the shape is
// that of an object of this many bytes: allocators may add less than a row.
func (s Shape) complete(bytes int64) (Shape, bool) {
	if len(s.Dims) == 0 {
		s.Dims = []int64{0}
	}
	s.Dims = slices.Clone(s.Dims)
	if s.Dims[0] == 0 {
		s.Dims[0] = 1
		s.Dims[0] = bytes / max(1, s.Bytes())
	}
	for _, d := range s.Dims {
		if d <= 0 {
			return Shape{}, false
		}
	}
	row := s.Bytes() / s.Dims[0]
	return s, s.Bytes() <= bytes && bytes-s.Bytes() < row
}

// Infer takes the periods of the accesses to an object, in bytes, for the strides of
// its dimensions. Periods that do not divide each other nearly are left out, those
// that come first in periods stay. ok is false if none is left.
func Infer(bytes int64, periods []int64) (s Shape, ok bool) {
	var rows []int64
	for _, p := range periods {
		fits := p > 0 && 2*p <= bytes
		for _, r := range rows {
			fits = fits && divides(min(p, r), max(p, r))
		}
		if fits {
			rows = append(rows, p)
		}
	}
	if len(rows) == 0 {
		return Shape{}, false
	}
	slices.Sort(rows)
	s = Shape{Elem: rows[0], Source: Inferred}
	for i, r := range rows {
		outer := bytes
		if i+1 < len(rows) {
			outer = rows[i+1]
		}
		s.Dims = append(s.Dims, int64(math.Round(float64(outer)/float64(r))))
	}
	slices.Reverse(s.Dims)
	return s, true
}

// divides reports whether b is two or more times a, but for what a period is off.
func divides(a, b int64) bool {
	times := float64(b) / float64(a)
	return times >= 1.5 && math.Abs(times-math.Round(times)) < 0.02
}

// Parse reads what the user says of an object: "u=64,64,64,5:8", its name, its
// dimensions in memory order, the slowest first, and the bytes of an element.
func Parse(text string) (object string, s Shape, err error) {
	fail := func(format string, args ...any) (string, Shape, error) {
		return "", Shape{}, fmt.Errorf("--shape %s: %s", text, fmt.Sprintf(format, args...))
	}
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return fail("want OBJECT=N1,N2,…:BYTES, as in u=64,64,64,5:8")
	}
	dims, elem, ok := strings.Cut(text[i+1:], ":")
	if !ok {
		return fail("the bytes of an element are missing; add :8 for doubles")
	}
	number := func(what, text string) int64 {
		n, e := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		switch {
		case err != nil:
		case errors.Is(e, strconv.ErrRange):
			err = fmt.Errorf("%s %q is too large", what, text)
		case e != nil || n <= 0:
			err = fmt.Errorf("%s %q is not a positive number", what, text)
		}
		return n
	}
	s = Shape{Elem: number("element size", elem), Source: Given}
	for _, d := range strings.Split(dims, ",") {
		s.Dims = append(s.Dims, number("dimension", d))
	}
	if err != nil {
		return fail("%v", err)
	}
	bytes := s.Elem
	for _, d := range s.Dims {
		if bytes > math.MaxInt64/d {
			return fail("that is more memory than there is")
		}
		bytes *= d
	}
	return text[:i], s, nil
}
