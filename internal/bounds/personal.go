package bounds

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"numaopt/internal/ident"
	"numaopt/internal/symbol"
)

// staticInit is how the functions that give libomp's static loops their bounds
// begin.
const staticInit = "__kmpc_for_static_init_"

// atRunTime is how those begin that give libgomp's loops of schedule(runtime), which
// may be static then, theirs.
const atRunTime = "GOMP_loop_"

// farthest is how many functions of a region are read at most.
const farthest = 1000

// identities are the functions whose result depends on which thread calls.
var identities = map[string]string{
	threadNum:                      whyNumber,
	threadNum + "_":                whyNumber, // of Fortran
	"omp_get_ancestor_thread_num":  whyNumber,
	"omp_get_place_num":            whyNumber,
	"__kmpc_threadprivate_cached":  whyOwnData,
	"__kmpc_threadprivate":         whyOwnData,
	"__tls_get_addr":               whyOwnData,
	"__emutls_get_address":         whyOwnData,
	"pthread_getspecific":          whyOwnData,
	"pthread_setspecific":          whyOwnData,
	"tss_get":                      whyOwnData,
	"tss_set":                      whyOwnData,
	"fesetround":                   whyOwnData,
	"fegetround":                   whyOwnData,
	"fesetenv":                     whyOwnData,
	"fegetenv":                     whyOwnData,
	"feupdateenv":                  whyOwnData,
	"feholdexcept":                 whyOwnData,
	"feclearexcept":                whyOwnData,
	"feraiseexcept":                whyOwnData,
	"fetestexcept":                 whyOwnData,
	"uselocale":                    whyOwnData,
	"omp_get_partition_num_places": whyIdentity,
	"omp_get_partition_place_nums": whyIdentity,
	"omp_display_affinity":         whyIdentity,
	"omp_capture_affinity":         whyIdentity,
	"kmp_get_affinity":             whyIdentity,
	"pthread_self":                 whyIdentity,
	"pthread_getaffinity_np":       whyIdentity,
	"pthread_getname_np":           whyIdentity,
	"pthread_getattr_np":           whyIdentity,
	"pthread_getcpuclockid":        whyIdentity,
	"pthread_setaffinity_np":       whyIdentity,
	"thrd_current":                 whyIdentity,
	"gettid":                       whyIdentity,
	"getcpu":                       whyIdentity,
	"sched_getcpu":                 whyIdentity,
	"sched_getaffinity":            whyIdentity,
	"sched_setaffinity":            whyIdentity,
	"prctl":                        whyIdentity,
	"syscall":                      whyIdentity,
}

const (
	whyNumber   = "the program asks for the thread's number itself"
	whyOwnData  = "the program uses data that each thread has its own copy of (threadprivate, thread_local)"
	whyIdentity = "the program asks which thread it is in"
)

// body is what a function does that depends on the thread it runs in.
type body struct {
	err   error // it cannot be read
	owns  []use // of data of the thread's own, and of its identity
	asks  []use // calls for the thread's number
	calls []routine
}

// routine is a function of a file.
type routine struct {
	in *Binary
	symbol.Function
}

type use struct {
	at, next uint64
	why      string // with the callee, without the place
}

// judgeStatic decides on a loop whose bounds call fetches from the runtime: that
// gives out the chunks, so that the thread number needs not be followed, but what
// else the region does must not depend on which thread does which chunk.
func (b *Binary) judgeStatic(fn symbol.Function, call step, gcc bool) Verdict {
	v := Verdict{Reason: b.personal(fn, gcc)}
	v.Permutable = v.Reason == ""
	if l, ok := b.line(call.pc); ok {
		v.Loops = []ident.Location{l}
	}
	return v
}

// personal says why it matters which thread runs the region that fn is, or that
// calls fn; empty if it does not. With gcc, calls for the thread number that reach
// loop bounds alone do not count.
func (b *Binary) personal(fn symbol.Function, gcc bool) string {
	about := routine{b, fn}
	why, _ := about.personal(about, gcc)
	if why != "" || symbol.IsLoop(fn.Symbol) {
		return why
	}
	for _, in := range b.all() {
		if in.startsRegions() && len(in.module.OutlinedLoops()) == 0 {
			return fmt.Sprintf("%s is stripped, and a parallel region of it may call %s", filepath.Base(in.module.Path()), fn.Symbol)
		}
	}
	found := false
	for _, root := range b.regions() { // whose loop this may be
		why, calls := root.personal(about, gcc)
		if calls && why != "" {
			return why
		}
		found = found || calls
	}
	if !found {
		return fmt.Sprintf("no parallel region was found that calls %s, so nobody can say what the threads that run its loop have of their own", fn.Symbol)
	}
	return ""
}

