package skill

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// specFields lists the fields defined by the specification, sorted.
var specFields = []string{"allowed-tools", "compatibility", "description", "license", "metadata", "name"}

// decoder converts a frontmatter mapping to a Skill. A fault in one field does
// not affect the others.
type decoder struct {
	ds     *Diagnostics
	line   int // file line of the block's first line
	folder string
	top    map[string]*yaml.Node
	meta   map[string]*yaml.Node
}

func (d *decoder) add(sev Severity, rule int, code string, at *yaml.Node, msg, fix string) {
	line, column := d.line, 1
	if at != nil {
		line, column = d.line+at.Line-1, at.Column
	}
	d.ds.add(Diagnostic{sev, code, line, column, msg, fix, rule})
}

func (d *decoder) skill(root *yaml.Node) *Skill {
	d.top = index(root)
	s := &Skill{}
	if m := d.top["metadata"]; m != nil {
		d.metadata(m, s)
	}
	extra := d.unexpected(root)
	d.name(s)
	d.description(s)
	d.compatibility(s)
	s.License = d.text("license")
	d.allowedTools(s)
	s.UserInvocable = true
	if extra || len(d.meta) > 0 {
		d.extensions(s)
	}
	return s
}

// index returns the values of a mapping by key, with aliases resolved. If a key
// is repeated, the last one wins.
func index(n *yaml.Node) map[string]*yaml.Node {
	m := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Kind == yaml.ScalarNode {
			m[key.Value] = resolve(n.Content[i+1])
		}
	}
	return m
}

func (d *decoder) metadata(n *yaml.Node, s *Skill) {
	if n.Kind != yaml.MappingNode {
		d.add(Warning, 0, "metadata-not-a-map", n, "metadata is not a map and is ignored", "write it as indented lines of the form key: value")
		return
	}
	d.meta = index(n)
	s.Metadata = make(map[string]string, len(d.meta))
	var odd []string
	for k, v := range d.meta {
		s.Metadata[k] = scalarText(v)
		if v.Kind != yaml.ScalarNode || scalarKind(v) != "str" {
			odd = append(odd, k)
		}
	}
	if len(odd) > 0 {
		slices.Sort(odd)
		d.add(Info, 0, "metadata-values", n, "metadata values that are not strings: "+list(odd), "put scalars in quotes; the specification allows strings only")
	}
}

// unexpected reports whether root has fields that the specification does not
// define.
func (d *decoder) unexpected(root *yaml.Node) bool {
	var extra []string
	var first *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if key.Kind != yaml.ScalarNode || slices.Contains(specFields, key.Value) || slices.Contains(extra, key.Value) {
			continue
		}
		if first == nil {
			first = key
		}
		if extra = append(extra, shorten(key.Value)); len(extra) == 100 {
			break // enough reported
		}
	}
	if first == nil {
		return false
	}
	slices.Sort(extra)
	d.add(Info, 8, "unexpected-fields", first, fmt.Sprintf("Unexpected fields in frontmatter: %s. Only ['%s'] are allowed.",
		strings.Join(extra, ", "), strings.Join(specFields, "', '")), "move them under metadata:, where other programs ignore them")
	return true
}

func (d *decoder) name(s *Skill) {
	n, given := d.top["name"]
	switch {
	case !given:
		d.fallbackName(s, nil, 9, "name-missing", "Missing required field in frontmatter: name")
		return
	case !isText(n) || skillname.Trim(n.Value) == "":
		d.fallbackName(s, n, 10, "name-empty", "Field 'name' must be a non-empty string")
		return
	}
	name := norm.NFKC.String(skillname.Trim(n.Value)) // like the reference validator
	d.checkNameForm(n, name)
	if d.folder != "" && norm.NFKC.String(d.folder) != name {
		d.add(Warning, 16, "name-folder", n, fmt.Sprintf("Directory name '%s' must match skill name '%s'", shorten(d.folder), shorten(name)),
			fmt.Sprintf("rename the folder to %s, or the skill to %s", shorten(name), shorten(d.folder)))
	}
	switch {
	case isNull(n): // the reference validator reads ~ and null as text
		d.fallbackName(s, n, 0, "name-empty", "the name is null")
		return
	case !usableName(name):
		d.fallbackName(s, n, 0, "name-unusable", fmt.Sprintf("the name %s is too long, or contains a path separator or an unprintable character", quote(name)))
		return
	}
	s.Name = skillname.Trim(name)
	if lower := strings.ToLower(name); strings.Contains(lower, "claude") || strings.Contains(lower, "anthropic") {
		d.add(Info, 0, "name-reserved", n, fmt.Sprintf("the name %s contains a word that some platforms reserve", quote(name)), "choose a name without claude or anthropic")
	}
}

