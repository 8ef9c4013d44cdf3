package diff

import (
	"math"
	"strconv"
)

// Number is a figure; NaN is that there is none, and null in JSON.
type Number float64

// MarshalJSON writes four digits after the point at most.
func (n Number) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	f = math.Round(f*1e4) / 1e4
	if f == 0 {
		f = 0 // not -0
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64), nil
}
