// Package units holds the quantities of numaopt that have a unit, and how they
// are parsed and printed.
package units

// PageSize is the size in bytes of the base page that profiles and plans count
// in. numaopt's sources and the lab are x86-64, where it is always 4 KiB; huge
// pages are multiples of it.
const PageSize = 4096

// Bytes is a size in bytes.
type Bytes int64

// Pages returns how many whole base pages b covers, rounding up.
func (b Bytes) Pages() int { return int((b + PageSize - 1) / PageSize) }
