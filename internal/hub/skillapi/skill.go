package skillapi

import (
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// SkillVersion is a version of a skill as returned by the API.
type SkillVersion struct {
	library.Version
	Diagnostics []api.Diagnostic `json:"diagnostics" nullable:"false" doc:"Repaired or unusual parts of SKILL.md"`
}

func newSkillVersion(v *library.Version) SkillVersion {
	return SkillVersion{*v, api.DiagnosticsOf(v.Diagnostics)}
}
