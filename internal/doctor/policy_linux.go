package doctor

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mpolPreferred is MPOL_PREFERRED of linux/mempolicy.h; with no node it means the
// local one.
const mpolPreferred = 1

// PerfEventOpen is the kernel's.
func (Machine) PerfEventOpen(attr *unix.PerfEventAttr, pid, cpu, group, flags int) (fd int, err error) {
	return unix.PerfEventOpen(attr, pid, cpu, group, flags)
}

// MemoryPolicy asks the kernel to prefer the local node for a page of its own, and
// where that page is. It is the least that placing needs.
func (Machine) MemoryPolicy() error {
	size := os.Getpagesize()
	page, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	defer syscall.Munmap(page)
	addr := uintptr(unsafe.Pointer(&page[0]))
	if _, _, errno := syscall.Syscall6(unix.SYS_MBIND, addr, uintptr(size), mpolPreferred, 0, 0, 0); errno != 0 {
		return fmt.Errorf("mbind: %w", errno)
	}
	page[0] = 1
	pages, status := [1]uintptr{addr}, [1]int32{}
	_, _, errno := syscall.Syscall6(unix.SYS_MOVE_PAGES, 0, 1, uintptr(unsafe.Pointer(&pages)), 0, uintptr(unsafe.Pointer(&status)), 0)
	if errno != 0 {
		return fmt.Errorf("move_pages: %w", errno)
	}
	return nil
}
