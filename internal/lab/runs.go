package lab

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"numaopt/internal/launch"
	"numaopt/internal/runfile"
	"numaopt/internal/symbol"
	"numaopt/internal/topo"
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
	elf  string               // the file that the kernel maps: path, or a script's interpreter
	only []runfile.FuncOffset // the loops that open a window
}

// findProgram resolves the command's program as a shell would, and looks at what
// it is.
func findProgram(name string) (program, error) {
	p := program{}
	d, err := symbol.Describe(name)
	switch {
	case err == nil:
	case d.ELF != "" && bootable(d.ELF):
		p.deaf = err.Error()
	default:
		return p, inputError{err}
	}
	if hiddenInGuest(d.Path) {
		return p, inputf("%s: the guest has a %s of its own; copy the program elsewhere", d.Path, topDir(d.Path))
	}
	p.path, p.elf = d.Path, d.ELF
	return p, nil
}

// bootable reports whether the guest's kernel can run an ELF file, even where
// nothing can be preloaded into it: counting works for static programs, too.
func bootable(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return f.Machine == elf.EM_X86_64 && (f.Type == elf.ET_EXEC || f.Type == elf.ET_DYN) && f.Entry != 0
}

func topDir(path string) string { return "/" + strings.SplitN(path, "/", 3)[1] }

// newJob is what the guest shall do for opt. It stages the runs' files in g.dir.
func newJob(opt Options, g *guest) (*job, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if hiddenInGuest(cwd) {
		return nil, inputf("%s: the guest has a %s of its own; start the lab in another directory", cwd, topDir(cwd))
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
		return nil, inputf("%s; without that neither --plan nor --only works", p.deaf)
	}
	if len(opt.Only) > 0 {
		if p.only, err = launch.RegionsOf(opt.Command, os.Environ(), opt.Only, new(symbol.Table)); err != nil {
			return nil, inputf("--only: %w", err)
		}
	}
	if j.stdin, err = stageStdin(opt.Stdin, g.dir); err != nil {
		return nil, err
	}
	plain := []string{"default", "interleave"}
	if opt.Once {
		plain = plain[:1]
	}
	for _, name := range plain {
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
	r := guestRun{name: name, exe: p.path, args: opt.Command, env: quietEnv()}
	if p.deaf != "" {
		r.deaf = p.deaf
		return r, nil
	}
	r.summary = filepath.Join(g.dir, "summary-"+name)
	file := filepath.Join(g.dir, "run-"+name)
	if err := writeBindFile(file, r.summary, opt, p.only); err != nil {
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
	r := guestRun{name: "plan", exe: opt.Exe, env: quietEnv()}
	r.summary = filepath.Join(g.dir, "summary-plan")
	r.args = []string{opt.Exe, "apply", "--mark", "--summary", r.summary, "--bind", opt.Bind}
	for _, o := range opt.Only {
		r.args = append(r.args, "--only", o)
	}
	r.args = append(r.args, plan, "--", p.path)
	r.args = append(r.args, opt.Command[1:]...)
	return r, nil
}

// quietEnv is this process's environment, in which waiting threads of OpenMP
// runtimes sleep: 8 CPUs are emulated on 2, and spinning counts as accesses.
func quietEnv() []string {
	env, _ := runfile.Quiet(os.Environ())
	return env
}

// writeBindFile writes the runtime's file for a run that only binds threads.
func writeBindFile(path, summary string, opt Options, only []runfile.FuncOffset) error {
	bind := topo.Bind(opt.Bind)
	r := runfile.Run{Mode: runfile.Bind, System: runfile.Linux, Mark: true, Pinned: launch.Pinned(os.Environ()), Summary: summary, Only: only}
	if opt.Bind == BindNone {
		bind, r.Pinned = topo.BindCompact, "bind none"
	}
	order, err := opt.Topology.Order(bind)
	if err != nil {
		return inputError{err}
	}
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
