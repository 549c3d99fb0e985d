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

// CommandError says that a command of a skill cannot be served.
type CommandError struct {
	Program string
	Reason  string // what is wrong, and what to do
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %s", e.Program, e.Reason) }

// service is what is served.
type service struct {
	asked Service
	words []string // the command, with the folder of the skill in place
	argv  []string // what is started; nil for a script of the skill by itself
	fetch *fetch   // what npx or uvx starts
	built *Package // what it was built to
}

// folders are the ways to write the folder of the skill in a command.
var folders = strings.NewReplacer("${CLAUDE_SKILL_DIR}", sandbox.SkillDir, "${SKILL_DIR}", sandbox.SkillDir, "${LOADOUT_SKILL}", sandbox.SkillDir,
	"${CLAUDE_PLUGIN_ROOT}", sandbox.SkillDir, "{baseDir}", sandbox.SkillDir)

// engines start containers, which a sandbox cannot hold.
var engines = []string{"docker", "docker-compose", "podman", "nerdctl", "container"}

// check refuses what is never served, before anybody is asked.
func (s *service) check() error {
	for _, w := range s.asked.Command {
		s.words = append(s.words, folders.Replace(w))
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
	case slices.Contains(engines, base):
		return &CommandError{base, "a server that is not of your own configuration runs in the sandbox, in which no containers can be started; " +
			"if you trust it with this machine, put it into your own servers.yaml, or ask its author for a program that runs by itself"}
	case base == "npx":
		s.fetch, err = parseNPX(s.words[1:])
	case base == "uvx":
		s.fetch, err = parseUVX(s.words[1:])
	}
	return err
}

// program is the base name of the program.
func (s *service) program() string { return strings.TrimSuffix(path.Base(s.words[0]), ".exe") }

// name is the command for people.
func (s *service) name() string { return strings.Join(s.words[:min(len(s.words), 3)], " ") }

// trees are the files that the caller brings.
func (s *service) trees() []sandbox.Tree {
	if len(s.asked.Files) == 0 {
		return nil
	}
	t := sandbox.Tree{Path: ServiceDir, FS: texts(s.asked.Files)}
	for _, name := range slices.Sorted(maps.Keys(s.asked.Files)) {
		data := s.asked.Files[name]
		t.Files = append(t.Files, sandbox.File{Path: name, Size: int64(len(data)), SHA256: skill.Hash(data)})
	}
	return []sandbox.Tree{t}
}

// planService finds out how to start the command.
func (j *job) planService() error {
	s := j.service
	switch {
	case s.fetch != nil:
		return j.planFetch()
	case j.project != nil:
		return j.planInProject()
	}
	if p, ok := j.inSkill(s.words[0]); ok {
		if err := j.find(p); err != nil {
			return err
		}
		j.run.Args = s.words[1:]
		return j.plan()
	}
	program := s.words[0]
	if strings.Contains(program, "/") && !path.IsAbs(program) || strings.HasPrefix(program, sandbox.SkillDir+"/") {
		return j.find(program) // which says what there is
	}
	return j.interpreter(s.program(), s.words[1:])
}

// inSkill is the path of a file of the skill that a word stands for.
func (j *job) inSkill(word string) (string, bool) {
	p := path.Clean(strings.TrimPrefix(word, sandbox.SkillDir+"/"))
	_, ok := j.own().manifest.Find(p)
	return p, ok
}

// interpreter is for a program of this machine. What of the skill it is to run
// says what has to be installed.
func (j *job) interpreter(name string, args []string) error {
	s, host := j.service, j.machine()
	target := j.target(args)
	switch {
	case name == "uv" && len(args) > 1 && args[0] == "run": // of the skill's own packages the build step knows
		args = args[1:]
		if args[0] == "--script" || args[0] == "-s" {
			args = args[1:]
		}
		if len(args) == 0 || target == "" || !strings.HasSuffix(args[0], path.Base(target)) {
			return fmt.Errorf("%s: %w", j.owner(), &CommandError{"uv run", "only a script of the skill can follow: name it by its path"})
		}
		name = "python3"
	case isPython(name), name == "node":
	default: // as it is
		return j.tool(name, args)
	}
	files, file := fs.FS(j.files), target
	if target == "" {
		file = "main.py"
		if name == "node" {
			file = "main.js"
		}
		files = texts{file: nil}
	}
	var err error
	if j.how, err = script.Resolve(files, file, host); err != nil || j.files.changed != nil {
		return j.unchanged(err)
	}
	if kind := j.how.Kind; isPython(name) != (kind == script.Python) || name == "node" && kind != script.Node && kind != script.TypeScript {
		return j.tool(name, args) // it runs what is no script of its own
	}
	j.script = target
	s.argv = append(slices.Clone(j.how.Argv[:len(j.how.Argv)-1]), args...)
	return nil
}

func isPython(name string) bool { return name == "python" || strings.HasPrefix(name, "python3") }

// target is the script of the skill that an interpreter is to run: the first
// argument that is one, or the module after -m.
func (j *job) target(args []string) string {
	if j.project != nil {
		return "" // what it installs is not for files to say that nobody has looked at
	}
	m := j.own().manifest
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
		if p, ok := j.inSkill(a); ok && !strings.HasPrefix(a, "-") {
			if _, err := script.Find(j.files, m, p); err == nil {
				return p
			}
		}
	}
	return ""
}

// tool is for any other program.
func (j *job) tool(name string, args []string) error {
	t, tried, ok := j.machine().Tool(name)
	if !ok {
		return fmt.Errorf("%s: %w", j.owner(), &script.MissingError{Interpreter: name, For: "a server", Tried: tried,
			Hint: "install it on this machine, or ask the server's author to bring it"})
	}
	j.how = &script.Plan{Kind: script.Other, Interpreter: name, Argv: t.Argv, Prefixes: t.Prefixes, Env: map[string]string{}}
	for _, exe := range t.Argv {
		if dir := filepath.Dir(exe); filepath.Base(dir) == "bin" && !slices.Contains(j.how.Bin, dir) {
			j.how.Bin = append(j.how.Bin, dir)
		}
	}
	j.service.argv = append(slices.Clone(t.Argv), args...)
	return nil
}

// machine is where programs are looked for.
func (j *job) machine() script.Host {
	if j.scripts.Getenv == nil {
		return script.Host{}
	}
	return script.HostOf(j.scripts.Getenv)
}

// serviceCommand is what runs in the sandbox.
func (j *job) serviceCommand(ctx context.Context, spec *sandbox.Spec) (*sandbox.Cmd, error) {
	s := j.service
	if s.fetch != nil {
		if err := j.entryPoint(); err != nil {
			return nil, err
		}
	}
	cmd := &sandbox.Cmd{Args: s.argv}
	if s.argv == nil {
		var err error
		if cmd, err = j.command(ctx, spec); err != nil {
			return nil, err
		}
	}
	cmd.Dir, cmd.Timeout = j.directory(), -1
	cmd.Env = map[string]string{}
	for k, v := range s.asked.Env {
		cmd.Env[k] = folders.Replace(v)
	}
	for _, kept := range []string{"PATH", "PYTHONPATH"} { // by these the interpreter and its packages are found
		if was := spec.Env[kept]; was != "" && cmd.Env[kept] != "" {
			cmd.Env[kept] = was + ":" + cmd.Env[kept]
		}
	}
	return cmd, nil
}

// texts are files in memory by name.
type texts map[string][]byte

// Open opens a file.
func (t texts) Open(name string) (fs.File, error) {
	data, ok := t[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f, err := oneFile{data}.Open(name)
	return f, err
}
