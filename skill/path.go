package skill

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxPath     = 512 // bytes of the path of a file
	maxPathPart = 255
)

// CheckPath says why a slashed path cannot be that of a file of a skill on every
// system: it leaves the skill, or some system cannot store it or takes it for
// another. The code is one of those that a refused archive has, lower-case with
// hyphens and stable; both are empty for a path that has nothing wrong with it.
func CheckPath(p string) (code, message string) {
	switch {
	case len(p) > maxPath:
		return "path-too-long", fmt.Sprintf("its path has %d bytes, more than %d", len(p), maxPath)
	case !utf8.ValidString(p):
		return "name-encoding", "its name is not UTF-8"
	case strings.HasPrefix(p, "/"):
		return "absolute-path", "its path is absolute"
	case strings.Contains(p, `\`):
		return "backslash", "its path has a backslash; use /"
	case len(p) >= 2 && p[1] == ':':
		return "drive", "its path names a drive"
	case strings.ContainsFunc(p, unicode.IsControl):
		return "name-control", "its name has a control character"
	case strings.ContainsFunc(p, turns):
		return "name-control", "its name has a character that changes in which direction it is shown"
	case strings.Contains(p, ":"):
		return "name-colon", "its name has a colon, which some systems cannot store"
	}
	if i := strings.IndexAny(p, `<>"|?*`); i >= 0 {
		return "name-character", fmt.Sprintf("its name has a %c, which some systems cannot store", p[i])
	}
	for part := range strings.SplitSeq(p, "/") {
		switch {
		case part == "..":
			return "path-escape", "its path leads out by .."
		case part == "" || part == ".":
			return "path-unclean", "its path has an empty part or a dot; write it plainly"
		case len(part) > maxPathPart:
			return "path-too-long", fmt.Sprintf("a part of its path has %d bytes, more than %d", len(part), maxPathPart)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return "name-end", "a part of its path ends in a dot or a blank, which some systems leave out"
		case reserved(part):
			return "name-reserved", part + " is the name of a device on Windows"
		}
	}
	return "", ""
}

// turns reports whether a character makes a text be shown in another order
// than it is written in.
func turns(r rune) bool {
	return r == 0x200e || r == 0x200f || r == 0x061c || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// reserved reports whether a file of that name cannot be stored on Windows, where
// it is a device whatever its extension.
func reserved(part string) bool {
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
