package skill

import (
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// fixFor returns the fix for a diagnostic code. If there is none, the apply
// function of the result is nil.
func fixFor(code string) fix {
	switch code {
	case "byte-order-mark":
		return fix{(*fixer).removeByteOrderMark, true}
	case "leading-blank-lines":
		return fix{(*fixer).removeLeadingBlankLines, true}
	case "line-endings-crlf", "line-endings-mixed":
		return fix{(*fixer).useLineFeeds, true}
	case "body-nul-byte":
		return fix{(*fixer).removeNUL, true}
	case "nul-byte", "control-character":
		return fix{(*fixer).removeControls, false}
	case "file-empty", "frontmatter-missing":
		return fix{(*fixer).addFrontmatter, false}
	case "frontmatter-code-block":
		return fix{(*fixer).unwrapCodeBlock, false}
	case "frontmatter-unfenced":
		return fix{(*fixer).addFences, false}
	case "frontmatter-fence":
		return fix{(*fixer).isolateFence, false}
	case "frontmatter-unclosed":
		return fix{(*fixer).addClosingFence, false}
	case "yaml-repaired":
		return fix{(*fixer).applyRepair, true}
	case "yaml-invalid":
		return fix{(*fixer).fixSyntax, false}
	case "yaml-tab":
		return fix{(*fixer).replaceTabs, true}
	case "yaml-document-end":
		return fix{(*fixer).deleteLine, true}
	case "yaml-flow":
		return fix{(*fixer).expandFlow, true}
	case "duplicate-key":
		return fix{(*fixer).removeEarlierKey, true}
	case "metadata-values":
		return fix{(*fixer).quoteMetadata, true}
	case "unexpected-fields":
		return fix{(*fixer).moveToMetadata, true}
	case "tools-field":
		return fix{(*fixer).renameToolsField, true}
	case "allowed-tools-commas", "allowed-tools-list":
		return fix{(*fixer).joinAllowedTools, true}
	case "name-missing", "name-empty":
		return fix{(*fixer).addName, false}
	case "name-folder":
		return fix{(*fixer).useFolderName, false}
	case "name-unusable", "name-too-long", "name-case", "name-hyphen-edge", "name-hyphen-double", "name-characters", "name-not-portable":
		return fix{(*fixer).makeNamePortable, false}
	case "description-list", "description-untyped":
		return fix{(*fixer).rewriteDescription, true}
	case "description-angle-brackets":
		return fix{(*fixer).removeAngleBrackets, false}
	case "description-too-long":
		return fix{(*fixer).shortenDescription, false}
	case "hidden-characters":
		return fix{(*fixer).removeHiddenCharacters, false}
	case "compatibility-type":
		return fix{(*fixer).quoteCompatibility, true}
	}
	return fix{}
}

// fix is the fix for a kind of diagnostic. apply returns the fixed SKILL.md, or
// "" if it cannot be fixed. formOnly means that the content must not change.
type fix struct {
	apply    func(*fixer) string
	formOnly bool
}

func (m *fixer) removeByteOrderMark() string { return strings.TrimPrefix(m.src, "\ufeff") }
func (m *fixer) useLineFeeds() string        { return strings.ReplaceAll(m.src, "\r\n", "\n") }
func (m *fixer) removeNUL() string           { return strings.ReplaceAll(m.src, "\x00", "") }

func (m *fixer) removeLeadingBlankLines() string {
	mark := ""
	rest, ok := strings.CutPrefix(m.src, "\ufeff")
	if ok {
		mark = "\ufeff"
	}
	return mark + rest[strings.Index(rest, strings.TrimLeft(rest, " \t\r\n")):]
}

// removeControls deletes the characters that YAML does not allow.
func (m *fixer) removeControls() string {
	return m.replaceBlock(strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && r != '\r' && r != 0x85 && (r < ' ' || 0x7f <= r && r < 0xa0 || r == 0xfffe || r == 0xffff) {
			return -1
		}
		return r
	}, m.block()))
}

// addFrontmatter adds frontmatter with fields for the author to complete.
func (m *fixer) addFrontmatter() string {
	name := m.guessName(m.src)
	if name == "" {
		name = "my-skill"
	}
	return "---\nname: " + yamlQuote(name) + "\ndescription: \"\"\n---\n\n" + strings.TrimLeft(m.src, " \t\r\n")
}

// unwrapCodeBlock removes the code block around the frontmatter.
func (m *fixer) unwrapCodeBlock() string {
	lines := strings.SplitAfter(strings.TrimLeft(m.src, " \t\r\n"), "\n")
	for i := 1; i < len(lines); i++ {
		if strings.TrimSpace(lines[i]) != "```" {
			continue
		}
		if isFence([]byte(strings.TrimRight(lines[1], "\r\n"))) {
			return strings.Join(lines[1:i], "") + strings.Join(lines[i+1:], "")
		}
		lines[0], lines[i] = "---\n", "---\n"
		return strings.Join(lines, "")
	}
	return ""
}

