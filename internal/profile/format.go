package profile

import (
	"errors"
	"fmt"
)

// # The file
//
//	bytes            what
//	16               "numaopt-profile\n"
//	4                format version, little endian like all that follows
//	8                length h of the header section
//	8                length c of the columns section
//	h                header: zstd of the JSON of Profile, without its tables
//	c                columns: zstd of the columns below, in any number of frames
//	32               SHA-256 of everything before it
//
// Columns are, for each of the tables Pages, Rows, Latencies, Lines, CodeUses and
// Intervals, a count of its
// entries and one column for each field, in the order of the type. Counts of entries,
// and the fields that are counts, sums or masks, are unsigned varints; every other
// value is a signed (zigzag) varint of the difference from the value before it in its
// column. Fields of the JSON that a reader does not know are skipped; any other change
// raises Version.
//
// Version 1 knew no worksharing loops: its regions have no Site. Version 2 had no
// First and Last, and its Sweep was of the worksharing loop alone; it is read as 0.
// Version 3 had no Latencies and Lines, version 4 no Codes, CodeUses and Intervals.

// Version is the format version that Write writes; Read reads it and all before.
const Version = 5

const (
	magic       = "numaopt-profile\n"
	prefixBytes = len(magic) + 4 + 8 + 8
	sumBytes    = 32
)

// Errors for a caller that decides by them; FormatError wraps them.
var (
	ErrForeign   = errors.New("not a numaopt profile; profiles are written by numaopt profile")
	ErrVersion   = errors.New("written by a newer numaopt; update numaopt, or record the profile again with this one")
	ErrTruncated = errors.New("the file is cut short; copy or record it again")
	ErrDamaged   = errors.New("the file is damaged; copy or record it again")
)

// FormatError is what is wrong with a profile file, and where.
type FormatError struct {
	Part   string // "prefix", "header", "pages", "rows", "latencies", "lines", "code", "intervals", "checksum", "contents"
	Offset int64  // byte of the file for prefix and checksum, index of the entry for tables
	Err    error
}

func (e *FormatError) Error() string {
	switch e.Part {
	case "pages", "rows", "latencies", "lines", "code", "intervals":
		return fmt.Sprintf("%s: entry %d: %v", e.Part, e.Offset, e.Err)
	case "header", "contents":
		return fmt.Sprintf("%s: %v", e.Part, e.Err)
	}
	return fmt.Sprintf("%s: byte %d: %v", e.Part, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }
