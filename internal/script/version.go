package script

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// releaseNumber matches a version number with two to four parts.
var releaseNumber = lazyregexp.New(`[0-9]{1,6}(\.[0-9]{1,6}){1,3}`)

var (
	pythonBase  = lazyregexp.New(`^(?:python|pypy)([0-9]\.[0-9]{1,2})(?:\.exe)?$`)
	nodeVersion = lazyregexp.New(`(?m)^#define NODE_(MAJOR|MINOR|PATCH)_VERSION ([0-9]+)`)
)

// version returns the version of the interpreter at exe, based on its files. If
// the files do not contain the version, it calls Host.Version. exe must not
// contain symlinks.
func (h Host) version(exe, name string) string {
	root := filepath.Dir(filepath.Dir(exe))
	byDir := releaseNumber.FindString(filepath.Base(root))
	if isWithin("/opt", root) && strings.Count(byDir, ".") < 2 {
		byDir = "" // the directory belongs to another program
	}
	switch toolName(name) {
	case "python":
		if m := pythonBase.FindStringSubmatch(filepath.Base(exe)); m != nil {
			if strings.HasPrefix(byDir, m[1]+".") {
				return byDir
			}
			return m[1]
		}
	case "node":
		header, _ := os.ReadFile(filepath.Join(root, "include", "node", "node_version.h"))
		var v []string
		for _, m := range nodeVersion.FindAllStringSubmatch(string(header), -1) {
			v = append(v, m[2])
		}
		if len(v) == 3 {
			return strings.Join(v, ".")
		}
	}
	if byDir == "" && h.Version != nil {
		return releaseNumber.FindString(h.Version(exe))
	}
	return byDir
}

const stripTypesFlag = "--experimental-strip-types"

// typeScriptProblem returns the reason why an interpreter cannot run
// TypeScript, or "" if it can.
func typeScriptProblem(f interpreter) string {
	if f.name != "node" {
		return ""
	}
	v := releaseParts(f.version)
	switch {
	case len(v) < 2:
		return "unknown version; Node.js runs TypeScript since 22.6"
	case compareRelease(v, []int{22, 6}) < 0:
		return "version " + f.version + " is too old; Node.js runs TypeScript since 22.6"
	}
	return ""
}

// needsTypeScriptFlag reports whether a version of Node.js runs TypeScript only
// with a flag.
func needsTypeScriptFlag(version string) bool {
	v := releaseParts(version)
	if len(v) > 0 && v[0] == 22 {
		return compareRelease(v, []int{22, 18}) < 0
	}
	return compareRelease(v, []int{23, 6}) < 0
}

// releaseParts returns the numeric parts of a release.
func releaseParts(v string) []int {
	var out []int
	for _, p := range strings.Split(v, ".") {
		n, err := strconv.Atoi(p)
		if err != nil {
			return out
		}
		out = append(out, n)
	}
	return out
}

// compareRelease compares two releases. Missing parts count as zero.
func compareRelease(a, b []int) int {
	for i := range max(len(a), len(b)) {
		var x, y int
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}

var versionSpecifier = lazyregexp.New(`^(===|==|!=|<=|>=|~=|<|>)\s*v?([0-9]+(?:\.[0-9]+)*)(\.\*)?(?:(?:a|b|rc|\.dev|\.post)[0-9]+)?$`)

// isVersionSpecifier reports whether a requires-python value is valid.
func isVersionSpecifier(spec string) bool {
	for part := range strings.SplitSeq(spec, ",") {
		if part = strings.TrimSpace(part); part != "" && !versionSpecifier.MatchString(part) {
			return false
		}
	}
	return true
}

// satisfiesVersion reports whether a Python version satisfies a specifier. For
// an incomplete version such as "3.11", it reports whether any of its releases
// could.
func satisfiesVersion(version, spec string) bool {
	have := releaseParts(version)
	for part := range strings.SplitSeq(spec, ",") {
		m := versionSpecifier.FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			continue
		}
		want := releaseParts(m[2])
		same := len(have) >= len(want) && slices.Equal(have[:len(want)], want)
		doubt := len(have) < len(want) && slices.Equal(have, want[:len(have)])
		c := compareRelease(have, want)
		ok := true
		switch m[1] {
		case "==", "===":
			ok = doubt || c == 0 || m[3] != "" && same
		case "!=":
			ok = doubt || c != 0 && (m[3] == "" || !same)
		case ">=":
			ok = doubt || c >= 0
		case "<=":
			ok = doubt || c <= 0
		case ">":
			ok = doubt || c > 0
		case "<":
			ok = doubt && want[len(want)-1] > 0 || c < 0
		case "~=":
			ok = doubt || c >= 0 && len(want) > 1 && slices.Equal(have[:len(want)-1], want[:len(want)-1])
		}
		if !ok {
			return false
		}
	}
	return true
}