// regions returns the parallel regions of this file and of those that are loaded with it.
func (b *Binary) regions() (list []routine) {
	for _, in := range b.all() {
		for _, l := range in.module.OutlinedLoops() {
			if root, ok := in.module.FunctionAt(l.Lo); ok {
				list = append(list, routine{in, root})
			}
		}
	}
	return list
}

// startsRegions reports whether the file has the OpenMP runtime run parallel regions.
func (b *Binary) startsRegions() bool {
	for name := range b.imports.from {
		if strings.HasPrefix(name, "GOMP_parallel") || strings.HasPrefix(name, "__kmpc_fork_") {
			return true
		}
	}
	return false
}

// personal looks at root and what it calls, in its file and in those that are loaded
// with it; calls reports whether the function about is among that.
func (root routine) personal(about routine, gcc bool) (why string, calls bool) {
	type at struct {
		in *Binary
		lo uint64
	}
	seen := map[at]bool{{root.in, root.Lo}: true}
	for work := []routine{root}; len(work) > 0; work = work[1:] {
		fn := work[0]
		calls = calls || fn.in == about.in && fn.Lo == about.Lo
		body := fn.in.body(fn.Function)
		if why == "" {
			why = fn.in.objection(body, gcc)
		}
		for _, c := range body.calls {
			if seen[at{c.in, c.Lo}] {
				continue
			}
			if seen[at{c.in, c.Lo}] = true; len(seen) > farthest {
				if why == "" {
					why = fmt.Sprintf("its region calls more than %d functions, too many to read whether one of them depends on the thread", farthest)
				}
				return why, true
			}
			work = append(work, c)
		}
	}
	return why, calls
}

// objection is what is against a function, with the place.
func (b *Binary) objection(f *body, gcc bool) string {
	if f.err != nil {
		return f.err.Error()
	}
	for _, u := range f.owns {
		return u.why + b.place(u.at)
	}
	for _, u := range f.asks {
		if !gcc || !b.followed(u.next) {
			return u.why + b.place(u.at)
		}
	}
	return ""
}

// followed reports whether the call for the thread number that returns to site
// reaches loop bounds alone.
func (b *Binary) followed(site uint64) bool {
	b.mu.Lock()
	known, ok := b.bounds[site]
	b.mu.Unlock()
	if !ok {
		known = b.judgeCall(site).Permutable
		b.mu.Lock()
		b.bounds[site] = known
		b.mu.Unlock()
	}
	return known
}

// body reads a function, once.
func (b *Binary) body(fn symbol.Function) *body {
	b.mu.Lock()
	f := b.bodies[fn.Lo]
	b.mu.Unlock()
	if f == nil {
		f = b.readBody(fn)
		b.mu.Lock()
		b.bodies[fn.Lo] = f
		b.mu.Unlock()
	}
	return f
}

func (b *Binary) readBody(fn symbol.Function) *body {
	f := new(body)
	code, err := b.decode(fn)
	if err != nil {
		f.err = err
		return f
	}
	takes := slices.ContainsFunc(code.steps, func(s step) bool { return s.callee == "" && !isRel(s.Args[0]) && len(b.called(&s)) > 0 })
	for i := range code.steps {
		s := &code.steps[i]
		name := cmp.Or(s.callee, b.loaded(s))
		if why := identities[name]; why != "" {
			u := use{s.pc, s.next, why + " (" + strings.TrimSuffix(name, "_") + ")"}
			if s.callee == threadNum && s.Op == x86asm.CALL {
				f.asks = append(f.asks, u)
			} else {
				f.owns = append(f.owns, u)
			}
			continue
		}
		if ownData(s) {
			f.owns = append(f.owns, use{s.pc, s.next, whyOwnData})
		}
		if s.Op == x86asm.RDTSCP || s.Op == x86asm.CPUID || s.Op == x86asm.SYSCALL {
			f.owns = append(f.owns, use{s.pc, s.next, whyIdentity + " (" + strings.ToLower(s.Op.String()) + ")"})
		}
		if why := b.unseen(code, i, takes); why != "" {
			f.owns = append(f.owns, use{s.pc, s.next, why})
		}
		f.calls = append(f.calls, b.called(s)...)
	}
	return f
}

