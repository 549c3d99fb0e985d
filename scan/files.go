package scan

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/skill"
)

// fileRules are about files as a whole.
func fileRules() []Rule {
	return []Rule{
		{ID: "executable", Severity: Medium, Looks: Bytes, Message: "it is a program for a processor, which nobody can read", Advice: "find out what it is, or build it yourself from its source"},
		{ID: "disguised", Severity: High, Looks: Bytes, Message: "its name says that it is something else than the program it is", Advice: "do not open it"},
		{ID: "bytecode", Severity: Medium, Looks: Bytes, Message: "it is compiled code, which nobody can read", Advice: "ask for the source in its place"},
		{ID: "archive", Severity: Low, Looks: Bytes, Message: "it is an archive; what is in it was not looked at", Advice: "unpack it and scan what it holds"},
		{ID: "binary", Severity: Info, Looks: Bytes, Message: "it is no text, and of no kind that is known", Advice: "find out what it is"},
		{ID: "large", Severity: Low, Looks: Bytes, Message: fmt.Sprintf("it has more than %d MiB; what is beyond was not looked at", MaxFileBytes>>20), Advice: "find out what it is for"},
		{ID: "unreadable", Severity: Low, Looks: Bytes, Message: "it cannot be read and was not looked at", Advice: "check the rights to it"},
		{ID: "link", Severity: Medium, Looks: Name, Message: "it is a link out of the skill, to a directory or nowhere, or no file at all", Advice: "put the file itself there"},
		{ID: "name-hidden", Severity: High, Looks: Name, Message: "its name holds characters that cannot be seen, or show it in another order", Advice: "rename it, and find out how it came there"},
		{ID: "name-double", Severity: High, Looks: Name, Message: "its name ends as a document's, and then as a program's", Advice: "do not open it"},
		{ID: "name-dot", Severity: Info, Looks: Name, Message: "it is hidden from a listing", Advice: "see what it is for"},
		{ID: "name-misspelt", Severity: Medium, Looks: Name, Message: "the skill's name is nearly that of a well-known package", Advice: "check that it is by whom you think"},
	}
}

// listed reports what the listing of the skill passed over.
func (s *scanner) listed(ds skill.Diagnostics) {
	for _, d := range ds {
		if d.Code == "file-link" || d.Code == "file-special" {
			name, _, _ := strings.Cut(d.Message, " is ")
			s.add("link", place{file: name})
		}
	}
	if s.skill != nil && slices.ContainsFunc(strings.Split(s.skill.Name, "-"), nearlyKnown) {
		s.add("name-misspelt", s.field("name", s.skill.Name))
	}
}

var (
	documents = []string{".pdf", ".doc", ".docx", ".txt", ".md", ".jpg", ".jpeg", ".png", ".gif", ".xlsx", ".csv", ".pptx", ".html"}
	programs  = []string{".exe", ".scr", ".bat", ".cmd", ".com", ".vbs", ".js", ".sh", ".ps1", ".app", ".jar", ".msi", ".lnk", ".hta", ".py"}
)

// fileName looks at the name of a file.
func (s *scanner) fileName(f skill.File) {
	base := path.Base(f.Path)
	lower := strings.ToLower(base)
	at := place{file: f.Path, excerpt: base}
	if odd(f.Path) {
		s.add("name-hidden", at)
	}
	ext := path.Ext(lower)
	if slices.Contains(programs, ext) && slices.Contains(documents, path.Ext(strings.TrimRight(strings.TrimSuffix(lower, ext), " "))) {
		s.add("name-double", at)
	}
	if strings.HasPrefix(base, ".") && !slices.Contains([]string{".gitignore", ".gitattributes", ".gitkeep", ".editorconfig", ".skillignore", ".prettierrc", ".env.example"}, base) {
		s.add("name-dot", at)
	}
	if f.Size > MaxFileBytes {
		s.add("large", at)
	}
}

// kinds are what the first bytes of a file tell.
var kinds = []struct{ magic, rule string }{
	{"\x7fELF", "executable"}, {"MZ", "executable"}, {"\xfe\xed\xfa\xce", "executable"}, {"\xfe\xed\xfa\xcf", "executable"}, {"\xcf\xfa\xed\xfe", "executable"}, {"\xce\xfa\xed\xfe", "executable"},
	{"\xca\xfe\xba\xbe", "executable"}, {"dex\n", "executable"}, {"!<arch>\n", "executable"},
	{"PK\x03\x04", "archive"}, {"\x1f\x8b", "archive"}, {"BZh", "archive"}, {"\xfd7zXZ", "archive"}, {"7z\xbc\xaf", "archive"}, {"Rar!", "archive"}, {"\x28\xb5\x2f\xfd", "archive"},
}

// office are archives that documents are.
var office = []string{".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".dotx", ".potx", ".xltx"}

// media are files that are no text and hold nothing to run.
var media = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tiff", ".pdf", ".ttf", ".otf", ".woff", ".woff2", ".eot", ".mp3", ".mp4", ".wav", ".ogg", ".webm", ".mov", ".svgz", ".avif"}

// binary reports on a file that is no text, and whether it is none.
func (s *scanner) binary(f skill.File, data []byte) bool {
	ext := strings.ToLower(path.Ext(f.Path))
	at := place{file: f.Path}
	for _, k := range kinds {
		if !bytes.HasPrefix(data, []byte(k.magic)) || k.magic == "MZ" && !hasNUL(data) {
			continue
		}
		switch {
		case k.rule == "executable" && (slices.Contains(media, ext) || slices.Contains(documents, ext)):
			s.add("disguised", at)
		case k.rule == "archive" && slices.Contains(office, ext):
		default:
			s.add(k.rule, at)
		}
		return true
	}
	if bytes.HasPrefix(data, []byte("#!")) && slices.Contains(media, ext) {
		s.add("disguised", at)
		return false
	}
	switch {
	case ext == ".pyc" || ext == ".pyo" || ext == ".class" || ext == ".luac":
		s.add("bytecode", at)
		return true
	case !hasNUL(data) && (utf8.Valid(data[:min(len(data), 64<<10)]) || !slices.Contains(media, ext)):
		return false // text, or nearly
	case slices.Contains(media, ext):
	case bytes.HasPrefix(data, []byte("\x00asm")) && ext == ".wasm":
		s.add("executable", at)
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		s.add("binary", at)
	default:
		s.add("binary", at)
	}
	return true
}

func hasNUL(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 64<<10)], 0) >= 0 }
