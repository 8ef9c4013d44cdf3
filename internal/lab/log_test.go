package lab

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/programs"
)

// The runtime's log under a kernel with four nodes: it has the homes of what the program
// bound, page by page, and whereto.
func TestLogOfHomes(t *testing.T) {
	opt := boots(t, "4x2")
	app := filepath.Join(t.TempDir(), "app")
	src := filepath.Join(programs.Root(), "runtime-c", "test", "programs", "homes.c")
	if out, err := exec.Command("gcc", "-O2", "-o", app, src).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	opt.Command = []string{app}
	if _, err := Run(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	want := "bound 1\nbound 2\nbound 4\nbound 8\nhomes "
	for _, node := range "0123" {
		want += strings.Repeat(string(node), 16)
	}
	want += "\n"
	if out := opt.Stdout.(*bytes.Buffer).String(); out != want {
		t.Errorf("the program printed\n%swant\n%s%s", out, want, opt.Stderr)
	}
}
