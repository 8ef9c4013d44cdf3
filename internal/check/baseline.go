package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"numaopt/internal/access"
	"numaopt/internal/profile"
	"numaopt/internal/safefile"
)

// BaselineVersion is the version of the baseline file that this package writes.
const BaselineVersion = 1

// Baseline is what a later profile is held against. Its file is small JSON that
// belongs in version control: equal figures give equal bytes, and percentages
// are rounded to two digits after the point.
type Baseline struct {
	Version  int      `json:"numaopt_baseline"`
	Command  []string `json:"command"`
	Topology string   `json:"topology"`
	Only     []string `json:"only"`
	DRAM     *float64 `json:"remote_dram_pct"`
	All      *float64 `json:"remote_access_pct"`
}

// NewBaseline makes the baseline of p, restricted to the loops and functions
// only. It refuses what Run would refuse.
func NewBaseline(p *profile.Profile, only []string) (*Baseline, error) {
	if _, err := measure(p, only, DRAM); err != nil {
		return nil, err
	}
	q, err := access.Only(p, only)
	if err != nil {
		return nil, err
	}
	t := access.Total(q)
	return &Baseline{
		Version: BaselineVersion, Command: append([]string{}, p.Run.Command...), Topology: p.Run.Topology.String(),
		Only: append([]string{}, only...), DRAM: rounded(t.DRAM), All: rounded(t.All),
	}, nil
}

func rounded(f access.Flow) *float64 {
	pct := f.RemotePct()
	if math.IsNaN(pct) {
		return nil
	}
	pct = math.Round(pct*100) / 100
	return &pct
}

// remote is the baseline's percentage for m.
func (b *Baseline) remote(m Metric) (float64, error) {
	pct := b.DRAM
	if m == All {
		pct = b.All
	}
	if pct == nil {
		return 0, fmt.Errorf("the baseline has no figure for the metric %s; write it again with --write-baseline", m)
	}
	return *pct, nil
}

// WriteFile writes b to path, whole or not at all.
func (b *Baseline) WriteFile(path string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := safefile.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return fmt.Errorf("write baseline %s: %w", path, err)
	}
	return nil
}

// ReadBaseline reads the baseline at path. The error names the path and the cure.
func ReadBaseline(path string) (*Baseline, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read baseline: %w (--write-baseline makes one)", err)
	}
	b, err := parseBaseline(text)
	if err != nil {
		return nil, fmt.Errorf("read baseline %s: %w", path, err)
	}
	return b, nil
}

func parseBaseline(text []byte) (*Baseline, error) {
	b := new(Baseline)
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(b); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line := 1 + bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n"))
			return nil, fmt.Errorf("line %d: %w; --write-baseline makes a new one", line, err)
		}
		return nil, fmt.Errorf("%w; --write-baseline makes a new one", err)
	}
	switch {
	case b.Version == 0:
		return nil, errors.New("not a baseline of numaopt; --write-baseline makes one")
	case b.Version > BaselineVersion:
		return nil, fmt.Errorf("version %d, this numaopt reads up to %d: update numaopt", b.Version, BaselineVersion)
	}
	for _, pct := range []*float64{b.DRAM, b.All} {
		if pct != nil && !(*pct >= 0 && *pct <= 100) {
			return nil, fmt.Errorf("%v is not a percentage; --write-baseline makes a new one", *pct)
		}
	}
	return b, nil
}
