package symbol

import (
	"debug/dwarf"
	"debug/elf"
	"os"
	"path/filepath"
)

// Attributes of a skeleton unit, whose rest is in a .dwo file (DWARF 5, §3.1.2).
const (
	attrDwoName  = dwarf.Attr(0x76)
	attrAddrBase = dwarf.Attr(0x73)
)

// Bytes before the first entry of tables of a 32-bit DWARF 5 section (§7.26, §7.28).
const (
	strOffsetsHeader = 8
	rangeListsHeader = 12
)

// splitOf is the rest of a skeleton unit: nil if u is whole, or its .dwo file is not
// there, neither where it was written nor beside the module.
func (d *debugInfo) splitOf(u *unit) *dwarf.Data {
	name, _ := u.root.Val(attrDwoName).(string)
	if name == "" {
		return nil
	}
	dir, _ := u.root.Val(dwarf.AttrCompDir).(string)
	places := []string{name, filepath.Join(filepath.Dir(d.path), filepath.Base(name))}
	if !filepath.IsAbs(name) {
		places[0] = filepath.Join(dir, name)
	}
	base, _ := u.root.Val(attrAddrBase).(int64)
	for _, path := range places {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		data, err := splitData(f, past(d.addrs, int(base)))
		f.Close()
		if err == nil {
			return data
		}
	}
	return nil
}

// splitData reads a .dwo file. Its unit says nothing of where its parts of the tables
// begin, so that each is given from there; the addresses are those of the module.
func splitData(f *os.File, addrs []byte) (*dwarf.Data, error) {
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, err
	}
	section := func(name string) []byte {
		s := e.Section(name)
		if s == nil {
			return nil
		}
		b, _ := s.Data()
		return b
	}
	data, err := dwarf.New(section(".debug_abbrev.dwo"), nil, nil, section(".debug_info.dwo"), nil, nil, nil, section(".debug_str.dwo"))
	if err != nil {
		return nil, err
	}
	for name, b := range map[string][]byte{
		".debug_addr":        addrs,
		".debug_str_offsets": past(section(".debug_str_offsets.dwo"), strOffsetsHeader),
		".debug_rnglists":    past(section(".debug_rnglists.dwo"), rangeListsHeader),
	} {
		if err := data.AddSection(name, b); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// past is b from byte n on.
func past(b []byte, n int) []byte {
	if n < 0 || n > len(b) {
		return nil
	}
	return b[n:]
}
