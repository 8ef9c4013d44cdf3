package symbol

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Attributes of a skeleton unit, whose rest is in a .dwo file (DWARF 5, §3.1.2).
const (
	attrDwoName  = dwarf.Attr(0x76)
	attrAddrBase = dwarf.Attr(0x73)
	attrGNUName  = dwarf.Attr(0x2130) // of DWARF 4, whose forms of addresses and strings are others
)

// Bytes before the first entry of tables of a 32-bit DWARF 5 section (§7.26, §7.28).
const (
	strOffsetsHeader = 8
	rangeListsHeader = 12
)

// splitOf is the rest of a skeleton unit: nil if u is whole, or its .dwo file is not
// there, neither where it was written nor beside the module, or of another build.
func (d *debugInfo) splitOf(u *unit) *dwarf.Data {
	if name, _ := u.root.Val(attrGNUName).(string); name != "" {
		d.lack("it is split DWARF of version 4: compile with -gdwarf-5")
	}
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
	why := name + " is not there, and packages of such files (.dwp) are not read"
	for _, path := range places {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		data, err := splitData(f, past(d.addrs, int(base)), unitID(d.info, u.off))
		f.Close()
		if err == nil {
			return data
		}
		why = fmt.Sprintf("%s: %v", path, err)
	}
	d.lack(why)
	return nil
}

// lack notes the first reason why names of the module are missing.
func (d *debugInfo) lack(why string) {
	if d.lacking == "" {
		d.lacking = why
	}
}

// unitID is the number by which a skeleton and its .dwo file know each other: the last
// of the unit's header, before its first entry, in both (§7.5.1.2). nil is none.
func unitID(info []byte, first dwarf.Offset) []byte {
	if first < 8 || int(first) > len(info) {
		return nil
	}
	return info[first-8 : first]
}

// splitData reads the .dwo file of the skeleton with this id. Its unit says nothing of
// where its parts of the tables begin, so that each is given from there; the addresses
// are those of the module.
func splitData(f *os.File, addrs, id []byte) (*dwarf.Data, error) {
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
	info := section(".debug_info.dwo")
	data, err := dwarf.New(section(".debug_abbrev.dwo"), nil, nil, info, nil, nil, nil, section(".debug_str.dwo"))
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
	if root, err := data.Reader().Next(); err != nil || root == nil || !bytes.Equal(id, unitID(info, root.Offset)) {
		return nil, errors.New("of another build than the module")
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
