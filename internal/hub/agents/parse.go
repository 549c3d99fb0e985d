package agents

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/skill"
)

// Parse reads the documents of a file of YAML, one or several, or of JSON, of at most
// 1 MiB. It never fails: what is wrong is among the findings of each document, with
// places, and [Registry.Apply] refuses a document with an error. What cannot be read
// as a document at all is one without a kind. No finding quotes a value that may be
// secret.
func Parse(data []byte, file string) []*Document {
	docs, err := configfile.Parse(data, configfile.FormatOf(file, data))
	var out []*Document
	for i, n := range docs {
		if i == MaxDocuments {
			p := newParser(n)
			p.addError("document-many", n, fmt.Sprintf("there are more than %d documents", MaxDocuments), "apply them in parts")
			return append(out, p.doc)
		}
		out = append(out, parseDocument(n))
	}
	if err != nil {
		at := &configfile.Node{Line: err.Line, Column: err.Column}
		p := newParser(at)
		p.addError("document-unreadable", at, "the file cannot be read: "+err.Message, "mend the file at this place")
		out = append(out, p.doc)
	}
	return out
}

// parser reads one document.
type parser struct{ doc *Document }

func newParser(at *configfile.Node) *parser {
	return &parser{&Document{Line: at.Line, Column: at.Column}}
}

// maxFindings bounds those of one document; an error is kept beyond it once.
const maxFindings = 200

