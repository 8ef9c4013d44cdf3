// Package safefile writes files whole or not at all: a reader never sees half
// a file, and a full disk or a crash leaves the old file as it was.
package safefile

import (
	"bufio"
	"io"
	"os"

	"github.com/google/renameio/v2"
)

// Write creates or replaces the file at path with what write produces: into a
// temporary file beside it, which is synced and renamed over path when write
// and all flushing succeeded. Where path exists and is not a regular file
// (/dev/stdout, a pipe), it is written in place.
func Write(path string, write func(io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return inPlace(path, write)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // nothing to do once it was replaced or cannot be removed
	if err := buffered(f, write); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

func inPlace(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := buffered(f, write); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func buffered(w io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}