// checkNameForm checks a name against rules 11 to 15 of the reference validator
// and our own portability rule.
func (d *decoder) checkNameForm(n *yaml.Node, name string) {
	if skillname.IsPortable(name) {
		return
	}
	rename := "name it " + skillname.Slug(name)
	if count := utf8.RuneCountInString(name); count > 64 {
		d.add(Warning, 11, "name-too-long", n, fmt.Sprintf("Skill name '%s' exceeds 64 character limit (%d chars)", shorten(name), count), "shorten it to 64 characters")
	}
	if name != strings.ToLower(name) {
		d.add(Warning, 12, "name-case", n, fmt.Sprintf("Skill name '%s' must be lowercase", shorten(name)), rename)
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		d.add(Warning, 13, "name-hyphen-edge", n, "Skill name cannot start or end with a hyphen", rename)
	}
	if strings.Contains(name, "--") {
		d.add(Warning, 14, "name-hyphen-double", n, "Skill name cannot contain consecutive hyphens", rename)
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		d.add(Warning, 15, "name-characters", n, fmt.Sprintf("Skill name '%s' contains invalid characters. Only letters, digits, and hyphens are allowed.", shorten(name)), rename)
	} else if !isASCII(name) {
		d.add(Info, 0, "name-not-portable", n, fmt.Sprintf("the name %s contains characters outside a-z, 0-9 and -, which many programs reject", quote(name)), rename)
	}
}

// fallbackName names the skill after its folder, because the skill has no
// usable name.
func (d *decoder) fallbackName(s *Skill, at *yaml.Node, rule int, code, msg string) {
	folder := skillname.Normalize(d.folder)
	if folder == "" || !usableName(folder) {
		d.add(Error, rule, code, at, msg, "add a line name: with a name of lowercase letters, digits and hyphens")
		return
	}
	s.Name, s.Unnamed = folder, true
	d.add(Warning, rule, code, at, fmt.Sprintf("%s; it loads under its folder's name %s", msg, quote(folder)), "add the line name: "+skillname.Slug(folder))
}

func (d *decoder) description(s *Skill) {
	const fix = "add a line description: that says what the skill does and when to use it"
	n, given := d.top["description"]
	if !given {
		d.add(Error, 17, "description-missing", nil, "Missing required field in frontmatter: description", fix)
		return
	}
	raw := scalarText(n)
	switch {
	case skillname.Trim(raw) == "" || isNull(n) || n.Kind == yaml.MappingNode:
		rule := 18
		if isNull(n) && n.Value != "" {
			rule = 0 // the reference validator reads ~ and null as text
		}
		d.add(Error, rule, "description-empty", n, "Field 'description' must be a non-empty string", fix)
		return
	case n.Kind == yaml.SequenceNode:
		d.add(Warning, 18, "description-list", n, "Field 'description' must be a non-empty string; the items of the list are joined", "write it as one string")
	case !isText(n):
		d.add(Warning, 18, "description-untyped", n, "Field 'description' must be a non-empty string, and YAML has a meaning for "+n.Value, "put it in quotes")
	}
	s.Description = skillname.Trim(raw)
	if count := utf8.RuneCountInString(raw); count > 1024 {
		d.add(Warning, 19, "description-too-long", n, fmt.Sprintf("Description exceeds 1024 character limit (%d chars)", count),
			"keep the text that says when to use the skill and move the rest into the instructions")
	}
	if n.Kind == yaml.ScalarNode && n.LineComment != "" {
		d.add(Warning, 0, "description-comment", n, "the description ends before “"+shorten(n.LineComment)+"”, which YAML reads as a comment", "put the description in quotes, or delete the comment")
	}
	if i, j := strings.IndexByte(raw, '<'), strings.IndexByte(raw, '>'); i >= 0 && j > i {
		d.add(Warning, 0, "description-angle-brackets", n, "the description contains <…>, which some programs reject or read as markup", "write it without angle brackets")
	}
	if isPlaceholder(s.Description) {
		d.add(Warning, 0, "description-placeholder", n, "the description is a placeholder", "say what the skill does and when to use it")
	}
	if found := untrusted.Inspect(raw); !found.Clean() {
		d.add(Warning, 0, "hidden-characters", n, "the description contains the invisible character "+found.First, "delete it and find out where it came from")
	}
}

