package symbol

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpen holds that no file makes the package panic or hang: an error, or a
// module all of whose questions have an answer.
func FuzzOpen(f *testing.F) {
	seeds, err := filepath.Glob("testdata/elf/*")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, s := range seeds {
		text, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint32(0), byte(0))
		f.Add(text, uint32(len(text)/2), byte(0xff))
	}
	f.Fuzz(func(t *testing.T, text []byte, at uint32, to byte) {
		if len(text) > 1<<20 {
			return
		}
		text = append([]byte{}, text...)
		if int(at) < len(text) {
			text[at] = to
		}
		path := filepath.Join(t.TempDir(), "elf")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = preloadable(path)
		m, err := Open(path)
		if err != nil {
			return
		}
		m.Variables()
		m.OutlinedLoops()
		for i, fn := range m.Functions() {
			if i > 100 {
				break
			}
			m.Spans(m.Code(fn.Lo).Inlined)
		}
	})
}
