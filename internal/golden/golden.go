// Package golden compares what a test produced with a file in testdata.
//
// Only tests import it. go test -update writes the files anew; a missing file
// means empty output.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Compare fails t with a difference where got is not what the file at path holds.
func Compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		write(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got; go test -update accepts it):\n%s", path, d)
	}
}

func write(t *testing.T, path string, got []byte) {
	t.Helper()
	if len(got) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, got, 0o666); err != nil {
		t.Fatal(err)
	}
}