func (d *decoder) compatibility(s *Skill) {
	n := d.top["compatibility"]
	if n == nil {
		return
	}
	s.Compatibility = scalarText(n)
	if !isText(n) {
		d.add(Warning, 20, "compatibility-type", n, "Field 'compatibility' must be a string", "write it as a string")
		return
	}
	if count := utf8.RuneCountInString(n.Value); count > 500 {
		d.add(Warning, 21, "compatibility-too-long", n, fmt.Sprintf("Compatibility exceeds 500 character limit (%d chars)", count), "shorten it to 500 characters")
	}
}

func (d *decoder) allowedTools(s *Skill) {
	n := d.lookup("allowed-tools", "allowed_tools", "allowedTools")
	if n == nil {
		if t := d.top["tools"]; t != nil && !isToolList(t) {
			n = t
			d.add(Info, 0, "tools-field", t, "the field tools is read as allowed-tools", "name it allowed-tools")
		}
	}
	if n == nil {
		return
	}
	s.AllowedTools = toolPatterns(n)
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, ",") && len(s.AllowedTools) > 1 {
		d.add(Info, 0, "allowed-tools-commas", n, "allowed-tools is separated by commas", "separate tools by spaces, as the specification says")
	}
	if n.Kind == yaml.SequenceNode {
		d.add(Info, 0, "allowed-tools-list", n, "allowed-tools is a list", "write it as one string, separated by spaces")
	}
}

func (d *decoder) extensions(s *Skill) {
	s.DisplayName = d.text("displayName", "display_name", "display-name", "title")
	s.Version = d.text("version")
	s.Author = d.text("author")
	s.Category = d.text("category")
	s.Model = d.text("model")
	s.ArgumentHint = d.text("argument-hint", "argument_hint", "argumentHint")
	s.WhenToUse = d.text("when_to_use", "when-to-use", "whenToUse")
	s.Tags = d.list("tags", "keywords")
	s.BindShells = d.list("bindShells", "bind_shells", "bind-shells")
	d.dependencies(s)
	s.Preload = d.boolean(false, "preload")
	s.DisableModelInvocation = d.boolean(false, "disable-model-invocation", "disable_model_invocation", "disableModelInvocation")
	s.UserInvocable = d.boolean(true, "user-invocable", "user_invocable", "userInvocable")
	s.Config = d.object("config")
	d.tools(s)
	d.provider(s)
	d.function(s)
	d.servers(s)
	d.requirements(s)
	d.examples(s)
}

// dependencies reads the names of the skills on which the skill depends. It
// reports a diagnostic for names of Python modules, which belong to another
// system.
func (d *decoder) dependencies(s *Skill) {
	s.Dependencies = d.list("dependencies")
	var modules []string
	for _, ref := range s.Dependencies {
		if skillname.IsPythonModule(ref) {
			modules = append(modules, shorten(ref))
		}
	}
	if len(modules) > 0 {
		d.add(Info, 0, "dependency-python-module", d.lookup("dependencies"), "dependencies that name Python modules and no skills: "+list(modules),
			"delete them; they are ignored unless there is a skill of that name")
	}
}

