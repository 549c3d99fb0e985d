package main

import (
	"strings"
	"testing"
)

// The setting skills.update determines what the model gets after a loaded skill
// was edited.
func TestSkillsUpdateInChat(t *testing.T) {
	exe, err := plainCommand()
	if err != nil {
		t.Fatal(err)
	}
	const edited = "Add two hours in summer."
	for setting, want := range map[string]struct{ announced, loaded bool }{
		"notify": {announced: true},
		"reload": {loaded: true},
		"pin":    {},
	} {
		t.Run(setting, func(t *testing.T) {
			p := newSomeone(t, exe, "anthropic", map[string]string{
				".config/loadout/loadout.yaml":   "skills: {update: " + setting + "}\n",
				".loadout/skills/tides/SKILL.md": plainSkill("tides", "Look it up."),
			})
			p.says("When is high water?", "", speak("", calling("1", "load_skill", "name", "tides")), speak("at 6"))
			p.write(".loadout/skills/tides/SKILL.md", plainSkill("tides", "Look it up. "+edited))
			p.says("And tomorrow?", "", speak("at 7"))
			body := p.lastBody()
			if got := strings.Contains(body, "The skill tides changed after it was loaded."); got != want.announced {
				t.Errorf("announced: %t, want %t", got, want.announced)
			}
			if got := strings.Contains(body, edited); got != want.loaded {
				t.Errorf("the request has the edited text: %t, want %t", got, want.loaded)
			}
		})
	}
}
