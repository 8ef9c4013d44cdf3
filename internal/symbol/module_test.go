package symbol

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"numaopt/internal/ident"
)

// TestContentID: a file without a build id has one of its code, which stripping
// it does not change.
func TestContentID(t *testing.T) {
	id := func(path string) string {
		t.Helper()
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return m.BuildID()
	}
	const without = "gcc -O0 -fopenmp -Wl,--build-id=none"
	app := compile(t, without, "sweep.c")
	got := id(app)
	if hex := strings.TrimPrefix(got, ident.ContentPrefix); len(hex) != 40 || got == hex {
		t.Fatalf("build id %q is not that of content", got)
	}
	stripped := filepath.Join(t.TempDir(), "app")
	if text, err := exec.Command("strip", "-o", stripped, app).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, text)
	}
	if now := id(stripped); now != got {
		t.Errorf("stripped: %s, want %s", now, got)
	}
	if other := id(compile(t, strings.Replace(without, "-O0", "-O1", 1), "sweep.c")); other == got {
		t.Errorf("two builds have the content id %s", got)
	}
	if real := id(compile(t, "gcc -O0 -fopenmp -Wl,--build-id=sha1", "sweep.c")); strings.HasPrefix(real, ident.ContentPrefix) {
		t.Errorf("a file with a build id has %s", real)
	}
}
