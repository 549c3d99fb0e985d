package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/script"
	"github.com/loadout-dev/loadout/sandbox"
)

// maxInput is the maximum size of a package.json or lockfile in bytes.
const maxInput = 8 << 20

// job describes the packages to install for an interpreter.
type job struct {
	needs *script.Needs
	plan  *script.Plan
	entry string   // name of the directory in the cache
	names []string // package names, for messages
	// input holds the installer's input files by path below appDir. Only input
	// and needs determine what is installed, not the skill's other files.
	input map[string][]byte
}

// packageKeys lists the members of package.json that affect what is installed.
// Other members are not passed to npm, because the digest of the script's
// dependencies does not cover them.
var packageKeys = []string{"dependencies", "optionalDependencies", "peerDependencies", "devDependencies",
	"overrides", "bundleDependencies", "bundledDependencies", "peerDependenciesMeta"}

// job returns the packages to install for a script.
func (b *Builder) job(needs *script.Needs, skill fs.FS, plan *script.Plan) (*job, error) {
	if plan == nil || len(plan.Argv) == 0 {
		return nil, errors.New("install packages: script has no interpreter")
	}
	j := &job{needs: needs, plan: plan, input: map[string][]byte{}}
	var err error
	var from string
	switch needs.Kind {
	case script.Python:
		j.addPythonInput()
		from = b.index.url
	case script.Node:
		err = j.addNodeInput(skill)
		from = b.npm.url
	default:
		err = fmt.Errorf("install packages: unsupported package kind %s", needs.Kind)
	}
	if err != nil {
		return nil, err
	}
	// The digest covers everything that affects what is installed.
	data, err := json.Marshal([]any{"loadout packages 1", needs.Kind, needs.Digest, needs.RequireHashes, j.input, from, b.opts.AllowSource,
		plan.Interpreter, plan.Version, plan.Argv[0], runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	version := plan.Version
	if !plainVersion.MatchString(version) {
		version = "any"
	}
	sum := sha256.Sum256(data)
	j.entry = fmt.Sprintf("%s-%s-%s-%s-%s", needs.Kind, version, runtime.GOOS, runtime.GOARCH, hex.EncodeToString(sum[:16]))
	return j, nil
}

var (
	plainVersion    = lazyregexp.New(`^[0-9]+(\.[0-9]+){0,3}$`)
	requirementName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*`)
)

func (j *job) addPythonInput() {
	j.input["requirements.txt"] = joinLines(j.needs.Requirements)
	if len(j.needs.Constraints) > 0 {
		j.input["constraints.txt"] = joinLines(j.needs.Constraints)
	}
	for _, r := range j.needs.Requirements {
		if name := requirementName.FindString(r); !slices.Contains(j.names, name) {
			j.names = append(j.names, name)
		}
	}
}

func joinLines(l []string) []byte { return []byte(strings.Join(l, "\n") + "\n") }

func (j *job) addNodeInput(skill fs.FS) error {
	if len(j.needs.Files) == 0 {
		return errors.New("install packages: missing package.json in requirements")
	}
	text, err := readInput(skill, j.needs.Files[0])
	if err != nil {
		return err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\ufeff")), &doc); err != nil {
		return fmt.Errorf("read %s: %w", j.needs.Files[0], err)
	}
	kept := map[string]json.RawMessage{"name": json.RawMessage(`"skill"`), "version": json.RawMessage(`"0.0.0"`), "private": json.RawMessage("true")}
	for _, key := range packageKeys {
		if v, ok := doc[key]; ok {
			kept[key] = v
		}
	}
	if j.input["package.json"], err = json.Marshal(kept); err != nil {
		return err
	}
	for _, key := range packageKeys[:2] {
		var deps map[string]any
		if json.Unmarshal(doc[key], &deps) == nil {
			j.names = append(j.names, slices.Sorted(maps.Keys(deps))...)
		}
	}
	if j.needs.Locked && len(j.needs.Files) > 1 {
		lock := j.needs.Files[1]
		if text, err = readInput(skill, lock); err != nil {
			return err
		}
		j.input["package-lock.json"] = text // npm accepts a shrinkwrap under this name
	}
	return nil
}

func readInput(skill fs.FS, p string) ([]byte, error) {
	f, err := skill.Open(p)
	if err != nil {
		return nil, fmt.Errorf("read requirements: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = fmt.Errorf("%s too large (limit %d MiB)", p, maxInput>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("read requirements: %w", err)
	}
	return text, nil
}

// packages returns the packages in a cache entry, for use by a script.
func (j *job) packages(e *entry) *Packages {
	p := noPackages()
	p.Digest, p.files = e.manifest.Digest, e.manifest.Files
	m := sandbox.Mount{Host: e.files, Path: mountpoint.Build}
	if j.needs.Kind == script.Node {
		m.Path = ModulesDir
	} else {
		p.Trees, p.Env["PYTHONPATH"] = []sandbox.Tree{startupTree()}, startupDir
	}
	p.Mounts = append(p.Mounts, m)
	return p
}

func (j *job) offlineError(err error) error {
	return &OfflineError{Needs: j.names, Source: j.needs.Source, Err: err}
}

// mounts returns the host directories to mount for an installer, including
// those in the plan. None of the directories contains another.
func (j *job) mounts(more []string) []sandbox.Mount {
	all := append(slices.Clone(j.plan.Prefixes), more...)
	slices.Sort(all)
	var out []sandbox.Mount
	for _, p := range slices.Compact(all) {
		inside := slices.ContainsFunc(out, func(m sandbox.Mount) bool {
			return strings.HasPrefix(p, strings.TrimSuffix(m.Host, string(filepath.Separator))+string(filepath.Separator))
		})
		if !inside {
			out = append(out, sandbox.Mount{Host: p, Path: p})
		}
	}
	return out
}
