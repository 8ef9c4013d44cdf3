package bounds

import (
	"regexp"
	"strings"
	"testing"
)

// carryReasons are what is said of each refused region of carry.c.
var carryReasons = map[string]string{
	"no_scalar": whyWrites, "no_after": whyWrites + "|writes to memory after", "no_array": whyWrites, "no_returned": whyWrites,
	"no_stack_argument": whyWrites + "|" + whyEscapes, "no_descriptor": whyWrites + "|" + whyEscapes, "no_escape": whyEscapes,
	"no_heap": "calls malloc", "no_return": "returns a value", "no_calls": "calls one with another|calls another after the last barrier",
	"no_threadprivate": "own copy", "no_ticket": "atomic operation", "no_single": "calls (GOMP_single_start|__kmpc_single)",
	"no_barrier": "no barrier follows", "no_store_after": "writes to memory after", "no_own": "in the region's own code|calls another after",
	"no_two": "has several of its loops|one of its loops|returned|used", "no_pointer": "calls a function, of which",
	"no_clear": whyWrites, "no_number": "has several of its loops|compared with a constant", "no_chunked": "chunked", "no_nested": "calls one with another|" + whyEscapes, "no_pair": whyEscapes,
}

// allowed are regions that only one compiler's code shows to be harmless: gcc makes one
// call of two loops, so that they are permuted alike, and clang's runtime gives out chunks.
var allowed = map[string]string{"gcc": "no_two", "clang": "no_chunked"}

// TestCarries compares what is said of the regions of carry.c.
func TestCarries(t *testing.T) {
	for name, flags := range map[string][]string{
		"O0": {"-O0"}, "O1": {"-O1"}, "O2": {"-O2"}, "O3 of new processors": {"-O3", "-march=skylake-avx512"}, "no-pie": {"-O2", "-no-pie"},
		"protected": {"-O2", "-fstack-protector-all"}, "cet": {"-O2", "-fcf-protection"}, "frames": {"-O2", "-fno-omit-frame-pointer"},
	} {
		for _, compiler := range []string{"gcc", "clang"} {
			if compiler == "gcc" && name == "O0" { // refused anyway
				continue
			}
			t.Run(name+"/"+compiler, func(t *testing.T) {
				needs(t, compiler)
				m, b := open(t, build(t, compiler, "carry.c", append(flags, "-fopenmp", "-lm")...))
				seen := 0
				for _, l := range m.OutlinedLoops() {
					seen++
					why := b.Carries(l.Lo, nil)
					if allowed[compiler] == l.Function && why == "" {
						continue
					}
					switch want := carryReasons[l.Function]; {
					case strings.HasPrefix(l.Function, "ok_"):
						if why != "" {
							t.Errorf("%s: %s", l.Function, why)
						}
						if why = b.Carries(l.Lo, []uint64{l.Lo}); !strings.Contains(why, "not found") {
							t.Errorf("%s: a loop elsewhere: %q", l.Function, why)
						}
					case want == "":
						t.Errorf("%q is not expected", l.Function)
					case !regexp.MustCompile(want).MatchString(why):
						t.Errorf("%s: %q, want %s", l.Function, why, want)
					}
				}
				if seen != len(carryReasons)+5 {
					t.Errorf("%d regions", seen)
				}
			})
		}
	}
}
