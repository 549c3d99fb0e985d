package install

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/semver"
)

// findNewerTag returns the highest version tag that is newer than current and
// has the same prefix. It returns "" if there is none, or if current is not a
// version.
func findNewerTag(current string, tags map[string]string) string {
	prefix, now, ok := parseTagVersion(current)
	if !ok {
		return ""
	}
	newest, name := now, ""
	for tag := range tags {
		p, v, ok := parseTagVersion(tag)
		if ok && p == prefix && (v.Prerelease() == "" || now.Prerelease() != "") && v.Compare(newest) > 0 {
			newest, name = v, tag
		}
	}
	return name
}

// parseTagVersion parses a tag such as v1.2.3 or pdf-v1.2.3.
func parseTagVersion(tag string) (prefix string, v semver.Version, ok bool) {
	i := strings.IndexAny(tag, "0123456789")
	if i < 0 {
		return "", semver.Version{}, false
	}
	v, ok = semver.Parse(tag[i:])
	return tag[:i], v, ok
}
