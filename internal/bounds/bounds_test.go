package bounds

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/programs"
	"numaopt/internal/symbol"
)

// reasons are what the verdict of each refused function must say.
var reasons = map[string]string{
	"no_master": "compared with a constant", "no_test": "compared with a constant", "no_last_thread": "compared with something else",
	"no_index": "index of an array", "no_print": "may be passed to", "no_store": "stored to memory|used by",
	"no_pointer": "used by|stored on the stack|stored to memory|multiplied", "no_chunked": "chunked static loop", "no_chunk_size": "chunked static loop",
	"no_own_share": "share of its own|compared with", "no_even_share": "share of its own",
	"no_flags": "compared with a constant|multiplied|index", "no_buckets": "index of an array|multiplied|used by",
	"no_remainder": "share of its own|more than the bounds",
	"who":          "may be returned", "no_owner": "asks for the thread's number itself", "no_own_call": "asks for the thread's number itself", "no_threadprivate": "has its own copy of",
	// of hand.s
	"no_argument": "not read back", "no_vector": "vector instruction", "no_table": "switch", "no_merge": "index of an array",
}

// build compiles a file of testdata and returns the path of the program.
func build(t *testing.T, compiler, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "app")
	args := append([]string{"-g", "-o", out, filepath.Join("testdata", source)}, flags...)
	if strings.HasSuffix(source, ".f90") {
		args = append(args, "-J", filepath.Dir(out))
	}
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, text)
	}
	return out
}

func open(t *testing.T, path string) (*symbol.Module, *Binary) {
	t.Helper()
	m, err := symbol.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, b
}

// sites returns the return addresses of calls of omp_get_thread_num in functions
// whose name begins with one of prefixes, by function.
func sites(t *testing.T, m *symbol.Module, b *Binary, prefixes ...string) map[string][]uint64 {
	t.Helper()
	out := map[string][]uint64{}
	for _, fn := range m.Functions() {
		name := sourceName(fn.Symbol)
		wanted := false
		for _, p := range prefixes {
			wanted = wanted || strings.HasPrefix(name, p)
		}
		if !wanted {
			continue
		}
		code, err := b.decode(fn)
		if err != nil && strings.Contains(fn.Symbol, "omp_fn") {
			t.Fatalf("%s: %v", fn.Symbol, err)
		} else if err != nil {
			continue
		}
		for _, s := range code.steps {
			if s.Op == x86asm.CALL && s.callee == threadNum {
				out[name] = append(out[name], s.next)
			}
		}
	}
	return out
}

// sourceName is the function of the source that a symbol was made of.
func sourceName(symbol string) string {
	name, _, _ := strings.Cut(symbol, "._omp_fn.")
	return strings.TrimPrefix(name, "__loops_MOD_")
}

// judge checks the verdict of every site and returns those that may be permuted.
func judge(t *testing.T, path string) (permutable []uint64) {
	t.Helper()
	m, b := open(t, path)
	all := sites(t, m, b, "ok_", "no_", "orphan", "who")
	for name, list := range all {
		for _, site := range list {
			v := b.Judge(site)
			want, refuse := reasons[name]
			refuse = refuse || strings.HasPrefix(name, "no_")
			switch {
			case v.Permutable == refuse:
				t.Errorf("%s at %#x: %+v", name, site, v)
			case refuse && !regexp.MustCompile(want).MatchString(v.Reason):
				t.Errorf("%s: reason %q, want %q", name, v.Reason, want)
			case v.Permutable:
				permutable = append(permutable, site)
			}
			t.Logf("%-18s %v %q %s", name, v.Permutable, v.Reason, lines(v))
		}
	}
	return permutable
}

func lines(v Verdict) string {
	var out []string
	for _, l := range v.Loops {
		out = append(out, fmt.Sprint(l.Line))
	}
	return strings.Join(out, ",")
}

// TestVerdicts compares the verdicts with what the programs are, for each level
// of optimisation, and proves them: with every permutable site reversed the
// programs leave the same data, bit by bit, and the threads have changed places.
func TestVerdicts(t *testing.T) {
	library := build(t, "gcc", "reverse.c", "-O2", "-shared", "-fPIC")
	flags := map[string][]string{
		"O1": {"-O1"}, "O2": {"-O2"}, "O3": {"-O3"}, "Ofast": {"-Ofast"},
		"Os": {"-Os"}, "no-pie": {"-O2", "-no-pie"}, "protected": {"-O1", "-fstack-protector-all"},
		"no-plt": {"-O2", "-fno-plt"}, "cet": {"-O2", "-fcf-protection"}, "frame": {"-O2", "-fno-omit-frame-pointer"},
	}
	if testing.Short() {
		flags = map[string][]string{"O2": flags["O2"]}
	}
	for level, f := range flags {
		for source, compiler := range map[string]string{"loops.c": "gcc", "loops.f90": "gfortran"} {
			t.Run(level+"/"+source, func(t *testing.T) {
				path := build(t, compiler, source, append(f, "-fopenmp")...)
				list := judge(t, path)
				m, b := open(t, path)
				list = append(list, sites(t, m, b, "no_owner")["no_owner"]...) // it says who did what
				if level == "no-pie" {                                         // reverse.c knows relative addresses only
					return
				}
				for _, threads := range []string{"1", "4", "7"} {
					plain, _ := run(t, path, library, threads, nil)
					reversed, answers := run(t, path, library, threads, list)
					compareRuns(t, plain, reversed)
					if answers == 0 {
						t.Error("nothing was reversed")
					}
				}
			})
		}
	}
}

