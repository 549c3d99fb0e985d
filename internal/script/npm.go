package script

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// dependencyKeys lists the members of package.json that npm resolves.
var dependencyKeys = []string{"dependencies", "optionalDependencies", "peerDependencies", "devDependencies"}

// installKeys lists all members that affect what is installed.
var installKeys = append([]string{"overrides", "bundleDependencies", "bundledDependencies", "peerDependenciesMeta"}, dependencyKeys...)

// lockFiles lists the lock files that `npm ci` reads, in order of precedence.
var lockFiles = []string{"npm-shrinkwrap.json", "package-lock.json"}

var (
	npmName  = lazyregexp.New(`^(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$`)
	npmRange = lazyregexp.New(`^[A-Za-z0-9.*^~<>=|+ \t-]*$`)
)

// registries lists the registries that a lock file may name. npm replaces them
// with the operator's registry.
var registries = []string{"https://registry.npmjs.org/", "https://registry.yarnpkg.com/"}

// nodeNeeds returns the packages that a Node.js script requires. It reads the
// nearest package.json with dependencies, in the directory of the script or
// above. It returns nil if the modules are already installed there.
func nodeNeeds(fsys fs.FS, p string) (*Needs, error) {
	file, found, err := nearestFile(fsys, p, "package.json", func(text []byte) bool {
		doc, err := parseObject(text)
		return err != nil || hasDependencies(doc)
	})
	if err != nil || !found {
		return nil, err
	}
	dir := path.Dir(file)
	if info, err := fs.Stat(fsys, path.Join(dir, "node_modules")); err == nil && info.IsDir() {
		return nil, nil
	}
	text, err := readSource(fsys, file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	n := &Needs{Kind: Node, Files: []string{file}, Source: file}
	ps, content := checkPackage(file, text)
	for _, name := range lockFiles {
		lock := path.Join(dir, name)
		text, err := readSource(fsys, lock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			ps = append(ps, Problem{lock, 0, "missing", "cannot be read: " + fileerror.Cause(err).Error(), "correct or remove it"})
			break
		}
		more, locked := checkLock(lock, text)
		ps, content = append(ps, more...), append(content, locked)
		n.Files, n.Locked = append(n.Files, lock), true
		break
	}
	if len(ps) > 0 {
		return nil, &NeedsError{ps}
	}
	return n.setDigest(content...), nil
}

// parseObject decodes a JSON object. Unlike decoding into a struct with
// encoding/json, it matches names exactly, as npm does.
func parseObject(text []byte) (map[string]json.RawMessage, error) {
	var doc map[string]json.RawMessage
	err := json.Unmarshal(bytes.TrimPrefix(text, utf8BOM), &doc)
	if err == nil && doc == nil {
		err = errors.New("want a JSON object, got null")
	}
	return doc, err
}

func hasDependencies(doc map[string]json.RawMessage) bool {
	return slices.ContainsFunc([]string{"dependencies", "optionalDependencies"}, func(key string) bool {
		raw, ok := doc[key]
		deps, err := parseObject(raw)
		return ok && (err != nil || len(deps) > 0)
	})
}

// checkPackage returns the problems in a package.json, and the members that
// affect what is installed.
func checkPackage(file string, text []byte) ([]Problem, []string) {
	doc, err := parseObject(text)
	if err != nil {
		return []Problem{{file, jsonLine(text, err), "syntax", "is not a JSON object: " + err.Error(), "correct it"}}, nil
	}
	var ps []Problem
	add := func(word, code, message, fix string) {
		ps = append(ps, Problem{file, findLine(text, `"`+word+`"`), code, message, fix})
	}
	for _, key := range dependencyKeys {
		var deps map[string]any
		if raw, ok := doc[key]; ok && json.Unmarshal(raw, &deps) != nil {
			add(key, "syntax", key+" is not an object", "write it like {\"name\": \"^1.0.0\"}")
		}
		for _, name := range slices.Sorted(maps.Keys(deps)) {
			if v, ok := deps[name].(string); !ok || !npmName.MatchString(name) {
				add(name, "syntax", key+": "+quoteText(name)+" is not a package with a version", "write it like \"name\": \"^1.0.0\"")
			} else if !fromRegistry(v) {
				add(name, "direct", name+" comes from "+quoteText(v)+", not from the registry", "name a released version")
			}
		}
	}
	if _, ok := doc["workspaces"]; ok {
		add("workspaces", "unsupported", "workspaces are not supported", "list what the script needs under dependencies")
	}
	var overrides any
	if json.Unmarshal(doc["overrides"], &overrides) == nil {
		for _, v := range stringValues(overrides) {
			if !strings.HasPrefix(v, "$") && !fromRegistry(v) {
				add("overrides", "direct", "overrides name "+quoteText(v)+", which is not in the registry", "name a released version")
			}
		}
	}
	kept := map[string]any{}
	for _, key := range installKeys {
		var v any
		if json.Unmarshal(doc[key], &v) == nil {
			kept[key] = v
		}
	}
	canonical, _ := json.Marshal(kept) // sorted by key; decoded JSON always encodes
	return sortByLine(ps), []string{string(canonical)}
}

// fromRegistry reports whether a version in package.json refers to a registry:
// a range, a tag, or an alias of either.
func fromRegistry(v string) bool {
	v = strings.TrimSpace(v)
	if alias, ok := strings.CutPrefix(v, "npm:"); ok {
		i := strings.LastIndex(alias, "@")
		if i <= 0 {
			i = len(alias)
		}
		return npmName.MatchString(alias[:i]) && npmRange.MatchString(strings.TrimPrefix(alias[i:], "@"))
	}
	// npm treats a word with an archive extension as a file.
	return npmRange.MatchString(v) && !strings.HasSuffix(v, ".tgz") && !strings.HasSuffix(v, ".tar.gz") && !strings.HasSuffix(v, ".tar") &&
		!strings.HasPrefix(v, ".") && !strings.HasPrefix(v, "~/")
}

// stringValues returns all strings in a JSON value.
func stringValues(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		return []string{v}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, stringValues(v[k])...)
		}
	}
	return out
}

