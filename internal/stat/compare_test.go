package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The figures are those of scipy: stats.ttest_ind(a, b, equal_var=False,
// alternative="greater"), for one against several stats.t.sf((x-mean(b))/(sd(b)*sqrt(1+1/n)), n-1).
func TestGreater(t *testing.T) {
	b := []float64{10, 10.4, 10.2, 9.9, 10.1}
	for _, c := range []struct {
		name  string
		a, b  []float64
		floor float64
		want  float64
	}{
		{"Welch", []float64{11, 11.5, 10.6}, b, 0, 0.0300},
		{"one against several", []float64{11}, b, 0, 0.0070},
		{"several against one", b, []float64{9.24}, 0, 0.0070},
		{"one against one", []float64{11}, []float64{10}, 0.35, 0.0217},
		{"alike by chance", []float64{10.3, 10.3, 10.3}, []float64{10, 10, 10}, 0.35, 0.1469},
		{"equal", b, b, 0, 0.5},
		{"exact and more", []float64{11}, []float64{10}, 0, 0},
		{"exact and the same", []float64{10}, []float64{10}, 0, 1},
	} {
		if p := Greater(Describe(c.a), Describe(c.b), c.floor, c.floor); math.Abs(p-c.want) > 0.0001 {
			t.Errorf("%s: p = %.4f, want %.4f", c.name, p, c.want)
		}
	}
}

// Of equal distributions, 1 % of the comparisons or fewer fall below 1 %.
func TestGreaterFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) Sample {
		values := make([]float64, n)
		for i := range values {
			values[i] = r.NormFloat64()
		}
		return Describe(values)
	}
	const rounds = 10000
	for _, n := range [][2]int{{1, 3}, {1, 5}, {3, 3}, {3, 5}, {5, 5}, {5, 1}} {
		alarms := 0
		for range rounds {
			if Greater(draw(n[0]), draw(n[1]), 0, 0) < 0.01 {
				alarms++
			}
		}
		if share := float64(alarms) / rounds; share > 0.0125 {
			t.Errorf("%d against %d: %.2f %% false alarms", n[0], n[1], 100*share)
		}
	}
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		values        []float64
		floor, lo, hi float64
	}{
		{[]float64{10, 10.4, 10.2, 9.9, 10.1}, 0, 9.8812, 10.3588}, // scipy: stats.t.interval
		{[]float64{5}, 0, 5, 5},
		{[]float64{5}, 1, 3.0400, 6.9600},
	} {
		lo, hi := Describe(c.values).Interval(c.floor)
		if math.Abs(lo-c.lo) > 1e-3 || math.Abs(hi-c.hi) > 1e-3 {
			t.Errorf("%v: [%.4f, %.4f], want [%.4f, %.4f]", c.values, lo, hi, c.lo, c.hi)
		}
	}
}

func TestModes(t *testing.T) {
	for _, c := range []struct {
		values []float64
		high   []bool
	}{
		{[]float64{5, 40, 5.5, 41}, []bool{false, true, false, true}},
		{[]float64{40, 5, 5.2, 5.1, 5}, []bool{true, false, false, false, false}},
		{[]float64{5, 40}, nil},
		{[]float64{5, 40, 5}, nil},
		{[]float64{5, 6, 7, 8}, nil},
		{[]float64{5, 5, 5, 5}, nil},
		{[]float64{5, 5, 9.9, 9.9}, nil}, // less than the gap that matters
		{nil, nil},
	} {
		if high := Modes(c.values, 5); !slices.Equal(high, c.high) {
			t.Errorf("%v: %v, want %v", c.values, high, c.high)
		}
	}
}

// One wide distribution seldom looks like two.
func TestModesFalseAlarms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n, most := range map[int]float64{4: 0.09, 5: 0.025, 6: 0.006} {
		const rounds = 20000
		seen := 0
		for range rounds {
			values := make([]float64, n)
			for i := range values {
				values[i] = 100 * r.NormFloat64()
			}
			if Modes(values, 5) != nil {
				seen++
			}
		}
		if share := float64(seen) / rounds; share > most {
			t.Errorf("%d values: two modes in %.2f %%", n, 100*share)
		}
	}
}
