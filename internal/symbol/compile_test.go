package symbol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"numaopt/internal/ident"
)

// compile builds testdata/source by a command such as "gcc -g -O2 -fopenmp" and
// returns the program, which is the same one for the same command.
func compile(t *testing.T, command, source string) string {
	t.Helper()
	compiled.Lock()
	defer compiled.Unlock()
	if path, ok := compiled.paths[command+source]; ok {
		return path
	}
	words := strings.Fields(command)
	dir, err := os.MkdirTemp(compiled.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "app")
	src, err := filepath.Abs(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(words[0], append(words[1:], src, "-o", out)...)
	cmd.Dir = t.TempDir() // module files of Fortran
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, text)
	}
	compiled.paths[command+source] = out
	return out
}

// compiled holds what compile made, for all tests: do not change it.
var compiled struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

func TestMain(m *testing.M) {
	var err error
	if compiled.dir, err = os.MkdirTemp("", "numaopt-symbol-"); err != nil {
		panic(err)
	}
	compiled.paths = make(map[string]string)
	code := m.Run()
	os.RemoveAll(compiled.dir)
	os.Exit(code)
}

// open is Open for tests.
func open(t *testing.T, path string) *Module {
	t.Helper()
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// callsTo returns the return addresses of calls of a function, as objdump sees
// them.
func callsTo(t *testing.T, path, function string) []uint64 {
	t.Helper()
	text, err := exec.Command("objdump", "-d", "--no-show-raw-insn", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	lines := strings.Split(string(text), "\n")
	for i, l := range lines[:len(lines)-1] {
		if strings.Contains(l, "call ") && strings.Contains(l, "<"+function+"@plt>") {
			out = append(out, hexBefore(lines[i+1]))
		}
	}
	return out
}

// hexBefore reads the address at the start of a line of objdump.
func hexBefore(line string) uint64 {
	var v uint64
	for _, c := range strings.TrimSpace(line) {
		i := strings.IndexRune("0123456789abcdef", c)
		if i < 0 {
			break
		}
		v = v<<4 | uint64(i)
	}
	return v
}

// picture writes locations as "init:11@8 < main:34@32".
func picture(in []ident.Location) string {
	var parts []string
	for _, l := range in {
		if !l.System() {
			parts = append(parts, l.Function+":"+itoa(l.Line)+"@"+itoa(l.FunctionLine))
		}
	}
	return strings.Join(parts, " < ")
}
