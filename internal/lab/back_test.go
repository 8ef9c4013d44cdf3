package lab

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Unix(1000, 5)
	put("changed", "old")
	put("same", "kept")
	os.Chtimes(at("same"), then, then)
	put("deleted", "x")
	if err := syscall.Mkfifo(at("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(at("replaced"), 0o755)
	put("replaced/old", "x")

	var c changes
	send := func(e entry, content ...string) {
		e.path, e.mtime = at(e.path), then
		for _, s := range content {
			e.size += int64(len(s))
		}
		if err := c.entry(e); err != nil {
			t.Fatal(err)
		}
		for _, s := range content {
			c.content([]byte(s))
		}
	}
	send(entry{kind: 'f', mode: 0o755, path: "changed"}, "new ", "text")
	send(entry{kind: 'f', mode: 0o644, path: "same"}, "KEPT") // same size, time and mode: not written
	send(entry{kind: 'f', mode: 0o644, path: "empty"})
	send(entry{kind: 'w', path: "deleted"})
	send(entry{kind: 'w', path: "never there"})
	send(entry{kind: 'd', mode: 0o750, path: "made"})
	send(entry{kind: 'f', mode: 0o600, path: "made/inside"}, "in")
	send(entry{kind: 'D', mode: 0o755, path: "replaced"})
	send(entry{kind: 'l', mode: 0o777, path: "link", target: "changed"})
	send(entry{kind: 'f', mode: 0o644, path: "no/such/dir"}, "lost")
	send(entry{kind: 'f', mode: 0o644, path: "pipe"}, "lost")
	if err := c.entry(entry{kind: 'f', path: "/proc/sys/kernel/hostname", size: 1}); err != nil || c.file != nil {
		t.Error("a file of the guest's own was taken")
	}

	for name, want := range map[string]string{"changed": "new text", "same": "kept", "empty": "", "made/inside": "in", "link": "new text"} {
		got, err := os.ReadFile(at(name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"deleted", "replaced/old"} {
		if _, err := os.Lstat(at(name)); !os.IsNotExist(err) {
			t.Errorf("%s is still there", name)
		}
	}
	if st, _ := os.Stat(at("changed")); st.Mode().Perm() != 0o755 || !st.ModTime().Equal(then) {
		t.Errorf("changed has mode %v and time %v", st.Mode(), st.ModTime())
	}
	if st, err := os.Lstat(at("pipe")); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is now %v, %v", st, err)
	}
	if c.failures != 2 || len(c.failed) != 2 {
		t.Errorf("%d failures: %v", c.failures, c.failed)
	}
	if left, _ := filepath.Glob(at(".*numaopt*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// A run that is cut off in the middle of a file leaves the old one.
func TestChangesCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	os.WriteFile(path, []byte("old"), 0o644)
	var c changes
	c.entry(entry{kind: 'f', mode: 0o644, size: 10, path: path})
	c.content([]byte("half"))
	c.drop(os.ErrClosed)
	if got, _ := os.ReadFile(path); string(got) != "old" || c.failures != 1 {
		t.Errorf("%q, %d failures", got, c.failures)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("%d files are left", len(all))
	}
}

// A file that is cut short by the next one leaves nothing behind.
func TestCutFile(t *testing.T) {
	dir := t.TempDir()
	var c changes
	c.entry(entry{kind: 'f', mode: 0o644, path: filepath.Join(dir, "cut"), size: 10})
	c.content([]byte("half"))
	c.entry(entry{kind: 'f', mode: 0o644, path: filepath.Join(dir, "whole"), size: 2})
	c.content([]byte("ok"))
	left, _ := os.ReadDir(dir)
	if len(left) != 1 || left[0].Name() != "whole" || c.failures != 1 {
		t.Errorf("%d failures, left %v", c.failures, left)
	}
}
