package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct{ text, version, err string }{
		{"qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright", "7.2.22", ""},
		{"qemu-x86_64 version 8.2.0", "8.2.0", ""},
		{"qemu-x86_64 version 6.1.0", "", "QEMU 6.1.0 does not load"},
		{"qemu-x86_64 version 9.0.0", "", "install QEMU 6.2 to 8.2"},
		{"hello", "", "names no version"},
	} {
		v, err := fits(c.text)
		if v != c.version && c.err == "" || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %q, %v", c.text, v, err)
		}
	}
}

// TestResolve: what symbol.Describe refuses is not emulated; the path is whole.
func TestResolve(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{"/bin/sh", ""},
		{"sh", ""},
		{"no-such-program", "not in $PATH"},
		{"/dev/null", "not executable"},
		{plain, "neither an ELF program nor a script"},
	} {
		path, err := Resolve(c.name)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if err == nil && !filepath.IsAbs(path) {
			t.Errorf("%s: %s is not absolute", c.name, path)
		}
	}
}

func TestParseCache(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int64
		ways  int
	}{
		{"16K:8", 16 << 10, 8}, {"2M:16", 2 << 20, 16}, {"4096:1", 4096, 1},
		{"16K", 0, 0}, {"16K:", 0, 0}, {"16K:0", 0, 0}, {"16K:33", 0, 0}, {"16K:7", 0, 0}, {"100:1", 0, 0}, {":8", 0, 0}, {"-1K:8", 0, 0}, {"16K:8x", 0, 0},
	} {
		got, err := ParseCache(c.text)
		if got.Bytes != c.bytes || got.Ways != c.ways || (err == nil) != (c.ways > 0) {
			t.Errorf("%q: %+v, %v", c.text, got, err)
		}
	}
}
