package provider

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/skill"
)

// Offers reports whether s has a provider with the given name, which is the name
// of the skill or a provider name that the skill's tools use.
func Offers(s *skill.Skill, name string) bool {
	return s.Provider != nil && (s.Name == name || slices.ContainsFunc(s.Tools, func(t skill.Tool) bool { return t.Provider == name }))
}

// Lend returns a copy of owner with the tools in declared, which the skill
// borrower declares. The tools run in owner's provider. The configuration of
// borrower provides defaults for each tool. Lend modifies neither skill.
func Lend(owner, borrower *skill.Skill, declared []skill.Tool) (*skill.Skill, error) {
	borrowed := *owner
	borrowed.Tools = nil
	for _, t := range declared {
		config, err := mergeSettings(borrower.Config, t.Config)
		if err != nil {
			return nil, fmt.Errorf("skill %s: tool %s: %w", borrower.Name, t.Name, err)
		}
		t.Provider = "" // the copy's provider serves the tool under any name
		if t.Config, err = json.Marshal(config); err != nil {
			return nil, err
		}
		borrowed.Tools = append(borrowed.Tools, t)
	}
	return &borrowed, nil
}

// Settings returns the configuration of a declared tool, with defaults from the
// skill's configuration.
func Settings(s *skill.Skill, t skill.Tool) (map[string]any, error) {
	config, err := mergeSettings(s.Config, t.Config)
	if err != nil {
		return nil, fmt.Errorf("skill %s: tool %s: %w", s.Name, t.Name, err)
	}
	return config, nil
}
