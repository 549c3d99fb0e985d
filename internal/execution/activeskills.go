package execution

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/filetype"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/packages"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Limits on the skills that a command can use.
const (
	maxActiveSkills = 64
	maxActiveBytes  = 128 << 20 // total size of the files
	maxActiveFiles  = 10_000
	maxPythonFiles  = 100      // files of a skill that are searched for packages
	maxTextBytes    = 16 << 20 // of a file of a skill that is not approved
	maxDirName      = 255      // bytes of a directory name
	maxNote         = 500      // length of a note
)

// ActiveSkill identifies a skill that is active in a conversation.
type ActiveSkill struct {
	Name   string // for messages
	Key    string // catalog key
	Digest string // digest of the SKILL.md that was loaded: "sha256:" and the hex SHA-256
}

// RunCommand runs a host command in a sandbox and waits for it to finish. The
// command can read the files of active skills in /needs/NAME, and import the
// Python packages that these skills and the configuration name. Packages are
// installed when a command that starts Python needs them.
//
// If a skill is not approved, the command sees only its documents and data in
// plain text, and its packages are not installed. If its SKILL.md also changed
// after it was loaded, or if files of any skill change while they are copied, the
// command sees none of the skill's files. A grant for a single run does not count
// as an approval. Permissions that a skill was granted, such as network access, do
// not apply to the command. If the approval of a skill is revoked while the command
// runs, the command is killed.
func (r *Runner) RunCommand(ctx context.Context, c *Command) (*Result, error) {
	if !r.hasSandbox() {
		return nil, ErrNoScripts
	}
	v := &commandView{runner: r, caller: r.caller(c.Caller), command: c, ctx: ctx, grants: lease.NewGroup(ctx, r.opts.Grants, 0), trees: map[string]sandbox.Tree{}, keys: map[string]string{}}
	defer v.close()
	v.addSkills(c.Skills)
	v.addPackages()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	res, err := v.run()
	if res != nil {
		if len(v.trees) > 0 && res.Tier < sandbox.Isolated && v.mentions(mountpoint.Needs) { // files may be elsewhere, and text is not translated
			v.addNote("if this sandbox has no %s, $LOADOUT_SKILL_NAME is the path of a skill; NAME is its name in capitals, with _ for all characters except letters and digits", mountpoint.Needs)
		}
		if v.usesPython() || v.mentions(mountpoint.Needs) || missingModule.Match(res.Stderr) || missingModule.Match(res.Stdout) { // Stdout in case of 2>&1
			res.Notes = append(v.notes, res.Notes...)
		}
	}
	return res, err
}

// run runs the command. If its sandbox cannot be started with the files of a skill
// or with the packages, run starts it without them.
func (v *commandView) run() (*Result, error) {
	for {
		res, err := runCommand(v.ctx, v.runner.opts.Sandbox, v.command, v.spec())
		if res != nil || err == nil {
			return res, err
		}
		if e, ok := errors.AsType[*sandbox.UnsupportedError](err); ok && v.packages != nil { // this backend cannot mount them
			v.addNote("packages not available: the sandbox %s cannot mount them; %s", e.Backend, cmp.Or(e.Fix, "use another one"))
			v.packages = nil
			continue
		}
		changed, ok := errors.AsType[*sandbox.ChangedError](err)
		if !ok || v.keys[changed.Tree] == "" {
			return nil, err
		}
		v.addNote("skill %s is not in %s: its file %s changed; run the command again", path.Base(changed.Tree), mountpoint.Needs, changed.Path)
		delete(v.trees, changed.Tree)
		delete(v.keys, changed.Tree)
	}
}

// commandView collects what a command sees of active skills.
type commandView struct {
	runner  *Runner
	caller  Caller
	command *Command

	ctx    context.Context // done when the approval of a skill is revoked
	grants *lease.Group
	trees  map[string]sandbox.Tree
	keys   map[string]string // catalog keys of the skills in trees
	bytes  int64
	files  int
	needs  []skillNeeds
	notes  []string // for the model, if the command uses skills or Python
	ends   []func() // to call in reverse order

	plan     *script.Plan       // for the interpreter of the packages
	packages *packages.Packages // nil if there are none
}

func (v *commandView) close() {
	for _, end := range slices.Backward(v.ends) {
		end()
	}
	v.grants.Close()
}

// mentions reports whether an argument of the command contains text.
func (v *commandView) mentions(text string) bool {
	return slices.ContainsFunc(v.command.Args, func(a string) bool { return strings.Contains(a, text) })
}

// usesPython reports whether the command itself starts Python. Packages are
// installed only for such commands, because this takes time.
func (v *commandView) usesPython() bool {
	return slices.ContainsFunc(v.command.Args, pythonWord.MatchString)
}

func (v *commandView) addNote(format string, args ...any) {
	v.notes = append(v.notes, printable.Text(printable.OneLine(fmt.Sprintf(format, args...)), maxNote))
}

// addSkills adds the approved skills with their dependencies. It then adds the
// readable files of the other skills.
func (v *commandView) addSkills(active []ActiveSkill) {
	if len(active) > maxActiveSkills {
		v.addNote("only %d of %d active skills are in %s", maxActiveSkills, len(active), mountpoint.Needs)
		active = active[:maxActiveSkills]
	}
	var rest []func()
	for _, a := range active {
		s, err := openSkill(v.ctx, v.runner.opts.Catalog, a.Key)
		if err == nil && s.entry.Key() != a.Key { // that skill is gone, and another one has this name
			s.close()
			err = errUnavailable
		}
		if err != nil {
			v.addNote("skill %s is not in %s: %v", a.Name, mountpoint.Needs, err)
			continue
		}
		v.ends = append(v.ends, s.close)
		if v.authorize(s) {
			v.addApproved(s)
			continue
		}
		rest = append(rest, func() { v.addReadable(a, s) })
	}
	for _, add := range rest {
		add()
	}
}

