//go:build !linux

package doctor

import "syscall"

// MemoryPolicy is Linux's.
func (Machine) MemoryPolicy() error { return syscall.ENOSYS }
