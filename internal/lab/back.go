package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// changes carries out on the host what the last run did to the files it saw:
// files appear by temporary name and rename, so that a reader never meets half of
// one. What cannot be written is counted, the first with its reason, and does not
// stop the rest.
type changes struct {
	written, deleted int
	failed           []error // at most maxFailures, then only counted
	failures         int
	skip             string // a directory whose changes are numaopt's, not the program's

	file *os.File // the entry that content belongs to
	left int64
	at   entry
}

const maxFailures = 5

// notBack are the places whose files mean nothing outside the guest.
var notBack = []string{"/proc", "/sys", "/dev", "/run", "/lost+found"}

func (c *changes) fail(err error) {
	c.failures++
	if len(c.failed) < maxFailures {
		c.failed = append(c.failed, err)
	}
}

// entry begins one file. Only an error that no further entry could survive is
// returned; there is none today.
func (c *changes) entry(e entry) error {
	c.drop(io.ErrUnexpectedEOF) // the one before, where it was cut short
	c.left, c.at = 0, e
	for _, p := range append(notBack, c.skip) {
		if p != "" && (e.path == p || strings.HasPrefix(e.path, p+"/")) {
			return nil
		}
	}
	var err error
	switch e.kind {
	case 'w':
		err = c.remove(e.path)
	case 'D':
		if err = c.remove(e.path); err == nil {
			err = c.dir(e)
		}
	case 'd':
		err = c.dir(e)
	case 'l':
		err = c.link(e)
	case 'f':
		err = c.begin(e)
	}
	if err != nil {
		c.fail(err)
	}
	return nil
}

func (c *changes) remove(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	c.deleted++
	return nil
}

// dir makes a directory that is new; one that is there only stands above
// something that changed.
func (c *changes) dir(e entry) error {
	st, err := os.Lstat(e.path)
	if err == nil && st.IsDir() {
		return nil
	}
	if err == nil {
		if err := os.Remove(e.path); err != nil {
			return err
		}
	}
	c.written++
	if err := os.Mkdir(e.path, 0o700); err != nil {
		return err
	}
	return os.Chmod(e.path, fileMode(e.mode))
}

func (c *changes) link(e entry) error {
	if now, err := os.Readlink(e.path); err == nil && now == e.target {
		return nil
	}
	tmp := tempName(e.path)
	if err := os.Symlink(e.target, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, e.path); err != nil {
		os.Remove(tmp)
		return err
	}
	c.written++
	return nil
}

// begin opens a changed file's new content. A file that was opened for writing
// and left alone (same size, same time) is passed over.
func (c *changes) begin(e entry) error {
	st, err := os.Lstat(e.path)
	if err == nil && st.Mode().IsRegular() && st.Size() == e.size && st.ModTime().Equal(e.mtime) && st.Mode().Perm() == fileMode(e.mode).Perm() {
		return nil
	}
	if err == nil && st.Mode()&(os.ModeDevice|os.ModeNamedPipe|os.ModeSocket) != 0 {
		return fmt.Errorf("%s is a pipe, socket or device here: the file of that name from the guest was not copied", e.path)
	}
	f, err := os.OpenFile(tempName(e.path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c.file, c.left = f, e.size
	if e.size == 0 {
		return c.end()
	}
	return nil
}

// content takes the next bytes of the file that entry began.
func (c *changes) content(b []byte) error {
	if c.file == nil {
		return nil
	}
	b = b[:min(int64(len(b)), c.left)]
	if _, err := c.file.Write(b); err != nil {
		c.drop(err)
		return nil
	}
	c.left -= int64(len(b))
	if c.left == 0 {
		if err := c.end(); err != nil {
			c.fail(err)
		}
	}
	return nil
}

// drop gives up the file under way.
func (c *changes) drop(err error) {
	if c.file == nil {
		return
	}
	c.file.Close()
	os.Remove(c.file.Name())
	c.file = nil
	c.fail(fmt.Errorf("%s: %w", c.at.path, err))
}

func (c *changes) end() error {
	f, e := c.file, c.at
	c.file = nil
	err := f.Chmod(fileMode(e.mode))
	err = errors.Join(err, f.Close(), os.Chtimes(f.Name(), time.Time{}, e.mtime))
	if err == nil {
		err = os.Rename(f.Name(), e.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	c.written++
	return nil
}

func fileMode(unix uint32) fs.FileMode {
	m := fs.FileMode(unix & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if unix&bit != 0 {
			m |= flag
		}
	}
	return m
}

func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".%.200s.numaopt%d", filepath.Base(path), os.Getpid()))
}