// loaded returns the function whose address an instruction takes from the global
// offset table; -fno-plt calls it by a register then.
func (b *Binary) loaded(s *step) string {
	for _, a := range s.Args {
		if m, ok := a.(x86asm.Mem); ok && m.Base == x86asm.RIP {
			return b.got[s.next+uint64(int64(int32(m.Disp)))]
		}
	}
	return ""
}

// ownData reports whether an instruction reads or writes what %fs points to, other
// than the value that guards the stack.
func ownData(s *step) bool {
	const guard = 0x28
	switch s.Op {
	case x86asm.RDFSBASE, x86asm.RDGSBASE:
		return true
	}
	return s.Op != x86asm.NOP && slices.ContainsFunc(s.Args[:], func(a x86asm.Arg) bool {
		m, ok := a.(x86asm.Mem)
		return ok && m.Segment == x86asm.FS && (m.Base != 0 || m.Index != 0 || m.Disp != guard)
	})
}

// called returns the functions that an instruction calls, jumps to, or takes the
// address of, which somebody may call then; through the linkage table all those of the
// name, in this file and in those that are loaded with it, for which of them it is
// depends on the order of loading. The OpenMP runtime's own, where it is linked
// statically, are not the program's.
func (b *Binary) called(s *step) []routine {
	switch {
	case b.ofRuntime(s.callee):
		return nil
	case s.target != 0:
		return nil // within the function
	}
	if a, ok := s.Args[0].(x86asm.Rel); ok {
		if fn, ok := b.module.FunctionAt(s.next + uint64(int64(a))); ok {
			return []routine{{b, fn}}
		}
	}
	if name := cmp.Or(s.callee, b.loaded(s)); name != "" { // through the linkage table
		if b.ofRuntime(name) {
			return nil
		}
		return append(b.named(name), b.elsewhere(name)...)
	}
	address := uint64(0)
	switch a := s.Args[1].(type) {
	case x86asm.Mem:
		if s.Op == x86asm.LEA && a.Base == x86asm.RIP {
			address = s.next + uint64(int64(int32(a.Disp)))
		}
	case x86asm.Imm:
		if s.Op == x86asm.MOV {
			address = uint64(a)
		}
	}
	if fn, ok := b.module.FunctionAt(address); ok && address == fn.Lo && !b.ofRuntime(fn.Symbol) {
		return []routine{{b, fn}}
	}
	return nil
}

// named returns the functions of this file of that name.
func (b *Binary) named(name string) (list []routine) {
	for _, fn := range b.module.FunctionsNamed(name) {
		list = append(list, routine{b, fn})
	}
	return list
}

// elsewhere returns the functions of that name that the other files offer. One without
// a version, earlier in the order of loading, takes the place of a system library's too.
func (b *Binary) elsewhere(name string) (list []routine) {
	for _, o := range b.offering(name) {
		if o != b {
			list = append(list, o.named(name)...)
		}
	}
	return list
}

// offering returns the files with a function of that name which a call through the
// linkage table may reach. Whose malloc it is does not matter.
func (b *Binary) offering(name string) (list []*Binary) {
	if !b.shared[name] || allocates(name) && isPlain(b.imports.from[name]) {
		return nil
	}
	for _, o := range b.all() {
		if o.offers[name] {
			list = append(list, o)
		}
	}
	return list
}

// all returns this file and those that are loaded with it, each once.
func (b *Binary) all() []*Binary {
	all := []*Binary{b}
	for _, o := range b.others {
		if o != b {
			all = append(all, o)
		}
	}
	return all
}

// ofRuntime reports whether a function is the OpenMP runtime's or flang's. One that is
// in a file of the program's is its own, whatever its name, unless the runtime is in it
// too.
func (b *Binary) ofRuntime(name string) bool {
	if !runtimeFunction(name) {
		return b.fortran && strings.HasPrefix(name, "_FortranA")
	}
	return !slices.ContainsFunc(append(b.named(name), b.elsewhere(name)...), func(r routine) bool {
		return len(r.in.module.FunctionsNamed(numThreads)) == 0
	})
}

func isRel(a x86asm.Arg) bool { _, ok := a.(x86asm.Rel); return ok }

func runtimeFunction(name string) bool {
	for _, prefix := range []string{"__kmp", "kmp_", "omp_", "GOMP_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
