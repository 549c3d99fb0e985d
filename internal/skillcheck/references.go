package skillcheck

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/skill"
)

// maxReferences is the maximum number of missing files reported for a skill.
const maxReferences = 20

var (
	// markdownLink matches the target of a link or an image.
	markdownLink = lazyregexp.New(`\]\(<?([^()\s<>]+)>?(?:\s+"[^"]*")?\)`)
	// filePath matches the path of a file in one of the directories that skills
	// conventionally have.
	filePath = lazyregexp.New(`(?:^|[\s"'` + "`" + `(=/}])((?:references?|scripts|assets|templates|examples|resources)/(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z][\w]{0,9})`)
	// writesFile matches text before the name of a file that the skill writes.
	writesFile = lazyregexp.New(`(?i)(?:\b(?:creat|writ|sav|generat|output|export|produc|add|emit|ship|new|mkdir|touch|cp|mv|e\.g|for example|such as|like|named?|call)[a-z.]*\b|>{1,2}|-o|--out[a-z-]*)[^.!?\n]{0,60}$`)
)

// findReferences returns a warning for each file that the instructions of a skill refer
// to and that the skill does not have. line is the line of SKILL.md on which the
// instructions begin.
func findReferences(instructions string, line int, files skill.Manifest) skill.Diagnostics {
	known := map[string]bool{}
	for _, f := range files {
		for p := f.Path; p != "."; p = path.Dir(p) {
			known[p] = true // directories, too
		}
	}
	var out skill.Diagnostics
	reported := map[string]bool{}
	report := func(row string, at int, name string) {
		if reported[name] || known[name] || len(out) == maxReferences {
			return
		}
		reported[name] = true
		fix := "add the file, or remove the reference"
		if near := nearestFile(name, files); near != "" {
			fix = "did you mean " + printable.OneLine(near) + "? If not, add the file or remove the reference"
		}
		out = append(out, skill.Diagnostic{Severity: skill.Warning, Code: "reference-missing", Line: line, Column: utf8.RuneCountInString(row[:at]) + 1,
			Message: fmt.Sprintf("the instructions refer to %s, which the skill does not have", printable.OneLine(name)), Fix: fix})
	}
	fence := ""
	for row := range strings.Lines(instructions) {
		trimmed := strings.TrimLeft(row, " \t>")
		if mark := fenceMark(trimmed); mark != "" && (fence == "" || strings.HasPrefix(mark, fence)) {
			if fence == "" {
				fence = mark
			} else {
				fence = ""
			}
			line++
			continue
		}
		if fence == "" {
			for _, m := range markdownLink.FindAllStringSubmatchIndex(row, maxReferences) {
				if name, ok := linkedFile(row[m[2]:m[3]]); ok {
					report(row, m[2], name)
				}
			}
		}
		for _, m := range filePath.FindAllStringSubmatchIndex(row, maxReferences) {
			// A name in the directory of another skill or project, or of a file to write.
			if before := row[:m[2]]; !isInside(before) || writesFile.MatchString(before) || strings.ContainsAny(row[m[3]:min(m[3]+1, len(row))], "*{<$/") {
				continue
			}
			name := row[m[2]:m[3]]
			dir, _, _ := strings.Cut(name, "/")
			if placeholders[withoutExt(path.Base(name))] {
				continue
			}
			if fence == "" || known[dir] { // a block may show another project
				report(row, m[2], name)
			}
		}
		line++
	}
	return out
}

// firstLine returns the line of SKILL.md on which the instructions begin.
func firstLine(fsys fs.FS, s *skill.Skill) int {
	name, err := skillfile.Find(fsys)
	if err != nil {
		return 1
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil || len(data) < len(s.Instructions) {
		return 1
	}
	return 1 + bytes.Count(data[:len(data)-len(s.Instructions)], []byte("\n"))
}

// fenceMark returns the characters that open or close a code block, or "".
func fenceMark(row string) string {
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(row, c); len(row)-len(rest) >= 3 {
			return row[:len(row)-len(rest)]
		}
	}
	return ""
}

// isInside reports whether a path that follows text begins in the skill's directory.
func isInside(before string) bool {
	if !strings.HasSuffix(before, "../") {
		before = strings.TrimSuffix(before, "./")
	}
	for _, variable := range []string{"${SKILL_DIR}/", "${CLAUDE_SKILL_DIR}/", "$SKILL_DIR/", "{baseDir}/"} {
		if strings.HasSuffix(before, variable) {
			return true
		}
	}
	return !strings.HasSuffix(before, "/") && !strings.HasSuffix(before, "}")
}

// linkedFile returns the path in the skill to which a link leads. ok is false if it leads
// elsewhere, or is a placeholder.
func linkedFile(target string) (name string, ok bool) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" || strings.HasPrefix(u.Path, "/") || strings.ContainsAny(u.Path, "{}<>$*…") || strings.Contains(u.Path, "...") {
		return "", false
	}
	name = path.Clean(u.Path)
	if name == "." || strings.HasPrefix(name, "..") {
		return "", false
	}
	return name, strings.Contains(path.Base(name), ".") // other words are often placeholders, such as [title](url)
}

// placeholders holds names, without extension, that stand for any file.
var placeholders = map[string]bool{"filename": true, "file": true, "name": true}

// withoutExt returns a path without the extension of its last element.
func withoutExt(p string) string { return strings.TrimSuffix(p, path.Ext(p)) }

// nearestFile returns the file whose path is most similar to name, or "". A file that
// differs only in its extension is more similar than a file with another name.
func nearestFile(name string, files skill.Manifest) string {
	const most = 3
	best, found := most+1, ""
	for _, f := range files {
		if strings.EqualFold(f.Path, name) || path.Base(f.Path) == path.Base(name) {
			return f.Path
		}
		if withoutExt(f.Path) == withoutExt(name) {
			best, found = 0, f.Path
			continue
		}
		if far := editdistance.Distance([]rune(f.Path), []rune(name), most); far < best {
			best, found = far, f.Path
		}
	}
	return found
}
