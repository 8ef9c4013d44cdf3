package lab

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// share serves the host's files to the guest, read-only, by NFS version 3
// (RFC 1813) over the Unix sockets that QEMU forwards the guest's connections to.
// It reads with the rights of the user who runs numaopt, and nobody but that user
// can reach it. The guest thereby sees the program, its inputs, its libraries and
// all else at their own paths, without anything being copied.
//
// A handle names a path, not a file: a file that is replaced during the run is
// the new one from then on.
type share struct {
	rootDev uint64

	mu    sync.Mutex
	paths []string          // by handle
	index map[string]uint64 // path to handle
	lists map[uint64][]string
	open  map[uint64]*os.File
	order []uint64 // handles of open, oldest first
}

const maxOpen = 64

func newShare() (*share, error) {
	st, err := os.Lstat("/")
	if err != nil {
		return nil, err
	}
	return &share{
		rootDev: st.Sys().(*syscall.Stat_t).Dev,
		paths:   []string{"/"},
		index:   map[string]uint64{"/": 0},
		lists:   map[uint64][]string{},
		open:    map[uint64]*os.File{},
	}, nil
}

// close closes the files that the guest read.
func (s *share) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.open {
		f.Close()
	}
	s.open = nil
}

// Numbers of RFC 5531 and RFC 1813.
const (
	progNFS   = 100003
	progMount = 100005
	progACL   = 100227 // Solaris's NFSACL, which Linux speaks beside NFS

	rpcSuccess         = 0
	rpcProgUnavailable = 1
	rpcProcUnavailable = 3

	nfsNoEnt   = 2
	nfsIO      = 5
	nfsAcces   = 13
	nfsNotDir  = 20
	nfsROFS    = 30
	nfsInval   = 22
	nfsStale   = 70
	nfsNotSupp = 10004

	accessRead   = 0x01
	accessLookup = 0x02
	accessWrite  = 0x04 | 0x08 | 0x10
	accessExec   = 0x20
)

const (
	maxTransfer = 1 << 18
	maxRequest  = 1 << 20
)

// errCall is something from the guest that is no call of RPC. There is no going on
// after it: the guest would wait for its answer for ever.
var errCall = errors.New("NFS server")

// record reads one record (RFC 5531, section 11), which may come in fragments.
func record(in io.Reader) ([]byte, error) {
	var call []byte
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil, err
		}
		mark := binary.BigEndian.Uint32(head[:])
		n := int(mark &^ (1 << 31))
		if n > maxRequest-len(call) {
			return nil, fmt.Errorf("%w: a record of more than %d bytes", errCall, maxRequest)
		}
		call = append(call, make([]byte, n)...)
		if _, err := io.ReadFull(in, call[len(call)-n:]); err != nil {
			return nil, err
		}
		if mark>>31 == 1 {
			return call, nil
		}
	}
}

// serve answers the requests of one connection until it ends.
func (s *share) serve(conn net.Conn) error {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		call, err := record(in)
		if err != nil {
			return err
		}
		reply := s.answer(call)
		if reply == nil {
			return fmt.Errorf("%w: a record of %d bytes that is no call", errCall, len(call))
		}
		binary.BigEndian.PutUint32(reply, uint32(len(reply)-4)|1<<31)
		if _, err := conn.Write(reply); err != nil {
			return err
		}
	}
}

