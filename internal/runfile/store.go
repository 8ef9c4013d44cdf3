package runfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// keep is how long a run file that no run used again is left for the children of
// a program that still runs.
const keep = 30 * 24 * time.Hour

// Store writes r to a file that all processes of a run can read, and returns its
// path.
//
// Nobody is left to remove it when numaopt has become the program, and a child of
// the program may read it long after its parent ended. So the file is named by
// its content in one directory per user below the system's for temporary files:
// the next run alike uses it again, and one that was not used for 30 days is
// removed by a later Store.
func Store(r Run) (string, error) {
	var text bytes.Buffer
	if err := Write(&text, r); err != nil {
		return "", err
	}
	var failure error
	for _, parent := range []string{os.TempDir(), "/dev/shm"} { // the first may be full
		path, err := storeIn(parent, text.Bytes())
		if err == nil {
			return path, nil
		}
		if failure == nil {
			failure = err
		}
	}
	return "", fmt.Errorf("run file: %w: TMPDIR names another place for it", failure)
}

// storeIn writes text to this user's directory in parent.
func storeIn(parent string, text []byte) (string, error) {
	dir, err := storeDir(parent)
	if err != nil {
		return "", err
	}
	sweep(dir, time.Now().Add(-keep))
	sum := sha256.Sum256(text)
	path := filepath.Join(dir, hex.EncodeToString(sum[:12])+".run")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // else it is only removed earlier
		return path, nil
	}
	return path, replace(path, text)
}

// replace writes a file so that readers see all of it or none.
func replace(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	// Readable by others: a program may give up its user, as a service does.
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// storeDir returns this user's directory for run files below parent. One that
// somebody else made or may write to is not used.
func storeDir(parent string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(parent, fmt.Sprintf("numaopt-%d", os.Geteuid())))
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o022 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a directory that you alone can write to: remove it", dir)
	}
	return dir, nil
}

// sweep removes what was last used before a time.
func sweep(dir string, before time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if st, err := e.Info(); err == nil && !st.IsDir() && st.ModTime().Before(before) {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// plainLink returns a path to lib without spaces and colons, at which the dynamic
// linker splits LD_PRELOAD: a link in this user's directory for run files.
func plainLink(lib string) (string, error) {
	dir, err := storeDir(os.TempDir())
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(lib))
	path := filepath.Join(dir, hex.EncodeToString(sum[:12])+".so")
	if splits(path) {
		return "", fmt.Errorf("%s: the dynamic linker splits LD_PRELOAD at spaces and colons: move numaopt, or set TMPDIR, to a directory without them", lib)
	}
	os.Remove(path) // an old link may be due to be swept
	if err := os.Symlink(lib, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}
