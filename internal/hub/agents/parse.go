package agents

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

// Parse parses the documents in a YAML or JSON file of up to 1 MiB. It never
// fails: problems are reported as findings with positions, and [Registry.Apply]
// refuses documents with errors. An unreadable document has no kind. Findings
// never quote values that may be secret.
func Parse(data []byte, file string) []*Document {
	docs, err := configfile.Parse(data, configfile.FormatOf(file, data))
	var out []*Document
	for i, n := range docs {
		if i == MaxDocuments {
			p := newParser(n)
			p.addError("document-many", n, fmt.Sprintf("too many documents (limit %d)", MaxDocuments), "apply them in several calls")
			return append(out, p.doc)
		}
		out = append(out, parseDocument(n))
	}
	if err != nil {
		at := &configfile.Node{Line: err.Line, Column: err.Column}
		p := newParser(at)
		p.addError("document-unreadable", at, "invalid file: "+err.Message, "fix the file at this position")
		out = append(out, p.doc)
	}
	return out
}

// parser parses one document.
type parser struct{ doc *Document }

func newParser(at *configfile.Node) *parser {
	return &parser{&Document{Line: at.Line, Column: at.Column}}
}

// maxFindings is the maximum number of findings per document. If none of them is
// an error, one error can still be added.
const maxFindings = 200

func (p *parser) addFinding(s skill.Severity, code string, at *configfile.Node, message, fix string) {
	d := skill.Diagnostic{Severity: s, Code: code, Message: printable.OneLine(message), Fix: printable.OneLine(fix)}
	if at != nil {
		d.Line, d.Column = at.Line, at.Column
	}
	if len(p.doc.Findings) < maxFindings || s == skill.Error && p.doc.Findings.Loads() {
		p.doc.Findings = append(p.doc.Findings, d)
	}
}

func (p *parser) addError(code string, at *configfile.Node, message, fix string) {
	p.addFinding(skill.Error, code, at, message, fix)
}

func (p *parser) addWarning(code string, at *configfile.Node, message, fix string) {
	p.addFinding(skill.Warning, code, at, message, fix)
}

func (p *parser) addInfo(code string, at *configfile.Node, message string) {
	p.addFinding(skill.Info, code, at, message, "")
}

func parseDocument(n *configfile.Node) *Document {
	p := newParser(n)
	if n.Kind != configfile.Map {
		p.addError("document-shape", n, fmt.Sprintf("the document is a %s, want a map", n.Kind), "add apiVersion, kind, metadata and spec")
		return p.doc
	}
	if !p.parseHeader(n) {
		return p.doc
	}
	spec := n.Get("spec")
	if spec == nil || spec.Kind == configfile.Null {
		spec = &configfile.Node{Kind: configfile.Map, Line: p.doc.Line, Column: p.doc.Column}
	}
	if spec.Kind != configfile.Map {
		p.addError("document-shape", spec, fmt.Sprintf("spec is a %s, want a map", spec.Kind), "use a map")
		return p.doc
	}
	p.doc.Spec = p.parseSpec(spec)
	if !p.doc.Findings.Loads() {
		p.doc.Spec = nil
		return p.doc
	}
	if raw, err := plainjson.Line(p.doc.Spec); err != nil || len(raw) > MaxSpec {
		p.addError("document-large", spec, fmt.Sprintf("spec too large (limit %d bytes)", MaxSpec), "shorten the spec")
		p.doc.Spec = nil
	}
	return p.doc
}

// parseHeader parses the kind, version and metadata. It reports whether the spec
// should be parsed.
func (p *parser) parseHeader(n *configfile.Node) bool {
	kind, version := n.Get("kind"), n.Get("apiVersion")
	p.doc.Kind, p.doc.APIVersion = shorten(scalarText(kind)), shorten(scalarText(version))
	if p.doc.Kind == "" {
		p.addError("document-kind", n, "kind is missing", "set kind to one of "+strings.Join(kindOrder, ", "))
		return false
	}
	if !slices.Contains(kindOrder, p.doc.Kind) {
		p.doc.Skipped = true
		p.doc.Name = shorten(scalarText(n.Get("metadata").Get("name")))
		p.addWarning("document-skipped", kind, "unknown kind "+quote(p.doc.Kind)+": document skipped", "remove the document")
		return false
	}
	p.checkDuplicateKeys(n)
	switch {
	case version == nil:
		p.addInfo("document-version", n, "no apiVersion: using "+APIVersion)
		p.doc.APIVersion = APIVersion
	case p.doc.APIVersion != APIVersion && p.doc.APIVersion != WegentAPIVersion:
		p.addError("document-version", version, "unknown apiVersion "+quote(p.doc.APIVersion), "use "+APIVersion)
	}
	p.parseMetadata(n.Get("metadata"), kind)
	return true
}

// parseMetadata parses the name, namespace, description and generation.
func (p *parser) parseMetadata(meta, kind *configfile.Node) {
	p.checkDuplicateKeys(meta)
	name, in := meta.Get("name"), meta.Get("namespace")
	p.doc.Description = p.parseText("description", meta.Get("description"))
	p.parseGeneration(meta.Get("generation"))
	if name == nil {
		name = kind
		p.addError("document-name", name, "the name is missing", "add metadata: {name: NAME}")
		return
	}
	p.doc.Line, p.doc.Column = name.Line, name.Column
	if why := nameProblem(scalarText(name)); why != "" {
		p.addError("document-name", name, "the name "+why, "use metadata: {name: NAME}")
		return
	}
	p.doc.Name = name.Text
	if in != nil && in.Kind != configfile.Null && !(in.IsScalar() && in.Text == "") {
		if why := nameProblem(scalarText(in)); why != "" {
			p.addError("document-namespace", in, "the namespace "+why, "omit it, or use the name of a group, or public")
		} else {
			p.doc.Namespace = in.Text
		}
	}
}

