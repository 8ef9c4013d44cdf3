// Package programs builds the programs of testdata/programs for tests.
package programs

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Root is the directory of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Flang returns LLVM's Fortran compiler, with the option by which it finds the OpenMP
// runtime; the test is skipped where there is none.
func Flang(t testing.TB) []string {
	t.Helper()
	text, err := exec.Command("make", "-s", "-C", filepath.Join(Root(), "testdata", "programs"), "flang").Output()
	if err != nil {
		t.Fatal(err)
	}
	command := strings.Fields(string(text))
	if len(command) < 2 {
		t.Skip("no flang: apt-get install flang-19")
	}
	return command
}

// Build returns the path of a test program, name as in testdata/programs and
// compiler "gcc", "clang" or, after Flang, "flang", built now if it is out of date. Tests in several
// processes may call it at once. The program is shared: do not change it.
func Build(t testing.TB, name, compiler string) string {
	t.Helper()
	out := filepath.Join(Root(), "build", "programs")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(out, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close() // and with it goes the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, name, "app-"+compiler)
	make := exec.Command("make", "-s", "-C", filepath.Join(Root(), "testdata", "programs"), "OUT="+out, path)
	if text, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", path, err, text)
	}
	return path
}

// Names returns the names of all test programs.
func Names(t testing.TB) []string {
	t.Helper()
	list, err := exec.Command("make", "-s", "-C", filepath.Join(Root(), "testdata", "programs"), "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(list))
}