func (p *parser) addFinding(s skill.Severity, code string, at *configfile.Node, message, fix string) {
	d := skill.Diagnostic{Severity: s, Code: code, Message: skill.OneLine(message), Fix: skill.OneLine(fix)}
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

// parseDocument reads a whole document.
func parseDocument(n *configfile.Node) *Document {
	p := newParser(n)
	if n.Kind != configfile.Map {
		p.addError("document-shape", n, fmt.Sprintf("the document is a %s", n.Kind), "write apiVersion, kind, metadata and spec")
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
		p.addError("document-shape", spec, fmt.Sprintf("spec is a %s", spec.Kind), "write a map")
		return p.doc
	}
	p.doc.Spec = p.parseSpec(spec)
	if !p.doc.Findings.Loads() {
		p.doc.Spec = nil
		return p.doc
	}
	if raw, err := encodeJSON(p.doc.Spec); err != nil || len(raw) > MaxSpec {
		p.addError("document-large", spec, fmt.Sprintf("the spec has more than %d bytes", MaxSpec), "make it shorter")
		p.doc.Spec = nil
	}
	return p.doc
}

// parseHeader reads what all kinds have, and reports whether the spec is worth reading.
func (p *parser) parseHeader(n *configfile.Node) bool {
	kind, version := n.Get("kind"), n.Get("apiVersion")
	p.doc.Kind, p.doc.APIVersion = shorten(scalarText(kind)), shorten(scalarText(version))
	if p.doc.Kind == "" {
		p.addError("document-kind", n, "the document has no kind", "write kind: Ghost, or another of "+strings.Join(kindOrder, ", "))
		return false
	}
	if !slices.Contains(kindOrder, p.doc.Kind) {
		p.doc.Skipped = true
		p.doc.Name = shorten(scalarText(n.Get("metadata").Get("name")))
		p.addWarning("document-skipped", kind, "a document of the kind "+quote(p.doc.Kind)+" is passed over: there is none of that kind here", "leave it out")
		return false
	}
	p.checkDuplicateKeys(n)
	switch {
	case version == nil:
		p.addInfo("document-version", n, "the document has no apiVersion; it is read as "+APIVersion)
		p.doc.APIVersion = APIVersion
	case p.doc.APIVersion != APIVersion && p.doc.APIVersion != WegentAPIVersion:
		p.addError("document-version", version, "the apiVersion "+quote(p.doc.APIVersion)+" is not known", "write "+APIVersion)
	}
	p.parseMetadata(n.Get("metadata"), kind)
	return true
}

// parseMetadata reads whose the thing is and what it is called.
func (p *parser) parseMetadata(meta, kind *configfile.Node) {
	p.checkDuplicateKeys(meta)
	name, in := meta.Get("name"), meta.Get("namespace")
	p.doc.Description = p.parseText("description", meta.Get("description"))
	p.parseGeneration(meta.Get("generation"))
	if name == nil {
		name = kind
		p.addError("document-name", name, "the name is missing", "write metadata: {name: NAME}")
		return
	}
	p.doc.Line, p.doc.Column = name.Line, name.Column
	if why := nameProblem(scalarText(name)); why != "" {
		p.addError("document-name", name, "the name "+why, "write metadata: {name: NAME}")
		return
	}
	p.doc.Name = name.Text
	if in != nil && in.Kind != configfile.Null && !(in.Scalar() && in.Text == "") {
		if why := nameProblem(scalarText(in)); why != "" {
			p.addError("document-namespace", in, "the namespace "+why, "leave it out, or write the name of a group, or public")
		} else {
			p.doc.Namespace = in.Text
		}
	}
}

// parseGeneration reads which one of a thing the document was made from.
func (p *parser) parseGeneration(n *configfile.Node) {
	if n == nil || n.Kind == configfile.Null {
		return
	}
	made, err := strconv.ParseInt(scalarText(n), 10, 64)
	switch {
	case err != nil || made < 1:
		p.addError("document-generation", n, "the generation is no number from 1 on", "write that of status, or leave it out")
	case p.doc.Kind == SkillKind:
		p.addError("document-generation", n, "a skill has versions, and no generation", "leave it out")
	default:
		p.doc.BaseGeneration = made
	}
}

// checkDuplicateKeys says which keys of a map do not count.
func (p *parser) checkDuplicateKeys(n *configfile.Node) {
	if n == nil {
		return
	}
	_, passed := n.Unique()
	for _, f := range passed {
		p.addError("document-key-twice", fieldNode(f), "key "+quote(f.Key)+" comes twice", "remove one of them")
	}
}

// parseSpec reads what a kind consists of.
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

// parseFields calls for each field of a map the function of its key, in which case, _ and -
// do not count. Those with nil are of Wegent and mean nothing here.
func (p *parser) parseFields(n *configfile.Node, written map[string]func(configfile.Field)) {
	known, names := map[string]func(configfile.Field){}, []string{}
	for key, read := range written {
		known[normalizeKey(key)] = read
		if read != nil {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	p.checkDuplicateKeys(n)
	all, _ := n.Unique()
	seen := map[string]string{}
	for _, f := range all {
		key := normalizeKey(f.Key)
		read, ok := known[key]
		switch other, again := seen[key]; {
		case !ok:
			p.addWarning("document-key", fieldNode(f), "key "+quote(f.Key)+" is not known and is not kept", "leave it out, or mend it: there are "+strings.Join(names, ", "))
		case read == nil:
			p.addInfo("document-unused", fieldNode(f), "key "+quote(f.Key)+" means nothing here and is not kept")
		case again:
			p.addError("document-key-twice", fieldNode(f), "key "+quote(f.Key)+" says the same as "+quote(other), "remove one of them")
		case f.Value.Kind != configfile.Null:
			seen[key] = f.Key
			read(f)
		}
	}
}

// parseText reads a text, "" where there is none.
func (p *parser) parseText(key string, n *configfile.Node) string {
	if n == nil || n.Kind == configfile.Null {
		return ""
	}
	if !n.Scalar() {
		p.addError("document-value", n, fmt.Sprintf("%s is a %s", key, n.Kind), "write a text")
		return ""
	}
	return n.Text
}

// textInto returns a function that reads a text into a place.
func (p *parser) textInto(place *string) func(configfile.Field) {
	return func(f configfile.Field) { *place = p.parseText(f.Key, f.Value) }
}

// parseRef reads what names a thing of another kind: a name, or a map with one.
func (p *parser) parseRef(f configfile.Field) Ref {
	name, in := f.Value, (*configfile.Node)(nil)
	if f.Value.Kind == configfile.Map {
		name, in = f.Value.Get("name"), f.Value.Get("namespace")
	}
	var r Ref
	if why := nameProblem(scalarText(name)); why != "" {
		p.addError("document-ref", f.Value, f.Key+": the name "+why, "write "+f.Key+": {name: NAME}")
		return r
	}
	r.Name = name.Text
	if in != nil && in.Kind != configfile.Null {
		if why := nameProblem(scalarText(in)); why != "" {
			p.addError("document-ref", in, f.Key+": the namespace "+why, "leave it out, or write the name of a group, or public")
		}
		r.Namespace = scalarText(in)
	}
	return r
}

func fieldNode(f configfile.Field) *configfile.Node {
	return &configfile.Node{Line: f.Line, Column: f.Column}
}

// scalarText is a scalar as text, "" for anything else.
func scalarText(n *configfile.Node) string {
	if n.Scalar() {
		return n.Text
	}
	return ""
}

func normalizeKey(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// shorten is a text that should be short, cut where it is not.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func quote(s string) string { return fmt.Sprintf("%q", shorten(s)) }

// nameProblem says what is wrong with a name, which is part of a URL, "" for nothing.
func nameProblem(name string) string {
	const most = 128
	switch {
	case strings.TrimSpace(name) == "":
		return "is missing"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a blank"
	case utf8.RuneCountInString(name) > most:
		return fmt.Sprintf("is longer than %d characters", most)
	case name == "." || name == ".." || strings.ContainsAny(name, `/\?#%`):
		return "cannot be part of a URL"
	case hasUnprintable(name):
		return "has a character that cannot be seen"
	}
	return ""
}

func hasUnprintable(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