// checkLock returns the packages in a lock file that do not come from a
// registry, and the content that affects what is installed.
func checkLock(file string, text []byte) ([]Problem, string) {
	doc, err := parseObject(text)
	var whole any
	if err == nil {
		err = json.Unmarshal(bytes.TrimPrefix(text, utf8BOM), &whole)
	}
	if err != nil {
		return []Problem{{file, jsonLine(text, err), "syntax", "is not a JSON object: " + err.Error(), "create it again with `npm install`"}}, ""
	}
	var ps []Problem
	add := func(word, what string) {
		ps = append(ps, Problem{file, findLine(text, word), "direct", what + ", not from the registry", "create it again with `npm install` and released packages only"})
	}
	var walk func(v any)
	walk = func(v any) {
		members, _ := v.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(members)) {
			switch s, isString := members[k].(string); {
			case k == "resolved" && isString && !slices.ContainsFunc(registries, func(r string) bool { return strings.HasPrefix(s, r) }):
				add(s, "a package comes from "+quoteText(s))
			case k == "version" && isString && !npmRange.MatchString(s) && !fromRegistry(s): // in old lock files
				add(s, "a package comes from "+quoteText(s))
			case k == "link" && members[k] == true:
				add(`"link"`, "a package is a link to a directory")
			}
			walk(members[k])
		}
	}
	for _, key := range []string{"packages", "dependencies"} {
		var v any
		if json.Unmarshal(doc[key], &v) == nil {
			walk(v)
		}
	}
	canonical, _ := json.Marshal(whole)
	return sortByLine(ps), string(canonical)
}

func sortByLine(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return ps
}

// findLine returns the line number of the first occurrence of a word, or 0.
func findLine(text []byte, word string) int {
	before, _, ok := bytes.Cut(text, []byte(word))
	if !ok {
		return 0
	}
	return 1 + bytes.Count(before, []byte("\n"))
}

// jsonLine returns the line of a JSON syntax error.
func jsonLine(text []byte, err error) int {
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return 1 + bytes.Count(text[:min(int(se.Offset), len(text))], []byte("\n"))
	}
	return 0
}
