package symbol

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Program is an executable file that the runtime can be preloaded into.
type Program struct {
	// Path is absolute: what is executed, an ELF file or a script.
	Path string
	// ELF is the file that the kernel maps: Path, or a script's interpreter.
	ELF string
	// Script is true where Path is a script.
	Script bool
}

// interpreterDepth is how many scripts the kernel follows in a row
// (BINPRM_BUF: exec_binprm in fs/exec.c).
const interpreterDepth = 5

// Describe looks up a program as execvp does and says whether the runtime can be
// preloaded into it. An error says why not and what helps.
func Describe(name string) (Program, error) {
	path, err := find(name)
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: path, ELF: path}
	for depth := 0; ; depth++ {
		interpreter, err := interpreterOf(p.ELF)
		if err != nil {
			return Program{}, err
		}
		if interpreter == "" {
			break
		}
		if depth == interpreterDepth {
			return Program{}, fmt.Errorf("%s: its interpreters are scripts themselves, more than %d deep", path, interpreterDepth)
		}
		p.Script = true
		if p.ELF, err = find(interpreter); err != nil {
			return Program{}, fmt.Errorf("%s: interpreter: %w", path, err)
		}
	}
	return p, preloadable(p.ELF)
}

// find returns the absolute path of an executable.
func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		if st, e := os.Stat(name); e == nil && !st.IsDir() {
			return "", fmt.Errorf("%s: not in $PATH: write ./%s for the file in this directory", name, name)
		}
		return "", fmt.Errorf("%s: not in $PATH", name)
	case errors.Is(err, fs.ErrPermission):
		if st, e := os.Stat(name); e == nil && st.IsDir() {
			return "", fmt.Errorf("%s: is a directory", name)
		}
		return "", fmt.Errorf("%s: not executable: chmod +x %s", name, name)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: no such file", name)
	default:
		return "", fmt.Errorf("%s: %w", name, errors.Unwrap(err))
	}
	return filepath.Abs(path)
}

// interpreterOf returns the interpreter that a script names on its first line,
// empty for a file that is no script.
func interpreterOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: numaopt must be able to read the program", err)
	}
	defer f.Close()
	first, _ := bufio.NewReaderSize(f, 256).Peek(256)
	text, script := strings.CutPrefix(string(first), "#!")
	if !script {
		return "", nil
	}
	text, _, _ = strings.Cut(text, "\n")
	words := strings.Fields(text)
	if len(words) == 0 {
		return "", fmt.Errorf("%s: its first line names no interpreter after #!", path)
	}
	return words[0], nil
}

// preloadable reports why the runtime cannot be preloaded into an ELF file.
func preloadable(path string) (err error) {
	defer guard(&err, path)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("%s: neither an ELF program nor a script with a #! line: %v", path, err)
	}
	switch {
	case e.Machine != elf.EM_X86_64 || e.Class != elf.ELFCLASS64:
		return fmt.Errorf("%s: built for %s, %s: numaopt runs 64-bit x86-64 programs: build it for that",
			path, strings.TrimPrefix(e.Machine.String(), "EM_"), strings.TrimPrefix(e.Class.String(), "ELFCLASS")+" bit")
	case e.Type != elf.ET_EXEC && e.Type != elf.ET_DYN:
		return fmt.Errorf("%s: an ELF file of type %s, not a program: link it first", path, e.Type)
	}
	interpreter := interpreterIn(e)
	switch {
	case interpreter == "" && e.Type == elf.ET_DYN && e.Entry == 0:
		return fmt.Errorf("%s: a shared library, not a program", path)
	case interpreter == "":
		return fmt.Errorf("%s: statically linked, so that nothing can be preloaded into it: link it without -static", path)
	case strings.Contains(filepath.Base(interpreter), "musl"):
		return fmt.Errorf("%s: linked against musl, and numaopt's runtime against glibc: link it against glibc", path)
	}
	if _, err := os.Stat(interpreter); err != nil {
		return fmt.Errorf("%s: its dynamic linker %s is not installed", path, interpreter)
	}
	return privileged(path)
}

// privileged reports whether a program gains privileges when it is started, so
// that the dynamic linker ignores LD_PRELOAD.
func privileged(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	// For the owner the bits change nothing, but only until somebody else runs it.
	special := st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0
	capable := false
	if n, err := syscall.Getxattr(path, "security.capability", nil); err == nil && n > 0 && os.Getuid() != 0 {
		capable = true
	}
	if special || capable {
		return fmt.Errorf("%s: is setuid, setgid or has file capabilities, so that the dynamic linker ignores LD_PRELOAD: run a copy, which has none of them: cp %s /tmp", path, path)
	}
	return nil
}

// Interpreter returns the path of the dynamic linker that an ELF file asks for,
// empty where it asks for none or cannot be read.
func Interpreter(path string) (interpreter string) {
	var err error
	defer guard(&err, path)
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	return interpreterIn(f)
}

// interpreterIn reads PT_INTERP.
func interpreterIn(e *elf.File) string {
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err == nil {
				return strings.TrimRight(string(text), "\x00")
			}
		}
	}
	return ""
}
