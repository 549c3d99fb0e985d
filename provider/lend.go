package provider

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/skill"
)

// Offers says whether the provider of a skill goes by a name: that of the skill,
// or the one by which the skill declares its own tools.
func Offers(s *skill.Skill, name string) bool {
	return s.Provider != nil && (s.Name == name || slices.ContainsFunc(s.Tools, func(t skill.Tool) bool { return t.Provider == name }))
}

// Lend returns the skill owner as it is when it makes the tools that another skill
// declares of its provider: with those tools, and the other's configuration over
// its own. Neither skill is changed.
func Lend(owner, to *skill.Skill, declared []skill.Tool) (*skill.Skill, error) {
	lent := *owner
	lent.Tools = nil
	for _, t := range declared {
		config, err := merge(to.Config, t.Config)
		if err != nil {
			return nil, fmt.Errorf("skill %s: tool %s: %w", to.Name, t.Name, err)
		}
		t.Provider = "" // by whatever name, it is this one
		if t.Config, err = json.Marshal(config); err != nil {
			return nil, err
		}
		lent.Tools = append(lent.Tools, t)
	}
	return &lent, nil
}

// Settings are the configuration of a declared tool, with that of its skill under
// it.
func Settings(s *skill.Skill, t skill.Tool) (map[string]any, error) {
	config, err := merge(s.Config, t.Config)
	if err != nil {
		return nil, fmt.Errorf("skill %s: tool %s: %w", s.Name, t.Name, err)
	}
	return config, nil
}
