package script

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/skill"
)

// skillPathPrefixes lists path prefixes that refer to the skill's directory:
// its path in a sandbox, and variables used in instructions.
var skillPathPrefixes = []string{"/skill/", "${SKILL_DIR}/", "$SKILL_DIR/", "${CLAUDE_SKILL_DIR}/", "$CLAUDE_SKILL_DIR/",
	"${LOADOUT_SKILL}/", "$LOADOUT_SKILL/", "{baseDir}/"}

// Find returns the path of the script to which name refers, as typed by a user
// or model. files lists the skill's files. A name without a folder also selects
// a script in a subfolder if only one has that base name.
//
// The error is an [OutsideError], [NotFoundError] or [NotScriptError]. Find
// opens a file only if it has no script extension, to read its first bytes.
func Find(fsys fs.FS, files skill.Manifest, name string) (string, error) {
	p, ok := cleanPath(name)
	if !ok {
		return "", &OutsideError{name}
	}
	if f, ok := files.Find(p); ok {
		if isScript(fsys, f) {
			return p, nil
		}
		return "", &NotScriptError{p, Scripts(fsys, files)}
	}
	scripts := Scripts(fsys, files)
	if !strings.Contains(p, "/") {
		same := func(q string) bool { return path.Base(q) == p }
		found := slices.DeleteFunc(slices.Clone(scripts), func(q string) bool { return !same(q) })
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			return "", &NotFoundError{name, found, scripts}
		}
		if i := slices.IndexFunc(files, func(f skill.File) bool { return same(f.Path) }); i >= 0 {
			return "", &NotScriptError{files[i].Path, scripts}
		}
	}
	return "", &NotFoundError{name, similarScripts(p, scripts), scripts}
}

// Scripts returns the paths of the skill's scripts, in the order of files. The
// result is never nil.
func Scripts(fsys fs.FS, files skill.Manifest) []string {
	out := []string{}
	for _, f := range files {
		if isScript(fsys, f) {
			out = append(out, f.Path)
		}
	}
	return out
}

// cleanPath converts a path as typed by a user or model to the form used in a
// file listing. It returns false if the path is invalid or points outside the
// skill.
func cleanPath(name string) (string, bool) {
	p := strings.TrimSpace(name)
	if n := len(p); n > 1 && (p[0] == '"' || p[0] == '\'' || p[0] == '`') && p[n-1] == p[0] {
		p = p[1 : n-1]
	}
	p = strings.ReplaceAll(p, `\`, "/")
	for _, m := range skillPathPrefixes {
		if rest, ok := strings.CutPrefix(p, m); ok {
			p = strings.TrimLeft(rest, "/")
			break
		}
	}
	if !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) || path.IsAbs(p) {
		return "", false
	}
	if len(p) > 1 && p[1] == ':' && (len(p) == 2 || p[2] == '/') { // a Windows drive
		return "", false
	}
	p = path.Clean(p)
	return p, p != "." && fs.ValidPath(p)
}

// isScript reports whether a file can be run as a script.
func isScript(fsys fs.FS, f skill.File) bool {
	if _, ok := byExtension(f.Path); ok {
		return true
	}
	mode := fs.FileMode(0)
	if f.Script {
		mode = 0o111
	}
	first, _, err := readHead(fsys, f.Path)
	if err != nil {
		return false
	}
	_, shebang, _ := parseShebang(first)
	return isELF(first) || shebang && mayBeScript(f.Path, mode)
}

// similarScripts returns the scripts that p may refer to: those with the same
// base name in another folder, or with a base name that differs in case,
// punctuation, extension or up to two letters.
func similarScripts(p string, scripts []string) []string {
	type match struct {
		path string
		far  int
	}
	base := func(p string) []rune { return editdistance.Normalize(strings.TrimSuffix(path.Base(p), path.Ext(p))) }
	asked := base(p)
	most := min(2, len(asked)/3)
	var found []match
	for _, s := range scripts {
		far := editdistance.Distance(asked, base(s), most)
		if far > most {
			continue
		}
		if path.Base(s) != path.Base(p) {
			far++ // the same name in another folder ranks first
		}
		found = append(found, match{s, far})
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.far, b.far) })
	var out []string
	for _, m := range found[:min(len(found), 3)] {
		out = append(out, m.path)
	}
	return out
}
