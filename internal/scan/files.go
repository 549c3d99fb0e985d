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

// fileRules returns the rules about whole files.
func fileRules() []Rule {
	return []Rule{
		{ID: "executable", Severity: Medium, Target: Bytes, Message: "native program, which cannot be reviewed", Advice: "find out what it is, or build it from source"},
		{ID: "disguised", Severity: High, Target: Bytes, Message: "program disguised by its name", Advice: "do not open it"},
		{ID: "bytecode", Severity: Medium, Target: Bytes, Message: "compiled code, which cannot be reviewed", Advice: "ask for the source instead"},
		{ID: "archive", Severity: Low, Target: Bytes, Message: "archive; its content was not scanned", Advice: "unpack it and scan the content"},
		{ID: "binary", Severity: Info, Target: Bytes, Message: "neither text nor a known file type", Advice: "find out what it is"},
		{ID: "large", Severity: Low, Target: Bytes, Message: fmt.Sprintf("larger than %d MiB; the rest was not scanned", MaxFileBytes>>20), Advice: "find out what it is for"},
		{ID: "unreadable", Severity: Low, Target: Bytes, Message: "cannot be read and was not scanned", Advice: "check its permissions"},
		{ID: "link", Severity: Medium, Target: Name, Message: "symbolic link that points out of the skill, to a directory or to nothing, or not a regular file", Advice: "replace it with the file itself"},
		{ID: "name-hidden", Severity: High, Target: Name, Message: "name contains invisible characters or characters that change the text direction", Advice: "rename it, and find out where it came from"},
		{ID: "name-double", Severity: High, Target: Name, Message: "name has the extension of a document, followed by that of a program", Advice: "do not open it"},
		{ID: "name-dot", Severity: Info, Target: Name, Message: "hidden file", Advice: "find out what it is for"},
		{ID: "name-misspelt", Severity: Medium, Target: Name, Message: "the skill's name differs by one letter from that of a well-known package", Advice: "check the publisher"},
	}
}

// addListingFindings reports the files that were omitted when listing the
// skill.
func (s *scanner) addListingFindings(ds skill.Diagnostics) {
	for _, d := range ds {
		if d.Code == "file-link" || d.Code == "file-special" {
			name, _, _ := strings.Cut(d.Message, " is ")
			s.addFinding("link", position{file: name})
		}
	}
	if s.skill != nil && slices.ContainsFunc(strings.Split(s.skill.Name, "-"), isNearlyKnown) {
		s.addFinding("name-misspelt", s.fieldPosition("name", s.skill.Name))
	}
}

var (
	documentExtensions = []string{".pdf", ".doc", ".docx", ".txt", ".md", ".jpg", ".jpeg", ".png", ".gif", ".xlsx", ".csv", ".pptx", ".html"}
	programExtensions  = []string{".exe", ".scr", ".bat", ".cmd", ".com", ".vbs", ".js", ".sh", ".ps1", ".app", ".jar", ".msi", ".lnk", ".hta", ".py"}
)

// checkFileName reports suspicious file names.
func (s *scanner) checkFileName(f skill.File) {
	base := path.Base(f.Path)
	lower := strings.ToLower(base)
	at := position{file: f.Path, excerpt: base}
	if hasInvisible(f.Path) {
		s.addFinding("name-hidden", at)
	}
	ext := path.Ext(lower)
	if slices.Contains(programExtensions, ext) && slices.Contains(documentExtensions, path.Ext(strings.TrimRight(strings.TrimSuffix(lower, ext), " "))) {
		s.addFinding("name-double", at)
	}
	if strings.HasPrefix(base, ".") && !slices.Contains([]string{".gitignore", ".gitattributes", ".gitkeep", ".editorconfig", ".skillignore", ".prettierrc", ".env.example"}, base) {
		s.addFinding("name-dot", at)
	}
	if f.Size > MaxFileBytes {
		s.addFinding("large", at)
	}
}

// magicNumbers maps the first bytes of a file to a rule.
var magicNumbers = []struct{ magic, rule string }{
	{"\x7fELF", "executable"}, {"MZ", "executable"}, {"\xfe\xed\xfa\xce", "executable"}, {"\xfe\xed\xfa\xcf", "executable"}, {"\xcf\xfa\xed\xfe", "executable"}, {"\xce\xfa\xed\xfe", "executable"},
	{"\xca\xfe\xba\xbe", "executable"}, {"dex\n", "executable"}, {"!<arch>\n", "executable"},
	{"PK\x03\x04", "archive"}, {"\x1f\x8b", "archive"}, {"BZh", "archive"}, {"\xfd7zXZ", "archive"}, {"7z\xbc\xaf", "archive"}, {"Rar!", "archive"}, {"\x28\xb5\x2f\xfd", "archive"},
}

// officeExtensions lists the extensions of documents that are ZIP archives.
var officeExtensions = []string{".docx", ".xlsx", ".pptx", ".odt", ".ods", ".odp", ".epub", ".dotx", ".potx", ".xltx"}

// mediaExtensions lists the extensions of binary files that contain no code.
var mediaExtensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".bmp", ".tiff", ".pdf", ".ttf", ".otf", ".woff", ".woff2", ".eot", ".mp3", ".mp4", ".wav", ".ogg", ".webm", ".mov", ".svgz", ".avif"}

// checkBinary reports whether a file is binary, and adds findings for
// suspicious files.
func (s *scanner) checkBinary(f skill.File, data []byte) bool {
	ext := strings.ToLower(path.Ext(f.Path))
	at := position{file: f.Path}
	for _, k := range magicNumbers {
		if !bytes.HasPrefix(data, []byte(k.magic)) || k.magic == "MZ" && !hasNUL(data) {
			continue
		}
		switch {
		case k.rule == "executable" && (slices.Contains(mediaExtensions, ext) || slices.Contains(documentExtensions, ext)):
			s.addFinding("disguised", at)
		case k.rule == "archive" && slices.Contains(officeExtensions, ext):
		default:
			s.addFinding(k.rule, at)
		}
		return true
	}
	if bytes.HasPrefix(data, []byte("#!")) && slices.Contains(mediaExtensions, ext) {
		s.addFinding("disguised", at)
		return false
	}
	switch {
	case ext == ".pyc" || ext == ".pyo" || ext == ".class" || ext == ".luac":
		s.addFinding("bytecode", at)
		return true
	case !hasNUL(data) && (utf8.Valid(data[:min(len(data), 64<<10)]) || !slices.Contains(mediaExtensions, ext)):
		return false // text, or mostly text
	case slices.Contains(mediaExtensions, ext):
	case bytes.HasPrefix(data, []byte("\x00asm")) && ext == ".wasm":
		s.addFinding("executable", at)
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		s.addFinding("binary", at)
	default:
		s.addFinding("binary", at)
	}
	return true
}

func hasNUL(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 64<<10)], 0) >= 0 }