// answer is the reply to one call, with four bytes in front for the record's
// head; nil where call is none.
func (s *share) answer(call []byte) []byte {
	r := &xdrReader{rest: call}
	xid, kind := r.uint32(), r.uint32()
	r.uint32() // RPC version
	prog, _, proc := r.uint32(), r.uint32(), r.uint32()
	for range 2 { // credentials and verifier: the socket's permissions stand for them
		r.uint32()
		r.opaque()
	}
	if r.err != nil || kind != 0 {
		return nil
	}
	w := &xdrWriter{b: make([]byte, 4, 512)}
	for _, v := range []uint32{xid, 1, 0, 0, 0} {
		w.uint32(v)
	}
	mark := len(w.b)
	w.uint32(rpcSuccess)
	known := false
	switch prog {
	case progMount:
		known = s.mount(proc, w)
	case progNFS:
		known = s.nfs(proc, r, w)
	case progACL:
		known = s.acl(proc, r, w)
	default:
		binary.BigEndian.PutUint32(w.b[mark:], rpcProgUnavailable)
		return w.b
	}
	if !known {
		binary.BigEndian.PutUint32(w.b[mark:], rpcProcUnavailable)
	}
	return w.b
}

func (s *share) mount(proc uint32, w *xdrWriter) bool {
	switch proc {
	case 0, 3: // NULL, UMNT
	case 1: // MNT
		w.uint32(0)
		w.opaque(handleBytes(0))
		w.uint32(1)
		w.uint32(1) // AUTH_SYS
	default:
		return false
	}
	return true
}

// acl says of every file that it has no access control list: overlayfs takes a
// server without NFSACL for an error, for all users but root.
func (s *share) acl(proc uint32, r *xdrReader, w *xdrWriter) bool {
	switch proc {
	case 0:
	case 1: // GETACL
		_, path, err := s.take(r)
		if err != nil {
			w.uint32(nfsStale)
			w.uint32(0)
			return true
		}
		w.uint32(0)
		s.postAttr(path, w)
		w.uint32(r.uint32()) // what was asked for, in four empty lists
		for range 4 {
			w.uint32(0)
		}
	default:
		return false
	}
	return true
}

func handleBytes(h uint64) []byte { return binary.BigEndian.AppendUint64(nil, h) }

// nfs carries out one procedure; false where there is none of that number.
func (s *share) nfs(proc uint32, r *xdrReader, w *xdrWriter) bool {
	if proc == 0 {
		return true
	}
	h, path, err := s.take(r)
	if err != nil {
		w.uint32(nfsStale)
		if proc != 1 {
			w.uint32(0)
		}
		return true
	}
	switch proc {
	case 1:
		s.getattr(path, w)
	case 3:
		s.lookup(path, string(r.opaque()), w)
	case 4:
		s.access(path, r.uint32(), w)
	case 5:
		s.readlink(path, w)
	case 6:
		s.read(h, path, int64(r.uint64()), r.uint32(), w)
	case 16:
		cookie := r.uint64()
		r.uint64()
		s.readdir(h, path, cookie, r.uint32(), 0, w)
	case 17:
		cookie := r.uint64()
		r.uint64()
		dir := r.uint32()
		s.readdir(h, path, cookie, dir, r.uint32(), w)
	case 18:
		s.fsstat(path, w)
	case 19:
		s.fsinfo(path, w)
	case 20:
		s.pathconf(path, w)
	case 2, 7, 8, 9, 10, 11, 12, 13, 14, 15, 21: // those that change something
		w.uint32(nfsROFS)
		w.uint32(0)
		w.uint32(0)
	default:
		return false
	}
	return true
}

func (s *share) take(r *xdrReader) (h uint64, path string, err error) {
	b := r.opaque()
	if len(b) != 8 {
		return 0, "", errXDR
	}
	h = binary.BigEndian.Uint64(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h >= uint64(len(s.paths)) {
		return 0, "", errXDR
	}
	return h, s.paths[h], nil
}

func (s *share) handle(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.index[path]
	if !ok {
		h = uint64(len(s.paths))
		s.paths = append(s.paths, path)
		s.index[path] = h
	}
	return handleBytes(h)
}

func nfsStatus(err error) uint32 {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nfsNoEnt
	case errors.Is(err, os.ErrPermission):
		return nfsAcces
	case errors.Is(err, syscall.ENOTDIR):
		return nfsNotDir
	case errors.Is(err, syscall.EINVAL):
		return nfsInval
	}
	return nfsIO
}

