package lab

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// scratchBytes is the size of the guest's disk for what the runs write; it is
// sparse, and takes what is written.
const scratchBytes = 64 << 30

// newDir makes the directory of one lab. The guest sees it at the same path, which
// must therefore not lie where the guest has file systems of its own.
func newDir() (string, error) {
	parent := os.TempDir()
	if abs, err := filepath.EvalSymlinks(parent); err == nil {
		parent = abs
	}
	if hiddenInGuest(parent) || len(parent) > 60 { // a socket's path has at most 107 bytes
		parent = "/tmp"
	}
	return os.MkdirTemp(parent, "numaopt-lab-")
}

func hiddenInGuest(path string) bool {
	for _, p := range []string{"/dev", "/proc", "/sys"} {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// writeScratch makes the guest's empty disk, in the place of an earlier one.
func writeScratch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(scratchBytes)
	f.Close()
	if err != nil {
		return err
	}
	mke2fs, err := lookSbin("mke2fs")
	if err != nil {
		return fmt.Errorf("mke2fs is missing: apt-get install e2fsprogs")
	}
	out, err := exec.Command(mke2fs, "-q", "-F", "-t", "ext4", "-m", "0", "-O", "^has_journal",
		"-E", "nodiscard,lazy_itable_init=1", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs: %w: %s", err, lastLine(out))
	}
	return nil
}

// lookSbin is exec.LookPath that also looks where Debian keeps administrators'
// programs, which are not in every user's PATH.
func lookSbin(name string) (string, error) {
	if p, err := exec.LookPath(name); err == nil {
		return p, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return p, nil
		}
	}
	return "", exec.ErrNotFound
}

// stageStdin leaves what can be read from in at a path that the guest can open:
// every run reads it from its start. A terminal or a device is not read.
func stageStdin(in io.Reader, dir string) (string, error) {
	f, isFile := in.(*os.File)
	if in == nil {
		return "/dev/null", nil
	}
	if isFile {
		st, err := f.Stat()
		if err != nil || st.Mode()&os.ModeDevice != 0 {
			return "/dev/null", nil
		}
	}
	path := filepath.Join(dir, "stdin")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(to, in); err != nil {
		to.Close()
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return path, to.Close()
}
