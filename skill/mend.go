package skill

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// mends are the diagnostics that an edit can do away with.
var mends = map[string]mend{
	"byte-order-mark":        {(*mending).withoutMark, true},
	"leading-blank-lines":    {(*mending).withoutBlankLines, true},
	"line-endings-crlf":      {(*mending).withLineFeeds, true},
	"line-endings-mixed":     {(*mending).withLineFeeds, true},
	"body-nul-byte":          {(*mending).withoutNUL, true},
	"nul-byte":               {(*mending).withoutControls, false},
	"control-character":      {(*mending).withoutControls, false},
	"file-empty":             {(*mending).withFrontmatter, false},
	"frontmatter-missing":    {(*mending).withFrontmatter, false},
	"frontmatter-code-block": {(*mending).outOfCodeBlock, false},
	"frontmatter-unfenced":   {(*mending).fenced, false},
	"frontmatter-fence":      {(*mending).fenceAlone, false},
	"frontmatter-unclosed":   {(*mending).closed, false},

	"yaml-repaired":        {(*mending).quoted, true},
	"yaml-invalid":         {(*mending).readable, false},
	"yaml-tab":             {(*mending).withoutTabs, true},
	"yaml-document-end":    {(*mending).withoutLine, true},
	"yaml-flow":            {(*mending).inLines, true},
	"duplicate-key":        {(*mending).withoutEarlier, true},
	"metadata-values":      {(*mending).quotedValues, true},
	"unexpected-fields":    {(*mending).underMetadata, true},
	"tools-field":          {(*mending).asAllowedTools, true},
	"allowed-tools-commas": {(*mending).toolsInLine, true},
	"allowed-tools-list":   {(*mending).toolsInLine, true},

	"name-missing":       {(*mending).named, false},
	"name-empty":         {(*mending).named, false},
	"name-folder":        {(*mending).namedAsFolder, false},
	"name-unusable":      {(*mending).portable, false},
	"name-too-long":      {(*mending).portable, false},
	"name-case":          {(*mending).portable, false},
	"name-hyphen-edge":   {(*mending).portable, false},
	"name-hyphen-double": {(*mending).portable, false},
	"name-characters":    {(*mending).portable, false},
	"name-not-portable":  {(*mending).portable, false},

	"description-list":           {(*mending).describedAgain, true},
	"description-untyped":        {(*mending).describedAgain, true},
	"description-angle-brackets": {(*mending).withoutBrackets, false},
	"description-too-long":       {(*mending).shortened, false},
	"hidden-characters":          {(*mending).withoutHidden, false},
	"compatibility-type":         {(*mending).compatibilityQuoted, true},
}

// mend makes the text of a SKILL.md without a diagnostic; "" where it cannot. One of
// the form alone leaves what the skill says as it is.
type mend struct {
	how  func(*mending) string
	form bool
}

func (m *mending) withoutMark() string   { return strings.TrimPrefix(m.src, "\ufeff") }
func (m *mending) withLineFeeds() string { return strings.ReplaceAll(m.src, "\r\n", "\n") }
func (m *mending) withoutNUL() string    { return strings.ReplaceAll(m.src, "\x00", "") }

func (m *mending) withoutBlankLines() string {
	mark := ""
	rest, ok := strings.CutPrefix(m.src, "\ufeff")
	if ok {
		mark = "\ufeff"
	}
	return mark + rest[strings.Index(rest, strings.TrimLeft(rest, " \t\r\n")):]
}

// withoutControls leaves out what no YAML reader takes.
func (m *mending) withoutControls() string {
	return m.withBlock(strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && r != '\r' && r != 0x85 && (r < ' ' || 0x7f <= r && r < 0xa0 || r == 0xfffe || r == 0xffff) {
			return -1
		}
		return r
	}, m.block()))
}

// withFrontmatter begins a text that has none with fields that are to be filled in.
func (m *mending) withFrontmatter() string {
	name := m.likelyName(m.src)
	if name == "" {
		name = "my-skill"
	}
	return "---\nname: " + yamlQuote(name) + "\ndescription: \"\"\n---\n\n" + strings.TrimLeft(m.src, " \t\r\n")
}