// authorize reports whether the skill is approved, and records that its code may
// run. It keeps the authorization until the view is closed.
func (v *commandView) authorize(s *openedSkill) bool {
	auth := v.runner.auth
	asked, _, _, err := RequestedBounds(s.skill, auth.limit)
	if err != nil {
		return false
	}
	d := decision.ForRun(v.ctx, auth.grants, auth.request(v.ctx, s, v.caller, asked))
	if d.Effect != policy.Allow || d.Grant != nil && d.Grant.Scope == policy.Once {
		return false
	}
	a, err := auth.authorizeIn(v.ctx, v.grants, s, v.caller)
	if err != nil {
		v.addNote("skill %s: %v", s.name, err)
		return false
	}
	v.ctx, v.ends = a.ctx, append(v.ends, a.release)
	return true
}

// addApproved adds an approved skill, its dependencies and its packages.
func (v *commandView) addApproved(s *openedSkill) {
	for _, p := range s.parts {
		v.addTree(p, p.manifest)
	}
	v.addNeeds(s)
}

// addReadable adds the documents and data of an unapproved skill that a model may
// read as text.
func (v *commandView) addReadable(a ActiveSkill, s *openedSkill) {
	at := needsPath(s.name)
	if v.keys[at] == s.entry.Key() { // a dependency of an approved skill
		return
	}
	hash, _ := strings.CutPrefix(a.Digest, "sha256:")
	switch m := s.main().manifest; {
	case s.isUnavailable(v.runner.opts.Catalog.Snapshot()):
		v.addNote("skill %s is not in %s: %v", s.name, mountpoint.Needs, errUnavailable)
	case !hasSkillFile(m, hash):
		v.addNote("skill %s is not in %s: it changed after it was loaded; load it again", s.name, mountpoint.Needs)
	default:
		plain := slices.DeleteFunc(slices.Clone(m), func(f skill.File) bool { return !isDocument(f) || !s.isPlainText(f) })
		v.addTree(*s.main(), plain)
		if len(plain) < len(m) || len(s.skill.Requirements) > 0 {
			v.addNote("skill %s is not approved, so only its documents and data in plain text are in %s, and its packages are not installed", s.name, at)
		}
	}
}

// documentExtensions lists the extensions of documents and data. Other files may
// be code for a program such as make, awk or R.
var documentExtensions = []string{".md", ".markdown", ".txt", ".rst", ".adoc", ".tex", ".bib", ".html", ".htm", ".css", ".svg",
	".csv", ".tsv", ".json", ".jsonl", ".geojson", ".yaml", ".yml", ".toml", ".xml", ".xsd", ".ini", ".cfg", ".conf", ".properties", ".log", ".sql", ".ics", ".vcf", ".srt", ".vtt"}

// documentNames lists documents whose names have no extension.
var documentNames = []string{"AUTHORS", "CHANGELOG", "COPYING", "LICENSE", "NOTICE", "README", "VERSION"}

// isDocument reports whether the name of a file is one of documents or data.
func isDocument(f skill.File) bool {
	return !f.Script && (slices.Contains(documentExtensions, strings.ToLower(path.Ext(f.Path))) || slices.Contains(documentNames, path.Base(f.Path)))
}

// isPlainText reports whether a file is text that a model may read before the
// skill is approved. Unless the skill belongs to the user or is bundled, text with
// hidden characters requires an approval, as it does when a skill is loaded.
func (s *openedSkill) isPlainText(f skill.File) bool {
	if f.Size > maxTextBytes {
		return false
	}
	data, err := s.files.read(f)
	if err != nil || !filetype.IsText(data) || bytes.HasPrefix(data, []byte("#!")) {
		return false
	}
	return s.entry.Scope == catalog.User || s.entry.Scope == catalog.Bundled || untrusted.InspectFile(string(data)).Clean()
}

// addTree adds files of a skill, unless another skill has the same path.
func (v *commandView) addTree(p part, files skill.Manifest) {
	at, key := needsPath(p.entry.Name), p.entry.Key()
	if other, ok := v.keys[at]; ok {
		if other != key {
			v.addNote("skill %s is not in %s: the files in %s are those of skill %s", key, mountpoint.Needs, at, other)
		}
		return
	}
	v.bytes, v.files = v.bytes+files.Size(), v.files+len(files)
	switch {
	case path.Clean(at) != at || len(path.Base(at)) > maxDirName:
		v.bytes, v.files = v.bytes-files.Size(), v.files-len(files)
		v.addNote("skill %s is not in %s: its name is not a directory name", p.entry.Name, mountpoint.Needs)
	case v.bytes > maxActiveBytes || v.files > maxActiveFiles:
		v.bytes, v.files = v.bytes-files.Size(), v.files-len(files)
		v.addNote("skill %s is not in %s: the active skills are too large (limit %d MiB, %d files)", p.entry.Name, mountpoint.Needs, maxActiveBytes>>20, maxActiveFiles)
	default:
		v.trees[at], v.keys[at] = skillTree(at, p.bundle.FS, files), key
	}
}

// spec returns the specification of a sandbox with the files of skills and the
// packages.
func (v *commandView) spec() *sandbox.Spec {
	s := &sandbox.Spec{Env: map[string]string{}}
	for _, at := range slices.Sorted(maps.Keys(v.trees)) {
		s.Trees = append(s.Trees, v.trees[at])
	}
	if v.packages != nil {
		addInterpreter(s, v.plan, v.packages)
	}
	return s
}
