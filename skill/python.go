package skill

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/requirement"
)

// Limits on the requirements and examples in the frontmatter.
const (
	maxRequirements = 100
	maxExamples     = 50
	maxExample      = 500 // characters
)

var pythonModule = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*\.py$`)

// requirements reads the list of Python packages that the skill's scripts need.
func (d *decoder) requirements(s *Skill) {
	n := d.lookup("requirements")
	if n == nil || isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.add(Info, 0, "requirements-not-a-list", n, "requirements is not a list of Python packages and is ignored", `write a list with items like "pandas>=2.0", or move the text to compatibility`)
		return
	}
	items := n.Content
	if len(items) > maxRequirements {
		d.add(Warning, 0, "requirements-too-many", n, fmt.Sprintf("requirements has %d items; only the first %d are used", len(items), maxRequirements), "name only the packages that the scripts import")
		items = items[:maxRequirements]
	}
	for _, item := range items {
		text := ""
		if v := resolve(item); v.Kind == yaml.ScalarNode && !isNull(v) {
			text = strings.TrimSpace(v.Value)
		}
		name, _, _ := strings.Cut(text, ";")
		if len(text) > requirement.MaxLength || !requirement.IsReleased(text) || requirement.IsDirect(strings.TrimSpace(name)) {
			d.add(Warning, 0, "requirement-invalid", item, "requirements: "+quote(text)+" is not a released Python package and is ignored", `write it like "pandas>=2.0", without a URL or a path`)
			continue
		}
		s.Requirements = append(s.Requirements, text)
	}
}

// function reads the fields entrypoint and function, which together define a
// provider with one tool.
func (d *decoder) function(s *Skill) {
	n := d.lookup("function")
	if n == nil || isNull(n) {
		return
	}
	at := d.lookup("entrypoint")
	name, file := scalarText(n), ""
	if at != nil && at.Kind == yaml.ScalarNode {
		file = entrypoint(at.Value, d.folder, s.Name)
	}
	switch {
	case at == nil || isNull(at):
		d.add(Info, 0, "function-without-entrypoint", n, "function is ignored, because there is no entrypoint", "add entrypoint: with the path of the Python file that defines the function")
	case s.Provider != nil:
		d.add(Info, 0, "function-and-provider", n, "function is ignored, because there is a provider", "keep one of them")
	case n.Kind != yaml.ScalarNode || len(name) > 256 || !pythonName.MatchString(name) || strings.HasPrefix(name, "_"):
		d.add(Warning, 0, "function-invalid", n, "function "+quote(name)+" is not the name of a public Python function and is ignored", "write the name of a function in the entrypoint, such as detect")
	case len(file) > 512 || !pythonModule.MatchString(file):
		d.add(Warning, 0, "entrypoint-invalid", at, "entrypoint "+quote(scalarText(at))+" is not the path of a Python file in the skill and is ignored", "write the path relative to the skill, such as scripts/main.py, with names that Python can import")
	default:
		s.Provider = &Provider{Module: strings.ReplaceAll(strings.TrimSuffix(file, ".py"), "/", "."), Function: name}
	}
}

// entrypoint converts the path of an entrypoint to a path relative to the
// skill. In some skills, it is relative to the repository that contains the
// skills directory.
func entrypoint(file string, names ...string) string {
	file = path.Clean(strings.TrimSpace(file))
	for _, name := range names {
		if rest, ok := strings.CutPrefix(file, "skills/"+name+"/"); ok && name != "" {
			return rest
		}
	}
	return file
}

// examples reads the examples of requests for which the skill is intended.
func (d *decoder) examples(s *Skill) {
	n := d.lookup("examples")
	if n == nil || isNull(n) {
		return
	}
	items := stringList(n, false)
	for _, text := range items {
		if utf8.ValidString(text) && utf8.RuneCountInString(text) <= maxExample && len(s.Examples) < maxExamples {
			s.Examples = append(s.Examples, text)
		}
	}
	given := 1
	if n.Kind == yaml.SequenceNode {
		given = len(n.Content)
	}
	if ignored := given - len(s.Examples); ignored > 0 {
		d.add(Info, 0, "examples-ignored", n, fmt.Sprintf("%d of the examples are ignored", ignored), fmt.Sprintf("write at most %d requests as a list of texts of at most %d characters", maxExamples, maxExample))
	}
}