// parseGeneration parses the base generation.
func (p *parser) parseGeneration(n *configfile.Node) {
	if n == nil || n.Kind == configfile.Null {
		return
	}
	made, err := strconv.ParseInt(scalarText(n), 10, 64)
	switch {
	case err != nil || made < 1:
		p.addError("document-generation", n, "invalid generation (want a positive number)", "use the generation of status, or omit it")
	case p.doc.Kind == SkillKind:
		p.addError("document-generation", n, "skills have no generation", "omit it")
	default:
		p.doc.BaseGeneration = made
	}
}

// checkDuplicateKeys reports duplicate keys of a map.
func (p *parser) checkDuplicateKeys(n *configfile.Node) {
	if n == nil {
		return
	}
	_, passed := n.UniqueFields()
	for _, f := range passed {
		p.addError("document-key-twice", fieldNode(f), "duplicate key "+quote(f.Key), "remove one")
	}
}

// parseSpec parses the spec according to the document's kind.
func (p *parser) parseSpec(n *configfile.Node) Spec {
	switch p.doc.Kind {
	case GhostKind:
		return p.parseGhost(n)
	case BotKind:
		return p.parseBot(n)
	case TeamKind:
		return p.parseTeam(n)
	case ModelKind:
		return p.parseModel(n)
	case ServerKind:
		return p.parseServer(n)
	}
	return p.parseSkill(n)
}

// parseFields parses each field of n with the function for its key in parsers.
// Keys are compared ignoring case, _ and -. A nil function marks a Wegent field
// that Loadout ignores.
func (p *parser) parseFields(n *configfile.Node, parsers map[string]func(configfile.Field)) {
	known, names := map[string]func(configfile.Field){}, []string{}
	for key, read := range parsers {
		known[normalizeKey(key)] = read
		if read != nil {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	p.checkDuplicateKeys(n)
	all, _ := n.UniqueFields()
	seen := map[string]string{}
	for _, f := range all {
		key := normalizeKey(f.Key)
		read, ok := known[key]
		switch other, again := seen[key]; {
		case !ok:
			p.addWarning("document-key", fieldNode(f), "unknown key "+quote(f.Key)+" is ignored", "remove it, or use one of "+strings.Join(names, ", "))
		case read == nil:
			p.addInfo("document-unused", fieldNode(f), "key "+quote(f.Key)+" is not supported and ignored")
		case again:
			p.addError("document-key-twice", fieldNode(f), "key "+quote(f.Key)+" duplicates "+quote(other), "remove one")
		case f.Value.Kind != configfile.Null:
			seen[key] = f.Key
			read(f)
		}
	}
}

// parseText returns the text of the scalar n, or "" if n is nil or null.
func (p *parser) parseText(key string, n *configfile.Node) string {
	if n == nil || n.Kind == configfile.Null {
		return ""
	}
	if !n.IsScalar() {
		p.addError("document-value", n, fmt.Sprintf("%s is a %s, want a string", key, n.Kind), "use a string")
		return ""
	}
	return n.Text
}

// setText returns a function that stores a field's text in dst.
func (p *parser) setText(dst *string) func(configfile.Field) {
	return func(f configfile.Field) { *dst = p.parseText(f.Key, f.Value) }
}

// parseRef parses a reference to another resource: a name, or a map with a name
// and an optional namespace.
func (p *parser) parseRef(f configfile.Field) Ref {
	name, in := f.Value, (*configfile.Node)(nil)
	if f.Value.Kind == configfile.Map {
		name, in = f.Value.Get("name"), f.Value.Get("namespace")
	}
	var r Ref
	if why := nameProblem(scalarText(name)); why != "" {
		p.addError("document-ref", f.Value, f.Key+": the name "+why, "use "+f.Key+": {name: NAME}")
		return r
	}
	r.Name = name.Text
	if in != nil && in.Kind != configfile.Null {
		if why := nameProblem(scalarText(in)); why != "" {
			p.addError("document-ref", in, f.Key+": the namespace "+why, "omit it, or use the name of a group, or public")
		}
		r.Namespace = scalarText(in)
	}
	return r
}

func fieldNode(f configfile.Field) *configfile.Node {
	return &configfile.Node{Line: f.Line, Column: f.Column}
}

// scalarText returns the text of n, or "" if n is not a scalar.
func scalarText(n *configfile.Node) string {
	if n.IsScalar() {
		return n.Text
	}
	return ""
}

func normalizeKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// shorten truncates s to 100 bytes.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func quote(s string) string { return fmt.Sprintf("%q", shorten(s)) }

// nameProblem explains why a name is invalid, or returns "" if it is valid. Names
// become part of URLs.
func nameProblem(name string) string {
	const most = 128
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	case utf8.RuneCountInString(name) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case name == "." || name == ".." || strings.ContainsAny(name, `/\?#%`):
		return "cannot be part of a URL"
	case hasUnprintable(name):
		return "has an unprintable character"
	}
	return ""
}

func hasUnprintable(s string) bool {
	return !printable.IsLabel(s)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
