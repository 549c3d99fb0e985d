package agents

import (
	"encoding/json"
	"fmt"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// SkillFile is a SKILL.md that is to be there.
type SkillFile struct {
	In   store.Namespace
	Name string
	Data []byte
	// Same reports whether another SKILL.md says the same in other words, as a document
	// cannot keep how one is written.
	Same func(other []byte) bool
}

// SkillError says why a document of a skill cannot be kept, and what to do.
type SkillError struct{ Why, Fix string }

func (e *SkillError) Error() string { return e.Why }

// ParseSkillFile is the SKILL.md of a skill as a document of a namespace as it is written.
func ParseSkillFile(namespace, name string, file []byte) (*Document, error) {
	parsed, ds := skill.ParseBytes(file, skill.FileName, name)
	if parsed == nil {
		return nil, fmt.Errorf("skill %q: %w: its SKILL.md cannot be read", name, store.ErrCorrupt)
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
	kept, err := encode(fields)
	if err != nil {
		return nil, err
	}
	if kept, err = canonical(kept); err != nil {
		return nil, err
	}
	return &Document{APIVersion: APIVersion, Kind: SkillKind, Namespace: namespace, Name: name, Description: parsed.Description,
		Spec: &Skill{Fields: kept, Prompt: parsed.Instructions}, Findings: ds.Problems()}, nil
}

// sameAs returns what reports whether a SKILL.md says the same as a skill of a name.
func (s *Skill) sameAs(name string) func(other []byte) bool {
	return func(other []byte) bool {
		return len(diff(fieldsOf(name, other), s.fields())) == 0
	}
}

// diff is what is different from what a SKILL.md says, nil being none.
func (s *Skill) diff(name string, was []byte) []FieldChange {
	return diff(fieldsOf(name, was), s.fields())
}

// fieldsOf are the values of a SKILL.md by their paths.
func fieldsOf(name string, file []byte) map[string]string {
	d, err := ParseSkillFile("", name, file)
	if file == nil || err != nil {
		return nil
	}
	return d.Spec.(*Skill).fields()
}

func (s *Skill) fields() map[string]string {
	spec, err := encode(s)
	if err != nil {
		return nil
	}
	return row{Spec: spec}.fields()
}
