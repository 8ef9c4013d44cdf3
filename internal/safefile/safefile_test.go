package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	put := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error { io.WriteString(w, s); return err }
	}
	if err := Write(path, put("one", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := Write(path, put("half", broken)); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the writer's own error", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "one" {
		t.Errorf("after a failed write the file is %q, want the old one", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("temporary files are left behind: %v", left)
	}
	if err := Write(filepath.Join(dir, "no", "such"), put("", nil)); err == nil {
		t.Error("a missing folder is no error")
	}
}

func TestWriteInPlace(t *testing.T) {
	if err := Write(os.DevNull, func(w io.Writer) error { _, err := io.WriteString(w, "x"); return err }); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(os.DevNull); err != nil || st.Mode().IsRegular() {
		t.Fatalf("%s was replaced: %v %v", os.DevNull, st, err)
	}
}
