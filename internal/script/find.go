package script

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/skill"
)

// mounts are what a path may begin with instead of nothing: where the skill
// lies in a sandbox, and the names that instructions use for that place.
var mounts = []string{"/skill/", "${SKILL_DIR}/", "$SKILL_DIR/", "${CLAUDE_SKILL_DIR}/", "$CLAUDE_SKILL_DIR/",
	"${LOADOUT_SKILL}/", "$LOADOUT_SKILL/", "{baseDir}/"}

// Find returns the path in the skill of the script that name, as a model or a
// person typed it, stands for. files is the listing of the skill. A name
// without a folder that is not at the top of the skill stands for the only
// script of that base name.
//
// The error is an [OutsideError], [NotFoundError] or [NotScriptError]. Files
// are opened only to look at the first bytes of one without a script's
// extension.
func Find(fsys fs.FS, files skill.Manifest, name string) (string, error) {
	p, ok := clean(name)
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
	return "", &NotFoundError{name, guesses(p, scripts), scripts}
}

// Scripts lists the files of the skill that can be run, in the order of files;
// never nil.
func Scripts(fsys fs.FS, files skill.Manifest) []string {
	out := []string{}
	for _, f := range files {
		if isScript(fsys, f) {
			out = append(out, f.Path)
		}
	}
	return out
}

// clean brings a typed path to the form that a listing has. It reports false
// for one that leads out of the skill or is none.
func clean(name string) (string, bool) {
	p := strings.TrimSpace(name)
	if n := len(p); n > 1 && (p[0] == '"' || p[0] == '\'' || p[0] == '`') && p[n-1] == p[0] {
		p = p[1 : n-1]
	}
	p = strings.ReplaceAll(p, `\`, "/")
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(p, m); ok {
			p = strings.TrimLeft(rest, "/")
			break
		}
	}
	if !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) || path.IsAbs(p) {
		return "", false
	}
	if len(p) > 1 && p[1] == ':' && (len(p) == 2 || p[2] == '/') { // a drive of Windows
		return "", false
	}
	p = path.Clean(p)
	return p, p != "." && fs.ValidPath(p)
}

// isScript reports whether a file can be run.
func isScript(fsys fs.FS, f skill.File) bool {
	if _, ok := byExtension(f.Path); ok {
		return true
	}
	mode := fs.FileMode(0)
	if f.Script {
		mode = 0o111
	}
	first, _, err := head(fsys, f.Path)
	if err != nil {
		return false
	}
	_, shebang, _ := parseShebang(first)
	return isELF(first) || shebang && maybeScript(f.Path, mode)
}

// guesses finds the scripts that a path may have been meant for: of the same base
// name elsewhere, or spelled the same but for case, punctuation, extension or
// two letters.
func guesses(p string, scripts []string) []string {
	type match struct {
		path string
		far  int
	}
	base := func(p string) []rune { return near.Letters(strings.TrimSuffix(path.Base(p), path.Ext(p))) }
	asked := base(p)
	most := min(2, len(asked)/3)
	var found []match
	for _, s := range scripts {
		far := near.Distance(asked, base(s), most)
		if far > most {
			continue
		}
		if path.Base(s) != path.Base(p) {
			far++ // the very name in another folder is the best guess
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