// attr appends an fattr3. All files are in one file system as the guest sees it,
// with inode numbers that stay apart.
func (s *share) attr(st *syscall.Stat_t, w *xdrWriter) {
	types := map[uint32]uint32{
		syscall.S_IFREG: 1, syscall.S_IFDIR: 2, syscall.S_IFBLK: 3, syscall.S_IFCHR: 4,
		syscall.S_IFLNK: 5, syscall.S_IFSOCK: 6, syscall.S_IFIFO: 7,
	}
	w.uint32(types[st.Mode&syscall.S_IFMT])
	w.uint32(st.Mode & 0o7777)
	w.uint32(uint32(st.Nlink))
	w.uint32(st.Uid)
	w.uint32(st.Gid)
	w.uint64(uint64(st.Size))
	w.uint64(uint64(st.Blocks) * 512)
	w.uint32(uint32(st.Rdev >> 8))
	w.uint32(uint32(st.Rdev & 0xff))
	w.uint64(1)
	w.uint64(s.fileid(st))
	for _, t := range []syscall.Timespec{st.Atim, st.Mtim, st.Ctim} {
		w.uint32(uint32(t.Sec))
		w.uint32(uint32(t.Nsec))
	}
}

func (s *share) fileid(st *syscall.Stat_t) uint64 {
	if st.Dev == s.rootDev {
		return st.Ino
	}
	sum := fnv.New64a()
	binary.Write(sum, binary.LittleEndian, [2]uint64{st.Dev, st.Ino})
	return sum.Sum64()
}

// postAttr appends a post_op_attr.
func (s *share) postAttr(path string, w *xdrWriter) {
	var st syscall.Stat_t
	if syscall.Lstat(path, &st) != nil {
		w.uint32(0)
		return
	}
	w.uint32(1)
	s.attr(&st, w)
}

func (s *share) getattr(path string, w *xdrWriter) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		w.uint32(nfsStatus(err))
		return
	}
	w.uint32(0)
	s.attr(&st, w)
}

func (s *share) lookup(dir, name string, w *xdrWriter) {
	path := filepath.Join(dir, name)
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		w.uint32(nfsStatus(err))
		s.postAttr(dir, w)
		return
	}
	w.uint32(0)
	w.opaque(s.handle(path))
	w.uint32(1)
	s.attr(&st, w)
	s.postAttr(dir, w)
}

func (s *share) access(path string, want uint32, w *xdrWriter) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		w.uint32(nfsStatus(err))
		w.uint32(0)
		return
	}
	granted := uint32(accessRead | accessLookup | accessWrite | accessExec)
	if st.Mode&syscall.S_IFMT != syscall.S_IFLNK {
		for mode, bits := range map[uint32]uint32{4: accessRead, 2: accessWrite, 1: accessLookup | accessExec} {
			if syscall.Access(path, mode) != nil {
				granted &^= bits
			}
		}
	}
	w.uint32(0)
	w.uint32(1)
	s.attr(&st, w)
	w.uint32(want & granted)
}

func (s *share) readlink(path string, w *xdrWriter) {
	target, err := os.Readlink(path)
	if err != nil {
		w.uint32(nfsStatus(err))
		s.postAttr(path, w)
		return
	}
	w.uint32(0)
	s.postAttr(path, w)
	w.string(target)
}

func (s *share) read(h uint64, path string, offset int64, count uint32, w *xdrWriter) {
	buf := make([]byte, min(count, maxTransfer))
	f, err := s.file(h, path)
	n := 0
	if err == nil {
		n, err = f.ReadAt(buf, offset)
	}
	if err != nil && err != io.EOF {
		w.uint32(nfsStatus(err))
		s.postAttr(path, w)
		return
	}
	w.uint32(0)
	s.postAttr(path, w)
	w.uint32(uint32(n))
	w.bool(err == io.EOF)
	w.opaque(buf[:n])
}

