package execution

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/provider"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
)

// program describes how to start a script or another program for a skill or
// project.
type program struct {
	plan   *script.Plan
	script string   // path of the skill script; "" for other programs
	args   []string // arguments of the script
	argv   []string // command line, if it is not that of the script
	pkg    *packageCommand
	files  map[string][]byte // additional files in [provider.Dir]

	packages  *packages.Packages // installed packages; nil if there are none
	installed *Package           // installed package that pkg refers to
}

// planner determines how to start scripts and other programs.
type planner struct {
	owner    owner
	skill    *openedSkill // nil for a project
	host     script.Host
	runsWASM bool
}

// planScript returns the program that runs a skill script.
func (p *planner) planScript(file string, args []string) (*program, error) {
	plan, err := script.Resolve(p.skill.files, file, p.host, p.skill.skill.Requirements...)
	if err != nil || p.skill.files.changed != nil {
		return nil, p.skill.checkUnchanged(err)
	}
	if plan.Kind == script.WASM && !p.runsWASM {
		return nil, fmt.Errorf("skill %s: run WebAssembly file %s: %w", p.skill.name, file, ErrNoScripts)
	}
	return &program{plan: plan, script: file, args: args}, nil
}

// planRun returns the program for a single run of a skill script. If the script
// defines the skill's function, the program calls that function.
func (p *planner) planRun(file string, args []string) (*program, error) {
	found, err := p.planScript(file, args)
	if err != nil {
		return nil, err
	}
	declared := p.skill.skill.Provider
	if declared == nil || declared.Function == "" || declared.ModuleFile() != file || found.plan.Kind != script.Python {
		return found, nil
	}
	start, err := provider.Plan(p.skill.skill, provider.Options{Digest: string(p.owner.digest)})
	if err != nil {
		return nil, err
	}
	python := found.plan.Argv[:len(found.plan.Argv)-1]
	found.argv, found.files = slices.Concat(python, start.Command[1:], []string{"call"}, args), start.Files
	return found, nil
}

// planCommand returns the program that starts a skill's command: a package, a
// skill script, or a host program.
func (p *planner) planCommand(c *command) (*program, error) {
	if c.pkg != nil {
		return p.planPackage(c.pkg)
	}
	word, ok := p.skill.findFile(c.words[0])
	if !ok {
		word = c.words[0]
	}
	if ok || strings.Contains(word, "/") && !path.IsAbs(word) || strings.HasPrefix(word, mountpoint.Skill+"/") {
		file, err := p.skill.findScript(word)
		if err != nil {
			return nil, err
		}
		return p.planScript(file, c.words[1:])
	}
	return p.planInterpreter(c.program(), c.words[1:])
}

// planPackage returns the program that installs and starts a package.
func (p *planner) planPackage(f *packageCommand) (*program, error) {
	name := "main.js"
	if f.launcher == "uvx" {
		name = "main.py"
	}
	plan, err := script.Resolve(f.files, name, p.host)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", p.owner.label, f.launcher, f.pkg, err)
	}
	if plan.Needs == nil {
		return nil, fmt.Errorf("%s: %s %s: no packages to install", p.owner.label, f.launcher, f.pkg)
	}
	plan.Needs.Source = f.launcher + " " + f.pkg
	return &program{plan: plan, pkg: f}, nil
}

// planInterpreter returns the program that starts an interpreter or another
// host program. The script among its arguments determines which packages to
// install.
func (p *planner) planInterpreter(name string, args []string) (*program, error) {
	target := p.scriptArgument(args)
	switch {
	case name == "uv" && len(args) > 1 && args[0] == "run": // the build step installs the skill's packages
		args = args[1:]
		if args[0] == "--script" || args[0] == "-s" {
			args = args[1:]
		}
		if len(args) == 0 || target == "" || !strings.HasSuffix(args[0], path.Base(target)) {
			return nil, fmt.Errorf("%s: %w", p.owner.label, &CommandError{"uv run", "want the path of a script of the skill"})
		}
		name = "python3"
	case isPython(name), name == "node":
	default: // any other program
		return p.planProgram(name, args)
	}
	plan, err := p.resolveInterpreter(name, target)
	if err != nil {
		return nil, err
	}
	if kind := plan.Kind; isPython(name) != (kind == script.Python) || name == "node" && kind != script.Node && kind != script.TypeScript {
		return p.planProgram(name, args) // its argument is not a script of the same language
	}
	return &program{plan: plan, script: target, argv: append(slices.Clone(plan.Argv[:len(plan.Argv)-1]), args...)}, nil
}

// resolveInterpreter returns the plan for the skill's script target. If target
// is "", it returns the plan for an empty script.
func (p *planner) resolveInterpreter(name, target string) (*script.Plan, error) {
	if target != "" {
		plan, err := script.Resolve(p.skill.files, target, p.host, p.skill.skill.Requirements...)
		if err != nil || p.skill.files.changed != nil {
			return nil, p.skill.checkUnchanged(err)
		}
		return plan, nil
	}
	file := "main.py"
	if name == "node" {
		file = "main.js"
	}
	plan, err := script.Resolve(memoryFS{file: nil}, file, p.host)
	if p.skill != nil && p.skill.files.changed != nil {
		return nil, p.skill.checkUnchanged(err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.owner.label, err)
	}
	return plan, nil
}

func isPython(name string) bool { return name == "python" || strings.HasPrefix(name, "python3") }

// scriptArgument returns the path of the skill script that an interpreter runs:
// the first argument that is a script, or the module after -m. If there is
// none, it returns "".
func (p *planner) scriptArgument(args []string) string {
	if p.skill == nil {
		return "" // unreviewed files must not decide what is installed
	}
	m := p.skill.main().manifest
	for i, a := range args {
		if a == "-m" && i+1 < len(args) {
			name := strings.ReplaceAll(args[i+1], ".", "/")
			for _, f := range []string{name + "/__main__.py", name + ".py"} {
				if _, ok := m.Find(f); ok {
					return f
				}
			}
			return ""
		}
		if f, ok := p.skill.findFile(a); ok && !strings.HasPrefix(a, "-") {
			if _, err := script.Find(p.skill.files, m, f); err == nil {
				return f
			}
		}
	}
	return ""
}

// planProgram returns the program that starts a host program other than an
// interpreter.
func (p *planner) planProgram(name string, args []string) (*program, error) {
	t, tried, ok := p.host.Tool(name)
	if !ok {
		return nil, fmt.Errorf("%s: %w", p.owner.label, &script.MissingError{Interpreter: name, For: "a server", Tried: tried,
			Hint: "install it on this machine, or ask the server's author to bundle it"})
	}
	plan := &script.Plan{Kind: script.Other, Interpreter: name, Argv: t.Argv, Prefixes: t.Prefixes, Env: map[string]string{}}
	for _, exe := range t.Argv {
		if dir := filepath.Dir(exe); filepath.Base(dir) == "bin" && !slices.Contains(plan.Bin, dir) {
			plan.Bin = append(plan.Bin, dir)
		}
	}
	return &program{plan: plan, argv: append(slices.Clone(t.Argv), args...)}, nil
}
