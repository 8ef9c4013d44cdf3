package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"numaopt/internal/programs"
)

// Spack's requires is content with one of several specs.
func TestSpackRequires(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(programs.Root(), "scripts", "packaging", "spack", "numaopt", "package.py"))
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`requires\("([^"]*)"(, *")?`).FindAllStringSubmatch(string(text), -1)
	if len(calls) == 0 {
		t.Error("no requires")
	}
	for _, call := range calls {
		if call[2] != "" {
			t.Errorf("one of several: %s", call[0])
		}
	}
}