// file is the open file of a handle, as long as the path leads to the same one.
// Only regular files are opened: a pipe or a device would block or act.
func (s *share) file(h uint64, path string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, syscall.EINVAL
	}
	if f := s.open[h]; f != nil {
		if now, err := f.Stat(); err == nil && os.SameFile(now, st) {
			return f, nil
		}
		s.forget(h)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if s.open == nil { // closed meanwhile
		f.Close()
		return nil, os.ErrClosed
	}
	if len(s.order) >= maxOpen {
		s.forget(s.order[0])
	}
	s.open[h] = f
	s.order = append(s.order, h)
	return f, nil
}

func (s *share) forget(h uint64) {
	if f := s.open[h]; f != nil {
		f.Close()
	}
	delete(s.open, h)
	for i, o := range s.order {
		if o == h {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
}

// list is the names in a directory, "." and ".." first. The first page of a
// listing reads them, the next ones continue in the same list.
func (s *share) list(h uint64, path string, cookie uint64) ([]string, error) {
	s.mu.Lock()
	names, ok := s.lists[h]
	s.mu.Unlock()
	if ok && cookie > 0 {
		return names, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil && len(entries) == 0 {
		return nil, err
	}
	names = []string{".", ".."}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	s.mu.Lock()
	s.lists[h] = names
	s.mu.Unlock()
	return names, nil
}

// readdir answers READDIR, and READDIRPLUS where plus > 0: the most bytes of
// its reply.
func (s *share) readdir(h uint64, path string, cookie uint64, bytes, plus uint32, w *xdrWriter) {
	names, err := s.list(h, path, cookie)
	if err != nil {
		w.uint32(nfsStatus(err))
		s.postAttr(path, w)
		return
	}
	w.uint32(0)
	s.postAttr(path, w)
	w.uint64(0)
	limit := len(w.b) + int(min(max(bytes, plus), maxTransfer)) - 512
	done := true
	for i := cookie; i < uint64(len(names)); i++ {
		if len(w.b)+len(names[i])+160 > limit {
			done = false
			break
		}
		s.entry(path, names[i], i+1, plus > 0, w)
	}
	w.uint32(0)
	w.bool(done)
}

func (s *share) entry(dir, name string, cookie uint64, plus bool, w *xdrWriter) {
	path := filepath.Join(dir, name)
	var st syscall.Stat_t
	err := syscall.Lstat(path, &st)
	w.uint32(1)
	w.uint64(max(s.fileid(&st), 1))
	w.string(name)
	w.uint64(cookie)
	if !plus {
		return
	}
	if err != nil || name == "." || name == ".." {
		w.uint32(0)
		w.uint32(0)
		return
	}
	w.uint32(1)
	s.attr(&st, w)
	w.uint32(1)
	w.opaque(s.handle(path))
}

func (s *share) fsstat(path string, w *xdrWriter) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		w.uint32(nfsStatus(err))
		s.postAttr(path, w)
		return
	}
	w.uint32(0)
	s.postAttr(path, w)
	size := uint64(st.Bsize)
	for _, v := range []uint64{st.Blocks * size, st.Bfree * size, st.Bavail * size, st.Files, st.Ffree, st.Ffree} {
		w.uint64(v)
	}
	w.uint32(0)
}

func (s *share) fsinfo(path string, w *xdrWriter) {
	w.uint32(0)
	s.postAttr(path, w)
	for _, v := range []uint32{maxTransfer, maxTransfer, 4096, maxTransfer, maxTransfer, 4096, 1 << 16} {
		w.uint32(v)
	}
	w.uint64(1<<63 - 1)
	w.uint32(0)
	w.uint32(1)
	w.uint32(0x1b) // links, symbolic links, homogeneous, times
}

func (s *share) pathconf(path string, w *xdrWriter) {
	w.uint32(0)
	s.postAttr(path, w)
	w.uint32(32000)
	w.uint32(255)
	for _, v := range []bool{true, true, false, true} {
		w.bool(v)
	}
}