// outOfCodeBlock takes the lines around fields away that make code of them.
func (m *mending) outOfCodeBlock() string {
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

// fenced puts fences around the fields at the beginning.
func (m *mending) fenced() string {
	text := strings.TrimLeft(m.src, " \t\r\n")
	return "---\n" + closeFields(text)
}

// closed puts a fence after the fields.
func (m *mending) closed() string {
	_, rest, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(m.src, "\ufeff"), " \t\r\n"), "\n")
	return m.src[:len(m.src)-len(rest)] + closeFields(rest)
}

// fenceAlone puts what else is on the line of the first fence on one of its own.
func (m *mending) fenceAlone() string {
	text := strings.TrimLeft(m.src, " \t\r\n")
	first, rest, _ := strings.Cut(text, "\n")
	if more := strings.TrimSpace(strings.Trim(strings.TrimRight(first, "\r"), "-")); more != "" {
		rest = more + "\n" + rest
	}
	return "---\n" + rest
}

var fieldLine = regexp.MustCompile(`^([A-Za-z0-9_-]+:(\s|$)|[ \t]+\S|- )`)

// closeFields is a text that begins with fields, with a fence after the last of them.
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

// likelyName is a name for a skill that has none: of its folder, its title, or the first
// heading; "" where there is nothing to make it of.
func (m *mending) likelyName(text string) string {
	from := m.folder
	if from == "" && m.skill != nil {
		from = m.skill.DisplayName
	}
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); from == "" && len(heading) < len(line) && strings.HasPrefix(heading, " ") {
			from = strings.TrimSpace(heading)
		}
	}
	if strings.Trim(Slug(from), "-") == "skill" && !strings.Contains(strings.ToLower(from), "skill") {
		return ""
	}
	return Slug(from)
}

func (m *mending) named() string {
	name := m.likelyName(m.src[m.lay.body:])
	if name == "" {
		return ""
	}
	if m.d.Code == "name-missing" {
		return m.withBlock("name: " + yamlQuote(name) + "\n" + m.block())
	}
	return m.withField("name", yamlQuote(name))
}

func (m *mending) namedAsFolder() string { return m.withField("name", yamlQuote(draftText(m.folder))) }

func (m *mending) portable() string {
	name, ok := m.value("name")
	if !ok {
		return ""
	}
	return m.withField("name", yamlQuote(Slug(name)))
}

func (m *mending) describedAgain() string {
	if m.skill == nil {
		return ""
	}
	return m.withField("description", asString(m.skill.Description))
}

func (m *mending) compatibilityQuoted() string {
	if m.skill == nil || m.skill.Compatibility == "" {
		return ""
	}
	return m.withField("compatibility", asString(m.skill.Compatibility))
}

var inBrackets = regexp.MustCompile(`<([^<>\s][^<>]*)>`)

func (m *mending) withoutBrackets() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	return m.withField("description", asString(inBrackets.ReplaceAllString(text, "$1")))
}

func (m *mending) withoutHidden() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	return m.withField("description", asString(strings.Map(func(r rune) rune {
		if hidden(string(r)) != 0 {
			return -1
		}
		return r
	}, text)))
}

// shortened moves what is too much of the description to the beginning of the
// instructions.
func (m *mending) shortened() string {
	text, ok := m.value("description")
	if !ok {
		return ""
	}
	head, rest := splitText(OneLine(text), 1024)
	described := m.withField("description", asString(head))
	if described == "" || rest == "" {
		return ""
	}
	body := m.src[m.lay.body:]
	return strings.TrimSuffix(described, body) + "\n" + rest + "\n" + body
}

// splitText splits a text behind a sentence, or else before a word, so that the first
// part has at most so many characters.
func splitText(text string, most int) (head, rest string) {
	if utf8.RuneCountInString(text) <= most {
		return text, ""
	}
	end := len(string([]rune(text)[:most]))
	at := strings.LastIndex(text[:end], ". ") + 1
	if at < end/2 {
		at = strings.LastIndexByte(text[:end], ' ')
	}
	if at <= 0 {
		at = end
	}
	return strings.TrimSpace(text[:at]), strings.TrimSpace(text[at:])
}
