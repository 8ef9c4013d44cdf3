package lab

import (
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"numaopt/internal/runfile"
)

// SelfTests are runs whose remote share is known by construction, by name; the
// guest's init contains them. On n nodes, "all-on-node-0" and "interleaved" have
// 100 (n-1)/n per cent of remote DRAM accesses.
var SelfTests = []string{"all-on-node-0", "moved-to-users", "next-node", "interleaved"}

// program is the command as the lab finds it.
type program struct {
	path string
	// deaf says why the program cannot tell when it starts, and not be bound or
	// placed: it does not load libnumaopt.so. Empty for ordinary programs.
	deaf string
}

// findProgram resolves the command's program as a shell would, and looks at what
// it is.
func findProgram(name string) (program, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil
	}
	if err != nil {
		var e *exec.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return program{}, inputf("%s: %w", name, err)
	}
	if path, err = filepath.Abs(path); err != nil {
		return program{}, err
	}
	if hiddenInGuest(path) {
		return program{}, inputf("%s: the guest has a %s of its own; copy the program elsewhere", path, "/"+strings.SplitN(path, "/", 3)[1])
	}
	p := program{path: path}
	p.deaf, err = whyDeaf(path)
	return p, err
}

func whyDeaf(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", nil // a script, or what the guest's kernel makes of it
	}
	defer f.Close()
	if f.Machine != elf.EM_X86_64 {
		return "", inputf("%s: a program for %v; the lab's guest is x86-64", path, f.Machine)
	}
	if st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "setuid or setgid: the dynamic linker does not load libnumaopt.so into it", nil
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", nil
		}
	}
	return "statically linked: libnumaopt.so cannot be loaded into it", nil
}

// newJob is what the guest shall do for opt. It stages the runs' files in g.dir.
func newJob(opt Options, g *guest) (*job, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if hiddenInGuest(cwd) {
		return nil, inputf("%s: the guest has a %s of its own; start the lab in another directory", cwd, "/"+strings.SplitN(cwd, "/", 3)[1])
	}
	j := &job{nodes: g.nodes, cpus: g.cpus, cwd: cwd, dir: g.dir, stdin: "/dev/null"}
	if opt.SelfTest {
		for _, name := range SelfTests {
			j.runs = append(j.runs, guestRun{name: name, selfTest: name})
		}
		return j, nil
	}
	p, err := findProgram(opt.Command[0])
	if err != nil {
		return nil, err
	}
	if p.deaf != "" && (opt.Plan != "" || len(opt.Only) > 0) {
		return nil, inputf("%s is %s: neither a plan nor --only can be applied", p.path, p.deaf)
	}
	if j.stdin, err = stageStdin(opt.Stdin, g.dir); err != nil {
		return nil, err
	}
	for _, name := range []string{"default", "interleave"} {
		r, err := plainRun(name, p, opt, g)
		if err != nil {
			return nil, err
		}
		r.interleave = name == "interleave"
		j.runs = append(j.runs, r)
	}
	if opt.Plan != "" {
		r, err := planRun(p, opt, g)
		if err != nil {
			return nil, err
		}
		j.runs = append(j.runs, r)
	}
	j.runs[len(j.runs)-1].keep = true
	return j, nil
}

// plainRun is the program with its threads bound, and nothing placed.
func plainRun(name string, p program, opt Options, g *guest) (guestRun, error) {
	r := guestRun{name: name, exe: p.path, args: opt.Command, env: quietEnv(os.Environ())}
	if p.deaf != "" {
		r.markExec = true
		return r, nil
	}
	r.summary = filepath.Join(g.dir, "summary-"+name)
	file := filepath.Join(g.dir, "run-"+name)
	if err := writeBindFile(file, r.summary, opt); err != nil {
		return guestRun{}, err
	}
	var err error
	r.env, err = runfile.Env(r.env, filepath.Join(opt.Lib, runfile.Runtime), file)
	return r, err
}

// planRun is the program under numaopt apply, as a user would run it.
func planRun(p program, opt Options, g *guest) (guestRun, error) {
	plan, err := filepath.Abs(opt.Plan)
	if err != nil {
		return guestRun{}, err
	}
	r := guestRun{name: "plan", exe: opt.Exe, env: quietEnv(os.Environ())}
	r.summary = filepath.Join(g.dir, "summary-plan")
	r.args = []string{opt.Exe, "apply", "--mark", "--summary", r.summary, "--bind", string(opt.Bind)}
	for _, o := range opt.Only {
		r.args = append(r.args, "--only", o)
	}
	r.args = append(r.args, plan, "--", p.path)
	r.args = append(r.args, opt.Command[1:]...)
	return r, nil
}

// quietEnv makes waiting threads of OpenMP runtimes sleep, where the user has not
// said otherwise: 8 CPUs are emulated on 2, and spinning counts as accesses.
func quietEnv(env []string) []string {
	env = append([]string{}, env...)
	for _, d := range QuietOpenMP {
		key, _, _ := strings.Cut(d, "=")
		if _, set := os.LookupEnv(key); !set {
			env = append(env, d)
		}
	}
	return env
}

// QuietOpenMP is what quietEnv adds.
var QuietOpenMP = []string{"OMP_WAIT_POLICY=passive", "GOMP_SPINCOUNT=0"}

// writeBindFile writes the runtime's file for a run that only binds threads.
func writeBindFile(path, summary string, opt Options) error {
	order, err := opt.Topology.Order(opt.Bind)
	if err != nil {
		return inputError{err}
	}
	r := runfile.Run{Mode: runfile.Bind, System: runfile.Linux, Mark: true, Pinned: strings.Join(pinned(), ", "), Summary: summary}
	for _, c := range order {
		r.CPUs = append(r.CPUs, runfile.CPU{ID: c.ID, Node: int(c.Node)})
	}
	for _, n := range opt.Topology.Nodes {
		r.Nodes = append(r.Nodes, n.OS)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(runfile.Write(f, r), f.Close())
}

// pinned is what of the environment binds threads already.
func pinned() []string {
	var p []string
	for _, key := range []string{"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"} {
		if v := os.Getenv(key); v != "" && !strings.EqualFold(v, "false") {
			p = append(p, key+"="+v)
		}
	}
	return p
}