// addFences puts fences around the fields at the start of the file.
func (m *fixer) addFences() string {
	text := strings.TrimLeft(m.src, " \t\r\n")
	return "---\n" + closeFields(text)
}

// addClosingFence adds a fence after the fields.
func (m *fixer) addClosingFence() string {
	_, rest, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(m.src, "\ufeff"), " \t\r\n"), "\n")
	return m.src[:len(m.src)-len(rest)] + closeFields(rest)
}

// isolateFence moves other text on the first fence's line to a line of its own.
func (m *fixer) isolateFence() string {
	text := strings.TrimLeft(m.src, " \t\r\n")
	first, rest, _ := strings.Cut(text, "\n")
	if more := strings.TrimSpace(strings.Trim(strings.TrimRight(first, "\r"), "-")); more != "" {
		rest = more + "\n" + rest
	}
	return "---\n" + rest
}

var fieldLine = lazyregexp.New(`^([A-Za-z0-9_-]+:(\s|$)|[ \t]+\S|- )`)

// closeFields adds a fence after the fields at the start of text. It returns ""
// if text does not start with a field.
func closeFields(text string) string {
	lines := strings.SplitAfter(text, "\n")
	n := 0
	for n < len(lines) && fieldLine.MatchString(lines[n]) {
		n++
	}
	if n == 0 {
		return ""
	}
	if n < len(lines) && isFence([]byte(strings.TrimRight(lines[n], "\r\n"))) {
		return text
	}
	head := strings.TrimRight(strings.Join(lines[:n], ""), "\r\n")
	return head + "\n---\n" + strings.Join(lines[n:], "")
}

// guessName derives a name from the folder, the title or the first heading of a
// skill without a name. It returns "" if none of these is usable.
func (m *fixer) guessName(text string) string {
	from := m.folder
	if from == "" && m.skill != nil {
		from = m.skill.DisplayName
	}
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); from == "" && len(heading) < len(line) && strings.HasPrefix(heading, " ") {
			from = strings.TrimSpace(heading)
		}
	}
	if strings.Trim(skillname.Slug(from), "-") == "skill" && !strings.Contains(strings.ToLower(from), "skill") {
		return ""
	}
	return skillname.Slug(from)
}

func (m *fixer) addName() string {
	name := m.guessName(m.src[m.lay.body:])
	if name == "" {
		return ""
	}
	if m.d.Code == "name-missing" {
		return m.replaceBlock("name: " + yamlQuote(name) + "\n" + m.block())
	}
	return m.replaceField("name", yamlQuote(name))
}

func (m *fixer) useFolderName() string { return m.replaceField("name", yamlQuote(draftText(m.folder))) }

func (m *fixer) makeNamePortable() string {
	name, ok := m.value("name")
	if !ok {
		return ""
	}
	return m.replaceField("name", yamlQuote(skillname.Slug(name)))
}

func (m *fixer) rewriteDescription() string {
	if m.skill == nil {
		return ""
	}
	return m.replaceField("description", quoteString(m.skill.Description))
}

func (m *fixer) quoteCompatibility() string {
	if m.skill == nil || m.skill.Compatibility == "" {
		return ""
	}
	return m.replaceField("compatibility", quoteString(m.skill.Compatibility))
}

var inBrackets = lazyregexp.New(`<([^<>\s][^<>]*)>`)

func (m *fixer) removeAngleBrackets() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	return m.replaceField("description", quoteString(inBrackets.ReplaceAllString(text, "$1")))
}

func (m *fixer) removeHiddenCharacters() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	return m.replaceField("description", quoteString(untrusted.New(text).ForPage()))
}

// shortenDescription moves the end of a long description to the start of the
// instructions.
func (m *fixer) shortenDescription() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	head, rest := splitText(printable.OneLine(text), 1024)
	described := m.replaceField("description", quoteString(head))
	if described == "" || rest == "" {
		return ""
	}
	body := m.src[m.lay.body:]
	return strings.TrimSuffix(described, body) + "\n" + rest + "\n" + body
}

// splitText splits text after a sentence if possible, and otherwise between
// words. head has at most limit characters.
func splitText(text string, limit int) (head, rest string) {
	if utf8.RuneCountInString(text) <= limit {
		return text, ""
	}
	end := len(string([]rune(text)[:limit]))
	at := strings.LastIndex(text[:end], ". ") + 1
	if at < end/2 {
		at = strings.LastIndexByte(text[:end], ' ')
	}
	if at <= 0 {
		at = end
	}
	return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at:])
}