// TestVector judges code for processors newer than this one may be, which is not
// run.
func TestVector(t *testing.T) {
	for _, arch := range []string{"haswell", "skylake-avx512", "znver3"} {
		t.Run(arch, func(t *testing.T) {
			judge(t, build(t, "gcc", "loops.c", "-O3", "-fopenmp", "-march="+arch))
		})
	}
}

// TestPrograms reverses what may be reversed in the test programs: each prints
// what it printed before.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs all test programs")
	}
	library := build(t, "gcc", "reverse.c", "-O2", "-shared", "-fPIC")
	refused := map[string][]string{ // the -api ones ask numaopt.h for their bounds
		"is": {"distribute"}, "pipeline": {"blts"}, "sweeps-api": {"sweep"}, "lu-api": {"planes"}, "cg-api": {"own"},
		"bt-api": {"each_plane", "z_solve"}, "sp-api": {"each_plane", "z_solve"}, "ft-api": {"rows"},
	}
	for _, name := range programs.Names(t) {
		t.Run(name, func(t *testing.T) {
			path := programs.Build(t, name, "gcc")
			m, b := open(t, path)
			var list []uint64
			for fn, all := range sites(t, m, b, "") {
				for _, site := range all {
					v := b.Judge(site)
					if v.Permutable == slices.Contains(refused[name], fn) {
						t.Errorf("%s: %+v", fn, v)
					}
					if v.Permutable {
						list = append(list, site)
					}
				}
			}
			plain, _ := run(t, path, library, "6", nil)
			reversed, answers := run(t, path, library, "6", list)
			if plain != reversed || answers == 0 && len(list) > 0 {
				t.Errorf("%d answers reversed at %d sites; plain %s, reversed %s", answers, len(list), plain, reversed)
			}
		})
	}
}

// TestReversalIsSeen guards the proof: what is refused does change when it is
// reversed all the same.
func TestReversalIsSeen(t *testing.T) {
	library := build(t, "gcc", "reverse.c", "-O2", "-shared", "-fPIC")
	path := build(t, "gcc", "loops.c", "-O2", "-fopenmp")
	m, b := open(t, path)
	var list []uint64
	for _, s := range sites(t, m, b, "no_test", "no_last_thread") {
		list = append(list, s...)
	}
	_, before := lastLine(run2(t, path, library, "4", nil))
	_, after := lastLine(run2(t, path, library, "4", list))
	if before == after {
		t.Errorf("both printed %q", before)
	}
}

// TestLengths compares where instructions begin with what objdump says.
func TestLengths(t *testing.T) {
	for source, functions := range map[string]string{"loops.c": "omp_fn", "hand.s": "many"} {
		path := build(t, "gcc", source, "-O3", "-fopenmp", "-march=skylake-avx512", "-shared", "-fPIC")
		text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", "-j.text", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		m, b := open(t, path)
		starts, count := map[uint64]bool{}, 0
		for _, fn := range m.Functions() {
			code, err := b.decode(fn)
			if !strings.Contains(fn.Symbol, functions) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range code.steps {
				starts[s.pc] = true
			}
		}
		for _, line := range strings.Split(string(text), "\n") {
			var pc uint64
			if n, _ := fmt.Sscanf(line, " %x:", &pc); n != 1 {
				continue
			}
			if fn, ok := m.FunctionAt(pc); ok && strings.Contains(fn.Symbol, functions) {
				count++
				if !starts[pc] {
					t.Errorf("%s: no instruction begins at %s", source, line)
				}
			}
		}
		if count < 20 || count != len(starts) {
			t.Errorf("%s: %d instructions, objdump has %d", source, len(starts), count)
		}
	}
}

