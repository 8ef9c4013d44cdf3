package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Percent is part in per cent of whole, in [0, 100] for 0 <= part <= whole;
// 0 where whole is 0.
func Percent(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

// FormatPercent prints pct for people, to one digit after the point; "-" where
// it is not a number. A share that is not zero never prints as "0.0 %", nor one
// that is not the whole as "100.0 %": those two are claims of their own.
func FormatPercent(pct float64) string {
	switch {
	case math.IsNaN(pct):
		return "-"
	case pct > 0 && pct < 0.05:
		return "< 0.1 %"
	case pct < 100 && pct >= 99.95:
		return "> 99.9 %"
	}
	return fmt.Sprintf("%.1f %%", pct)
}

// ParsePercent reads "12", "12.5" or "12.5%": a percentage in [0, 100].
func ParsePercent(text string) (float64, error) {
	s := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%"))
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("percentage %q: not a number from 0 to 100", text)
	}
	return v, nil
}
