package arena

import (
	"os"

	"golang.org/x/sys/unix"
)

// File is an arena's descriptor.
type File struct{ *os.File }

// NextData returns the next offset from offset on that is not in a hole.
func (f File) NextData(offset int64) (int64, error) {
	return unix.Seek(int(f.Fd()), offset, unix.SEEK_DATA)
}
