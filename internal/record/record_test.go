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

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	arm := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x03\x00\xb7\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 28) + "\x40\x00\x38\x00\x00\x00\x40\x00\x00\x00\x00\x00"
	static := strings.Replace(arm, "\xb7", "\x3e", 1)
	for _, c := range []struct{ path, want string }{
		{"/bin/sh", ""},
		{"sh", ""},
		{"no-such-program", "no such program on PATH"},
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "is a directory"},
		{"/dev/null", "not a regular file"},
		{write("plain", "text", 0o755), "neither an ELF program nor a script"},
		{write("mode", "#!/bin/sh\n", 0o644), "chmod +x"},
		{write("setuid", "#!/bin/sh\n", 0o755|os.ModeSetuid), "set-user-id"},
		{write("script", "#!/bin/sh -e\n", 0o755), ""},
		{write("orphan", "#!/no/such/interpreter\n", 0o755), "its interpreter: /no/such/interpreter: no such file"},
		{write("empty", "#!\n", 0o755), "no interpreter"},
		{write("arm", arm, 0o755), "is a program for AARCH64"},
		{write("static", static, 0o755), "statically linked"},
		{write("cut", "\x7fELF\x02", 0o755), "cut:"},
	} {
		_, err := Resolve(c.path)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
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
