package loadout

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// CommandError is returned if a command of a skill cannot be served.
type CommandError struct {
	Program string
	Reason  string // the problem and how to fix it
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %s", e.Program, e.Reason) }

// service is the state of a service's command.
type service struct {
	asked Service
	words []string        // the command, with the skill's directory filled in
	argv  []string        // command line to start; nil to run a script of the skill
	fetch *packageCommand // package that npx or uvx starts
	built *Package        // installed package
}

// skillDirNames replaces the names of the skill's directory in a command.
var skillDirNames = strings.NewReplacer("${CLAUDE_SKILL_DIR}", sandbox.SkillDir, "${SKILL_DIR}", sandbox.SkillDir, "${LOADOUT_SKILL}", sandbox.SkillDir,
	"${CLAUDE_PLUGIN_ROOT}", sandbox.SkillDir, "{baseDir}", sandbox.SkillDir)

// containerEngines start containers, which cannot run in a sandbox.
var containerEngines = []string{"docker", "docker-compose", "podman", "nerdctl", "container"}

// check parses the command and rejects commands that can never be served,
// before any approval request.
func (s *service) check() error {
	for _, w := range s.asked.Command {
		s.words = append(s.words, skillDirNames.Replace(w))
	}
	if len(s.words) == 0 || s.words[0] == "" {
		return &CommandError{"command", "it is empty: name a program"}
	}
	for name := range s.asked.Files {
		if !fs.ValidPath(name) || strings.Contains(name, "/") || name == "." {
			return &CommandError{name, "it is no base name of a file"}
		}
	}
	var err error
	switch base := s.program(); {
	case slices.Contains(containerEngines, base):
		return &CommandError{base, "a server that is not of your own configuration runs in the sandbox, in which no containers can be started; " +
			"if you trust it with this machine, put it into your own servers.yaml, or ask its author for a program that runs by itself"}
	case base == "npx":
		s.fetch, err = parseNPX(s.words[1:])
	case base == "uvx":
		s.fetch, err = parseUVX(s.words[1:])
	}
	return err
}

// program returns the base name of the program.
func (s *service) program() string { return strings.TrimSuffix(path.Base(s.words[0]), ".exe") }

// name returns a short form of the command for users.
func (s *service) name() string { return strings.Join(s.words[:min(len(s.words), 3)], " ") }

// trees returns the files that the caller provides.
func (s *service) trees() []sandbox.Tree {
	if len(s.asked.Files) == 0 {
		return nil
	}
	t := sandbox.Tree{Path: ServiceDir, FS: memoryFS(s.asked.Files)}
	for _, name := range slices.Sorted(maps.Keys(s.asked.Files)) {
		data := s.asked.Files[name]
		t.Files = append(t.Files, sandbox.File{Path: name, Size: int64(len(data)), SHA256: skill.Hash(data)})
	}
	return []sandbox.Tree{t}
}

// planService determines how to start the command.
func (j *job) planService() error {
	s := j.service
	switch {
	case s.fetch != nil:
		return j.planPackage()
	case j.project != nil:
		return j.planInProject()
	}
	if p, ok := j.skillFile(s.words[0]); ok {
		if err := j.findScript(p); err != nil {
			return err
		}
		j.run.Args = s.words[1:]
		return j.planScript()
	}
	program := s.words[0]
	if strings.Contains(program, "/") && !path.IsAbs(program) || strings.HasPrefix(program, sandbox.SkillDir+"/") {
		return j.findScript(program) // its error lists the scripts of the skill
	}
	return j.planInterpreter(s.program(), s.words[1:])
}

// skillFile returns the path of the skill's file that word refers to.
func (j *job) skillFile(word string) (string, bool) {
	p := path.Clean(strings.TrimPrefix(word, sandbox.SkillDir+"/"))
	_, ok := j.mainPart().manifest.Find(p)
	return p, ok
}

// planInterpreter plans to start an interpreter or another program of this
// machine. The script among its arguments determines which packages to install.
func (j *job) planInterpreter(name string, args []string) error {
	s, host := j.service, j.scriptHost()
	target := j.scriptArgument(args)
	switch {
	case name == "uv" && len(args) > 1 && args[0] == "run": // the build step installs the packages of the skill
		args = args[1:]
		if args[0] == "--script" || args[0] == "-s" {
			args = args[1:]
		}
		if len(args) == 0 || target == "" || !strings.HasSuffix(args[0], path.Base(target)) {
			return fmt.Errorf("%s: %w", j.owner(), &CommandError{"uv run", "only a script of the skill can follow: name it by its path"})
		}
		name = "python3"
	case isPython(name), name == "node":
	default: // any other program
		return j.planProgram(name, args)
	}
	files, file := fs.FS(j.files), target
	if target == "" {
		file = "main.py"
		if name == "node" {
			file = "main.js"
		}
		files = memoryFS{file: nil}
	}
	var err error
	if j.scriptPlan, err = script.Resolve(files, file, host); err != nil || j.files.changed != nil {
		return j.checkUnchanged(err)
	}
	if kind := j.scriptPlan.Kind; isPython(name) != (kind == script.Python) || name == "node" && kind != script.Node && kind != script.TypeScript {
		return j.planProgram(name, args) // its argument is not a script of the same language
	}
	j.script = target
	s.argv = append(slices.Clone(j.scriptPlan.Argv[:len(j.scriptPlan.Argv)-1]), args...)
	return nil
}

func isPython(name string) bool { return name == "python" || strings.HasPrefix(name, "python3") }

// scriptArgument returns the skill's script that an interpreter runs: the first
// argument that is a script, or the module after -m.
func (j *job) scriptArgument(args []string) string {
	if j.project != nil {
		return "" // unreviewed files must not decide what is installed
	}
	m := j.mainPart().manifest
	for i, a := range args {
		if a == "-m" && i+1 < len(args) {
			name := strings.ReplaceAll(args[i+1], ".", "/")
			for _, p := range []string{name + "/__main__.py", name + ".py"} {
				if _, ok := m.Find(p); ok {
					return p
				}
			}
			return ""
		}
		if p, ok := j.skillFile(a); ok && !strings.HasPrefix(a, "-") {
			if _, err := script.Find(j.files, m, p); err == nil {
				return p
			}
		}
	}
	return ""
}

// planProgram plans to start any other program of this machine.
func (j *job) planProgram(name string, args []string) error {
	t, tried, ok := j.scriptHost().Tool(name)
	if !ok {
		return fmt.Errorf("%s: %w", j.owner(), &script.MissingError{Interpreter: name, For: "a server", Tried: tried,
			Hint: "install it on this machine, or ask the server's author to bring it"})
	}
	j.scriptPlan = &script.Plan{Kind: script.Other, Interpreter: name, Argv: t.Argv, Prefixes: t.Prefixes, Env: map[string]string{}}
	for _, exe := range t.Argv {
		if dir := filepath.Dir(exe); filepath.Base(dir) == "bin" && !slices.Contains(j.scriptPlan.Bin, dir) {
			j.scriptPlan.Bin = append(j.scriptPlan.Bin, dir)
		}
	}
	j.service.argv = append(slices.Clone(t.Argv), args...)
	return nil
}

// scriptHost returns the host on which programs are searched.
func (j *job) scriptHost() script.Host {
	if j.scripts.Getenv == nil {
		return script.Host{}
	}
	return script.HostOf(j.scripts.Getenv)
}

// serviceCommand returns the command that runs in the sandbox.
func (j *job) serviceCommand(ctx context.Context, spec *sandbox.Spec) (*sandbox.Cmd, error) {
	s := j.service
	if s.fetch != nil {
		if err := j.resolveEntryPoint(); err != nil {
			return nil, err
		}
	}
	cmd := &sandbox.Cmd{Args: s.argv}
	if s.argv == nil {
		var err error
		if cmd, err = j.scriptCommand(ctx, spec); err != nil {
			return nil, err
		}
	}
	cmd.Dir, cmd.Timeout = j.workingDir(), -1
	cmd.Env = map[string]string{}
	for k, v := range s.asked.Env {
		cmd.Env[k] = skillDirNames.Replace(v)
	}
	for _, kept := range []string{"PATH", "PYTHONPATH"} { // the interpreter and its packages are found with these
		if was := spec.Env[kept]; was != "" && cmd.Env[kept] != "" {
			cmd.Env[kept] = was + ":" + cmd.Env[kept]
		}
	}
	return cmd, nil
}

// memoryFS is a file system of files in memory, by name.
type memoryFS map[string][]byte

// Open opens a file.
func (t memoryFS) Open(name string) (fs.File, error) {
	data, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := singleFile{data}.Open(name)
	return f, err
}
