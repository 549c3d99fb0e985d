package agents

import (
	"encoding/json"
	"fmt"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// SkillFile is the SKILL.md created from a skill document.
type SkillFile struct {
	In   store.Namespace
	Name string
	Data []byte
	// Same reports whether another SKILL.md has the same content, ignoring
	// formatting, which documents do not preserve.
	Same func(other []byte) bool
}

// SkillError reports why a skill document is refused and how to fix it.
type SkillError struct{ Why, Fix string }

func (e *SkillError) Error() string { return e.Why }

// ParseSkillFile converts a SKILL.md to a document.
func ParseSkillFile(namespace, name string, file []byte) (*Document, error) {
	parsed, ds := skill.ParseBytes(file, skill.FileName, name)
	if parsed == nil {
		return nil, fmt.Errorf("skill %q: %w: invalid SKILL.md", name, store.ErrCorrupt)
	}
	raw, err := parsed.FrontmatterJSON()
	if err != nil {
		return nil, fmt.Errorf("skill %q: %w: %w", name, store.ErrCorrupt, err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("skill %q: %w: %w", name, store.ErrCorrupt, err)
	}
	delete(fields, "name")
	kept, err := plainjson.Line(fields)
	if err != nil {
		return nil, err
	}
	if kept, err = plainjson.Canonical(kept); err != nil {
		return nil, err
	}
	return &Document{APIVersion: APIVersion, Kind: SkillKind, Namespace: namespace, Name: name, Description: parsed.Description,
		Spec: &Skill{Fields: kept, Prompt: parsed.Instructions}, Findings: ds.Problems()}, nil
}

// equalTo returns a function that reports whether a SKILL.md has the same content
// as the skill.
func (s *Skill) equalTo(name string) func(other []byte) bool {
	return func(other []byte) bool {
		return len(diffFields(skillFileFields(name, other), s.flatFields())) == 0
	}
}

// diffFile compares the skill with its previous SKILL.md, which may be nil.
func (s *Skill) diffFile(name string, previous []byte) []FieldChange {
	return diffFields(skillFileFields(name, previous), s.flatFields())
}

// skillFileFields returns the field values of a SKILL.md, keyed by path.
func skillFileFields(name string, file []byte) map[string]string {
	d, err := ParseSkillFile("", name, file)
	if file == nil || err != nil {
		return nil
	}
	return d.Spec.(*Skill).flatFields()
}

func (s *Skill) flatFields() map[string]string {
	spec, err := plainjson.Line(s)
	if err != nil {
		return nil
	}
	return storedDocument{Spec: spec}.flatFields()
}