// TestAnyBytes decodes from every byte of a program to ends near and far: nothing
// but an error may come of it.
func TestAnyBytes(t *testing.T) {
	_, b := open(t, build(t, "gcc", "loops.c", "-O3", "-fopenmp", "-march=skylake-avx512"))
	for _, section := range b.text {
		for i := range section.bytes {
			rest := section.bytes[i:]
			for n := 0; n <= min(16, len(rest)); n++ {
				if in, _, err := decode(rest[:n:n]); err == nil && (in.Len < 1 || in.Len > n) {
					t.Fatalf("%x: length %d of %d", rest[:n], in.Len, n)
				}
			}
		}
	}
}

// TestHand judges code that compilers seldom make.
func TestHand(t *testing.T) {
	judge(t, build(t, "gcc", "hand.s", "-fopenmp", "-shared", "-fPIC"))
}

func run2(t *testing.T, path, library, threads string, list []uint64) string {
	out, _ := run(t, path, library, threads, list)
	return out
}

// lastLine splits off the last line.
func lastLine(text string) (rest, last string) {
	text = strings.TrimSpace(text)
	i := strings.LastIndexByte(text, '\n')
	return text[:i+1], text[i+1:]
}

// run runs a program with the sites of list reversed, and returns what it printed
// and how many answers were.
func run(t *testing.T, path, library, threads string, list []uint64) (out string, answers int) {
	t.Helper()
	var hex strings.Builder
	for _, site := range list {
		fmt.Fprintf(&hex, "%x,", site)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+library, "REVERSE="+hex.String(), "OMP_NUM_THREADS="+threads, "OMP_DYNAMIC=false", "OMP_WAIT_POLICY=passive")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	_, last := lastLine(stderr.String())
	fmt.Sscanf(last, "reversed %d", &answers)
	return string(text), answers
}

// compareRuns compares the lines of functions, and who had the first chunk.
func compareRuns(t *testing.T, plain, reversed string) {
	t.Helper()
	a, b := strings.Split(plain, "\n"), strings.Split(reversed, "\n")
	for i := range a {
		switch {
		case i >= len(b):
			t.Fatalf("reversed printed %d lines, not %d", len(b), len(a))
		case strings.HasPrefix(a[i], "first "):
			var first, last, rfirst, rlast int
			fmt.Sscanf(a[i], "first %d last %d", &first, &last)
			fmt.Sscanf(b[i], "first %d last %d", &rfirst, &rlast)
			if first != rlast || last != rfirst {
				t.Errorf("plain %s, reversed %s", a[i], b[i])
			}
		case a[i] != b[i]:
			t.Errorf("plain %s, reversed %s", a[i], b[i])
		case strings.HasPrefix(a[i], "ok_int") && !strings.HasSuffix(a[i], " 0"):
			t.Errorf("iterations ran twice: %s", a[i])
		}
	}
}

// TestLoops checks which loops a call is said to govern.
func TestLoops(t *testing.T) {
	path := build(t, "gcc", "loops.c", "-O2", "-fopenmp")
	source, err := os.ReadFile("testdata/loops.c")
	if err != nil {
		t.Fatal(err)
	}
	m, b := open(t, path)
	for name, n := range map[string]int{"ok_int": 1, "ok_two": 2, "ok_reduction": 1, "no_master": 1, "no_test": 1, "no_chunked": 0} {
		list := sites(t, m, b, name)[name]
		if len(list) != 1 {
			t.Fatalf("%s: %d sites", name, len(list))
		}
		v := b.Judge(list[0])
		if len(v.Loops) != n {
			t.Errorf("%s: %d loops, want %d: %+v", name, len(v.Loops), n, v)
		}
		for _, l := range v.Loops {
			text := strings.Split(string(source), "\n")[l.Line-1]
			if !strings.Contains(text, "for ") && !strings.Contains(text, "#pragma omp") {
				t.Errorf("%s: line %d is %q", name, l.Line, text)
			}
		}
		if together := "they are permuted together"; v.Permutable && strings.Contains(v.Reason, together) != (n > 1) {
			t.Errorf("%s: reason %q", name, v.Reason)
		}
	}
}

// TestBadInput asks about what is no call of omp_get_thread_num.
func TestBadInput(t *testing.T) {
	path := build(t, "gcc", "loops.c", "-O2", "-fopenmp")
	m, b := open(t, path)
	main := m.FunctionsNamed("main")[0]
	for site, want := range map[uint64]string{0: "no symbol", 16: "no symbol", main.Lo + 3: "another build", ^uint64(0): "no symbol"} {
		if v := b.Judge(site); v.Permutable || !strings.Contains(v.Reason, want) {
			t.Errorf("%#x: %+v, want %q", site, v, want)
		}
	}
	if err := exec.Command("strip", path).Run(); err != nil {
		t.Fatal(err)
	}
	_, b = open(t, path)
	if v := b.Judge(main.Lo + 3); v.Permutable || !strings.Contains(v.Reason, "stripped") {
		t.Errorf("stripped: %+v", v)
	}
}
