package symbol

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArrays(t *testing.T) {
	for _, x := range []struct {
		command, source string
		want            map[string]Array // by symbol
	}{
		{"gcc -g -O2", "shapes.c", inC},
		{"clang -g -O2", "shapes.c", inC},
		{"gcc -gdwarf-4 -O0", "shapes.c", inC},
		{"g++ -g -O2", "shapes.cpp", inCpp},
		{"clang++ -g -O1", "shapes.cpp", inCpp},
		{"gfortran -g -O2", "shapes.f90", inFortran},
		{"gfortran -g -O2", "commons.f90", inCommon},
		{"gfortran -g -O0", "commons.f90", inCommon},
		{"gcc -O2", "shapes.c", map[string]Array{}},
	} {
		m := open(t, compile(t, x.command, x.source))
		arrays := m.Arrays()
		got := make(map[string]Array)
		for _, v := range m.Variables() {
			if a, ok := arrays[v.VAddr]; ok && v.Size >= detailBytes {
				got[v.Symbol] = a
			}
		}
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%s %s (-want +got):\n%s", x.command, x.source, d)
		}
	}
}

var (
	inC = map[string]Array{
		"u":     {"u", []int64{40, 30, 20, 5}, 8},
		"w":     {"w", []int64{40, 30, 5}, 8},
		"field": {"field", []int64{64, 128}, 16},
	}
	inCpp     = map[string]Array{"_ZN3sim4gridE": {"grid", []int64{200, 300}, 4}}
	inFortran = map[string]Array{
		"__fields_MOD_u": {"u", []int64{10, 32, 64, 5}, 8},
		"__fields_MOD_z": {"z", []int64{200, 100}, 16},
		"one_":           {"q", []int64{60, 100}, 8},
		"two_(r)":        {"r", []int64{1000}, 8},
		"two_(s)":        {"s", []int64{1000}, 8},
	}
	// /odd/ is declared in two ways, so that nobody knows what its parts are.
	inCommon = map[string]Array{
		"flds_(u)":    {"u", []int64{30, 40}, 8},
		"flds_(w)":    {"w", []int64{30, 40}, 8},
		"flds_(list)": {"list", []int64{2000}, 4},
	}
)

func TestPointer(t *testing.T) {
	for _, x := range []struct {
		command, source, call string
		nth                   int
		name                  string
		line                  int
		want                  Array
		ok                    bool
	}{
		{"gcc -g -O2", "shapes.c", "malloc", 0, "rhs", 16, Array{"rhs", []int64{0, 30, 5}, 8}, true},
		{"gcc -g -O2", "shapes.c", "malloc", 1, "lhs", 17, Array{"lhs", []int64{0, 30}, 8}, true},
		{"gcc -g -O2", "shapes.c", "malloc", 1, "", 17, Array{"lhs", []int64{0, 30}, 8}, true},
		{"clang -g -O2", "shapes.c", "malloc", 1, "lhs", 17, Array{"lhs", []int64{0, 30}, 8}, true},
		{"gcc -g -O2", "shapes.c", "malloc", 2, "vla", 18, Array{"vla", []int64{0, 0}, 8}, true},
		{"gcc -g -O2", "shapes.c", "malloc", 3, "line", 19, Array{"line", nil, 8}, true},
		{"gcc -g -O2", "shapes.c", "malloc", 0, "", 16, Array{}, false}, // declared elsewhere
		{"gcc -g -O2", "shapes.c", "malloc", 0, "nosuch", 16, Array{}, false},
		{"g++ -g -O1", "shapes.cpp", "_Znam", 0, "cells", 9, Array{"cells", []int64{0, 50}, 8}, true},
	} {
		path := compile(t, x.command, x.source)
		got, ok := open(t, path).Pointer(callsTo(t, path, x.call)[x.nth]-1, x.name, x.line)
		if d := cmp.Diff(x.want, got); d != "" || ok != x.ok {
			t.Errorf("%s %s, %s: %v (-want +got):\n%s", x.command, x.source, x.name, ok, d)
		}
	}
}
