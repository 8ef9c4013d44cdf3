package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// initramfs is the guest's first file system, in the cpio format that the kernel
// unpacks (Documentation/driver-api/early-userspace/buffer-format, "newc"). It is
// not compressed: reading it is quicker than unpacking it under emulation.
type initramfs struct {
	b   bytes.Buffer
	ino int
}

const (
	modeDir  = 0o40755
	modeExec = 0o100755
	modeFile = 0o100644
	modeChar = 0o20600
)

// add appends one file; dev is major and minor of a device.
func (a *initramfs) add(name string, mode int, data []byte, dev [2]int) {
	a.ino++
	fmt.Fprintf(&a.b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.ino, mode, 0, 0, 1, 0, len(data), 0, 0, dev[0], dev[1], len(name)+1, 0)
	a.b.WriteString(name)
	a.b.WriteByte(0)
	a.pad()
	a.b.Write(data)
	a.pad()
}

func (a *initramfs) pad() {
	a.b.Write(make([]byte, -a.b.Len()&3))
}

// writeInitramfs writes the initramfs of a guest to path: init, the kernel's
// modules in the order in which they are loaded, and the job.
func writeInitramfs(path, init string, k Kernel, job []byte) error {
	var a initramfs
	program, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	for _, dir := range []string{"dev", "modules"} {
		a.add(dir, modeDir, nil, [2]int{})
	}
	a.add("dev/console", modeChar, nil, [2]int{5, 1})
	a.add("init", modeExec, program, [2]int{})
	a.add("job", modeFile, job, [2]int{})
	for i, m := range k.Modules {
		code, err := os.ReadFile(m)
		if err != nil {
			return err
		}
		a.add(fmt.Sprintf("modules/%02d-%s", i, filepath.Base(m)), modeFile, code, [2]int{})
	}
	a.add("TRAILER!!!", 0, nil, [2]int{})
	return os.WriteFile(path, a.b.Bytes(), 0o600)
}
