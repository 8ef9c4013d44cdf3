// Package units holds the quantities of numaopt that have a unit, and how they
// are parsed and printed.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// PageSize is the size in bytes of the base page that profiles and plans count
// in. numaopt's sources and the lab are x86-64, where it is always 4 KiB; huge
// pages are multiples of it.
const PageSize = 4096

// Bytes is a size in bytes.
type Bytes int64

// The powers of 1024.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// scales are the suffixes of sizes, largest first.
var scales = []struct {
	size Bytes
	name string
}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}}

// Pages returns how many whole base pages b covers, rounding up; 0 for a
// negative size.
func (b Bytes) Pages() int {
	if b <= 0 {
		return 0
	}
	return int((b-1)/PageSize) + 1
}

// String prints b for people, to three or four digits: "512 B", "1.5 MiB".
func (b Bytes) String() string {
	for _, s := range scales {
		if b < s.size && b > -s.size {
			continue
		}
		v := float64(b) / float64(s.size)
		if v == math.Trunc(v) {
			return fmt.Sprintf("%.0f %s", v, s.name)
		}
		return fmt.Sprintf("%.1f %s", v, s.name)
	}
	return fmt.Sprintf("%d B", int64(b))
}

// Exact prints b so that ParseBytes gives b again, with the largest suffix that
// loses nothing: "64MiB", "1500".
func (b Bytes) Exact() string {
	if b > 0 {
		for _, s := range scales {
			if b%s.size == 0 {
				return strconv.FormatInt(int64(b/s.size), 10) + s.name
			}
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads a size: a number that is not negative and an optional suffix
// K, M, G or T, each also as KB or KiB and in any case; all are powers of 1024,
// as in the sizes of caches. A fraction such as "1.5M" must give whole bytes.
func ParseBytes(text string) (Bytes, error) {
	s := strings.TrimSpace(text)
	end := strings.LastIndexAny(s, "0123456789.") + 1
	number, suffix := s[:end], strings.ToUpper(strings.TrimSpace(s[end:]))
	scale, ok := map[string]Bytes{
		"": 1, "B": 1, "K": KiB, "M": MiB, "G": GiB, "T": TiB,
	}[strings.TrimSuffix(strings.TrimSuffix(suffix, "IB"), "B")]
	if !ok || suffix == "IB" {
		return 0, fmt.Errorf("size %q: unknown suffix; use K, M, G or T", text)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n < 0 || n > math.MaxInt64/int64(scale) {
			return 0, fmt.Errorf("size %q is out of range", text)
		}
		return Bytes(n) * scale, nil
	}
	if strings.ContainsAny(number, "eExXpP_+-nN") {
		return 0, fmt.Errorf("size %q: not a number of bytes such as 16K or 64MiB", text)
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("size %q: not a number of bytes such as 16K or 64MiB", text)
	}
	f *= float64(scale)
	if f != math.Trunc(f) || f >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q: not a whole number of bytes", text)
	}
	return Bytes(f), nil
}

// MarshalYAML writes b as Exact does.
func (b Bytes) MarshalYAML() (any, error) {
	if b%KiB != 0 || b <= 0 {
		return int64(b), nil
	}
	return b.Exact(), nil
}

// UnmarshalYAML reads what ParseBytes reads.
func (b *Bytes) UnmarshalYAML(decode func(any) error) error {
	var text string
	if err := decode(&text); err != nil {
		return err
	}
	v, err := ParseBytes(text)
	if err != nil {
		return err
	}
	*b = v
	return nil
}