func (d *decoder) tools(s *Skill) {
	n := d.lookup("tools")
	if n == nil || !isToolList(n) {
		return
	}
	for _, item := range n.Content[:min(len(n.Content), maxListItems)] {
		m := d.nested(item)
		t := Tool{Name: m.text("name"), Provider: m.text("provider"), Config: m.object("config"), Description: m.text("description"),
			Parameters: m.object("parameters"), Category: m.text("category"), ReadOnly: m.boolean(false, "read_only", "read-only", "readOnly")}
		if t.Name == "" {
			d.add(Warning, 0, "tool-without-name", item, "a tool in tools has no name and is ignored", "add name: to it")
			continue
		}
		s.Tools = append(s.Tools, t)
	}
}

func (d *decoder) provider(s *Skill) {
	n := d.lookup("provider")
	if n == nil || isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.add(Warning, 0, "provider-not-a-map", n, "provider is not a map and is ignored", "set module and class, command, or wasm")
		return
	}
	m := d.nested(n)
	p := &Provider{Module: m.text("module"), Class: m.text("class"), WASM: m.text("wasm")}
	if c := m.lookup("command"); c != nil {
		p.Command = stringList(c, false)
	}
	if p.Class != "" && p.Module == "" {
		p.Module = "provider"
	}
	ways := 0
	for _, given := range []bool{p.Class != "", len(p.Command) > 0, p.WASM != ""} {
		if given {
			ways++
		}
	}
	if ways != 1 {
		d.add(Warning, 0, "provider-incomplete", n, "provider must have exactly one of class, command and wasm", "keep one of them")
		return
	}
	s.Provider = p
}

func (d *decoder) servers(s *Skill) {
	n := d.lookup("mcpServers", "mcp_servers", "mcp-servers")
	if n == nil || isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		s.MCPServers.Names = stringList(n, true)
		if n.Kind == yaml.SequenceNode && len(s.MCPServers.Names) < len(n.Content) {
			d.add(Warning, 0, "mcp-servers", n, "items of the list mcpServers that are not names are ignored", "write a map of server configurations by name")
		}
		return
	}
	configs, err := toJSON(n)
	if err != nil {
		d.add(Warning, 0, "mcp-servers", n, "mcpServers is ignored: "+err.Error(), "write a map of server configurations by name")
		return
	}
	s.MCPServers.Configs = configs
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := resolve(n.Content[i]).Value; !slices.Contains(s.MCPServers.Names, name) {
			s.MCPServers.Names = append(s.MCPServers.Names, name)
		}
	}
}

// nested returns a decoder for a map in the frontmatter.
func (d *decoder) nested(n *yaml.Node) *decoder {
	return &decoder{ds: d.ds, line: d.line, top: index(resolve(n))}
}

// lookup returns the value of the first of the given fields that exists at the
// top level, or else under metadata.
func (d *decoder) lookup(names ...string) *yaml.Node {
	for _, m := range []map[string]*yaml.Node{d.top, d.meta} {
		for _, name := range names {
			if n := m[name]; n != nil {
				return n
			}
		}
	}
	return nil
}

func (d *decoder) text(names ...string) string {
	if n := d.lookup(names...); n != nil && !isNull(n) {
		return scalarText(n)
	}
	return ""
}

func (d *decoder) list(names ...string) []string {
	if n := d.lookup(names...); n != nil && !isNull(n) {
		return stringList(n, true)
	}
	return nil
}

func (d *decoder) boolean(def bool, names ...string) bool {
	n := d.lookup(names...)
	if n == nil || isNull(n) {
		return def
	}
	switch strings.ToLower(scalarText(n)) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	}
	d.add(Warning, 0, "not-a-boolean", n, fmt.Sprintf("%s is neither true nor false; using %v", names[0], def), "write true or false")
	return def
}

func (d *decoder) object(name string) json.RawMessage {
	n := d.lookup(name)
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		if js, err := toJSON(n); err == nil {
			return js
		}
	}
	d.add(Warning, 0, "not-a-map", n, name+" is not a map with text keys and is ignored", "write it as indented lines of the form key: value")
	return nil
}
