package toolname

import (
	"cmp"
	"encoding/json"
)

// maxArguments is the maximum number of bytes in the arguments of a call that
// loads a skill.
const maxArguments = 64 << 10

// LoadedSkill returns the name of the skill that a call loads in a conversation
// of this program or of an earlier system. arguments is a JSON object. It returns
// "" for other calls, and if arguments has over 64 KiB.
func LoadedSkill(tool, arguments string) string {
	switch tool {
	case LoadSkill, ActivateSkill, ReadSkill:
	default:
		return ""
	}
	if len(arguments) > maxArguments {
		return ""
	}
	var in struct {
		SkillName string `json:"skill_name"`
		Name      string `json:"name"`
		Skill     string `json:"skill"`
		FilePath  string `json:"file_path"` // with a path, read_skill reads a file instead
	}
	if json.Unmarshal([]byte(arguments), &in) != nil || in.FilePath != "" {
		return ""
	}
	return cmp.Or(in.SkillName, in.Name, in.Skill)
}
