package symbol

import (
	"bytes"
	"debug/elf"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// debugRoot is where distributions keep separate debug files; tests have their own.
var debugRoot = "/usr/lib/debug"

// openDebugFile opens the separate debug file of e, which lies at path: by build
// id, else by .gnu_debuglink. It returns nil where there is none that fits; else
// closer must be called when the file is no longer needed.
func openDebugFile(path string, e *elf.File, id string) (debug *elf.File, closer func()) {
	if len(id) > 2 {
		p := filepath.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug")
		if d, c := openIf(p, func(d *elf.File, _ *os.File) bool { return buildID(d) == id }); d != nil {
			return d, c
		}
	}
	name, sum, ok := debugLink(e)
	if !ok {
		return nil, nil
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, nil
	}
	for _, p := range []string{
		filepath.Join(dir, name),
		filepath.Join(dir, ".debug", name),
		filepath.Join(debugRoot, dir, name),
	} {
		if p == path {
			continue
		}
		fits := func(d *elf.File, f *os.File) bool {
			if id != "" && buildID(d) != "" {
				return buildID(d) == id
			}
			return checksum(f) == sum
		}
		if d, c := openIf(p, fits); d != nil {
			return d, c
		}
	}
	return nil, nil
}

// openIf opens the ELF file at path if it fits.
func openIf(path string, fits func(*elf.File, *os.File) bool) (*elf.File, func()) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil
	}
	if e, err := elf.NewFile(f); err == nil && fits(e, f) {
		return e, func() { f.Close() }
	}
	f.Close()
	return nil, nil
}

// debugLink returns the name and checksum in .gnu_debuglink.
func debugLink(e *elf.File) (name string, sum uint32, ok bool) {
	s := e.Section(".gnu_debuglink")
	if s == nil || s.Size > 4096 {
		return "", 0, false
	}
	data, err := s.Data()
	if err != nil || len(data) < 8 {
		return "", 0, false
	}
	end := bytes.IndexByte(data, 0)
	if end <= 0 {
		return "", 0, false
	}
	return filepath.Base(string(data[:end])), e.ByteOrder.Uint32(data[len(data)-4:]), true
}

// checksum is the CRC of a whole file, as .gnu_debuglink has it.
func checksum(f *os.File) uint32 {
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<40)); err != nil {
		return 0
	}
	return h.Sum32()
}
