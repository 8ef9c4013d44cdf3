package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml"
)

// ErrVersion is the error of a plan of a format that this package does not know.
var ErrVersion = errors.New("unknown plan version")

// maxBytes bounds what Read takes in. A map of a hundred million pages in runs
// of one is smaller.
const maxBytes = 1 << 30

// FormatError is what is wrong with a plan file, and in which line.
type FormatError struct {
	Line int // from 1; 0 is not known
	Err  error
}

func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

func (e *FormatError) Unwrap() error { return e.Err }

// ReadFile reads the plan at path.
func ReadFile(path string) (*Plan, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return p, nil
}

// Read reads a plan and checks it. Comments, and with them Entry.Why, are not
// kept. The error is a *FormatError where the text is at fault; it wraps
// ErrVersion where the format is newer.
func Read(r io.Reader) (*Plan, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, &FormatError{Err: errors.New("larger than 1 GiB: not a numaopt plan")}
	}
	if err := checkVersion(text); err != nil {
		return nil, err
	}
	body, ok := bytes.CutSuffix(bytes.TrimSpace(text), []byte("\n"+end))
	if !ok {
		return nil, &FormatError{Line: 1 + bytes.Count(bytes.TrimSpace(text), []byte("\n")), Err: fmt.Errorf(
			"the file ends early, its last line is not %q; make it again with numaopt plan, or add that line if the rest is there", end)}
	}
	p := new(Plan)
	if err := yaml.UnmarshalWithOptions(body, p, yaml.DisallowUnknownField()); err != nil {
		return nil, formatError(err)
	}
	if err := p.Check(); err != nil {
		return nil, &FormatError{Err: err}
	}
	return p, nil
}

// checkVersion looks at the line of the version alone, because nothing else of
// a newer plan need be readable.
func checkVersion(text []byte) error {
	line := 0
	for l := range bytes.Lines(text) {
		line++
		l = bytes.TrimSpace(l)
		if len(l) == 0 || l[0] == '#' || bytes.Equal(l, []byte("---")) {
			continue
		}
		var v struct {
			Version int `yaml:"numaopt-plan"`
		}
		if !bytes.HasPrefix(l, []byte("numaopt-plan:")) || yaml.Unmarshal(l, &v) != nil || v.Version < 1 {
			return &FormatError{line, errors.New(`not a numaopt plan: the first line but comments is not "numaopt-plan: VERSION"`)}
		}
		if v.Version > Version {
			return &FormatError{line, fmt.Errorf("%w %d: this numaopt reads up to %d; update numaopt, or make the plan again with this one",
				ErrVersion, v.Version, Version)}
		}
		return nil
	}
	return &FormatError{line, errors.New("the file is empty: not a numaopt plan")}
}

// formatError turns goccy's errors, which print a page of source, into one line.
func formatError(err error) error {
	var y yaml.Error
	if !errors.As(err, &y) {
		return &FormatError{Err: err}
	}
	e := &FormatError{Err: errors.New(y.GetMessage())}
	if t := y.GetToken(); t != nil && t.Position != nil {
		e.Line = t.Position.Line
	}
	return e
}
