// Package skillpath implements the rules for file paths in a skill. It never
// opens files.
package skillpath

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the maximum length of a path in bytes.
const MaxBytes = 512

const maxPart = 255 // bytes

// Check checks a slash-separated path of a skill's file. If the path is
// invalid, it returns a code and a message with the reason: the path points
// outside the skill, or some operating system cannot store it or would confuse
// it with another path. The code is stable and consists of lower-case words
// with hyphens, as in a Refusal of package skill. Both results are empty for a
// valid path.
func Check(p string) (code, message string) {
	switch {
	case len(p) > MaxBytes:
		return "path-too-long", fmt.Sprintf("path too long (%d bytes, limit %d)", len(p), MaxBytes)
	case !utf8.ValidString(p):
		return "name-encoding", "name is not UTF-8"
	case strings.HasPrefix(p, "/"):
		return "absolute-path", "path is absolute"
	case strings.Contains(p, `\`):
		return "backslash", "path contains a backslash; use /"
	case len(p) >= 2 && p[1] == ':':
		return "drive", "path contains a drive letter"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "name-control", "name contains a control character"
	case strings.ContainsFunc(p, isBidiControl):
		return "name-control", "name contains a character that reverses the text direction"
	case strings.Contains(p, ":"):
		return "name-colon", "name contains a colon, which some systems cannot store"
	}
	if i := strings.IndexAny(p, `<>"|?*`); i >= 0 {
		return "name-character", fmt.Sprintf("name contains a %c, which some systems cannot store", p[i])
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "..":
			return "path-escape", "path leads out of the skill with .."
		case part == "" || part == ".":
			return "path-unclean", "path has an empty part or a single dot; write it without them"
		case len(part) > maxPart:
			return "path-too-long", fmt.Sprintf("part of the path too long (%d bytes, limit %d)", len(part), maxPart)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return "name-end", "part of the path ends in a dot or a space, which some systems remove"
		case isReserved(part):
			return "name-reserved", part + " is the name of a device on Windows"
		}
	}
	return "", ""
}

// isBidiControl reports whether a character changes the direction in which text
// is displayed.
func isBidiControl(r rune) bool {
	return r == 0x200e || r == 0x200f || r == 0x061c || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// isReserved reports whether a name without its extensions is a Windows device
// name.
func isReserved(part string) bool {
	stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
	switch stem = strings.TrimRight(stem, " "); stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	device, number := "", ""
	if len(stem) > 3 {
		device, number = stem[:3], stem[3:]
	}
	return (device == "COM" || device == "LPT") && strings.Contains("123456789¹²³", number) && utf8.RuneCountInString(number) == 1
}

// IsIgnored reports whether files and directories with this name never belong
// to a skill: version control data, caches, and files created by desktops and
// editors.
func IsIgnored(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", "__pycache__", ".DS_Store", "Thumbs.db", "__MACOSX":
		return true
	}
	switch {
	case strings.HasSuffix(name, "~"), strings.HasPrefix(name, ".#"):
		return true
	case strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") && len(name) > 1:
		return true
	case strings.HasPrefix(name, "."):
		ext := path.Ext(name)
		return len(ext) == 4 && strings.HasPrefix(ext, ".sw")
	}
	return false
}

// scriptExtensions lists the extensions of files that an interpreter runs.
var scriptExtensions = []string{".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".wasm"}

// IsScript reports whether a file has the extension of a script or an
// executable bit.
func IsScript(p string, mode fs.FileMode) bool {
	return slices.Contains(scriptExtensions, strings.ToLower(path.Ext(p))) || mode&0o111 != 0
}

// IsSkillFile reports whether name is SKILL.md in any letter case. The
// reference validator accepts SKILL.md and skill.md; published skills use two
// other spellings.
func IsSkillFile(name string) bool {
	return len(name) == len("SKILL.md") && strings.EqualFold(name, "SKILL.md")
}
