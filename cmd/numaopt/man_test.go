package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestMan: the pages that make install writes have every command and every flag.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := numaopt("man", dir); code != 0 || !strings.Contains(stderr, "next: man ") {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
		}
		return strings.ReplaceAll(string(text), `\-`, "-")
	}
	root := page("numaopt")
	std := &stdio{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	for _, cmd := range commands(std) {
		if !strings.Contains(root, "numaopt-"+cmd.Name()+"(1)") {
			t.Errorf("numaopt.1 does not refer to numaopt-%s(1)", cmd.Name())
		}
		checkPage(t, cmd, page("numaopt-"+cmd.Name()))
	}
	for _, word := range []string{"NUMAOPT_LIB", "NUMAOPT_KERNEL", "NO_COLOR", "TMPDIR"} {
		if !strings.Contains(root, word) {
			t.Errorf("numaopt.1 does not tell of %s", word)
		}
	}
}

func checkPage(t *testing.T, cmd *cobra.Command, text string) {
	if !strings.Contains(text, cmd.Short) {
		t.Errorf("numaopt-%s.1 lacks %q", cmd.Name(), cmd.Short)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !strings.Contains(text, "--"+f.Name) {
			t.Errorf("numaopt-%s.1 lacks --%s", cmd.Name(), f.Name)
		}
	})
}
