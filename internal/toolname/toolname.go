// Package toolname defines the names of the tools that this program serves over
// MCP and provides to its agents, and finds the skills that their calls load.
// Clients and transcripts depend on the names, so they never change. The package
// imports only the standard library, so that any package may import it.
package toolname

// Names of tools for skills and for the tools of other MCP servers.
const (
	SearchSkills   = "search_skills"
	LoadSkill      = "load_skill"
	UnloadSkill    = "unload_skill"
	ReadSkillFile  = "read_skill_file"
	RunSkillScript = "run_skill_script"
	FindTools      = "find_tools"
	CallTool       = "call_tool"
	ReadTool       = "read_tool"
)

// Names of tools for the working folder of a conversation.
const (
	ReadFile   = "read_file"
	ListFiles  = "list_files"
	WriteFile  = "write_file"
	EditFile   = "edit_file"
	RunCommand = "run_command"
	SaveSkill  = "save_skill"
)

// HandOff is the name of the tool with which the leader of a team hands over tasks.
const HandOff = "hand_task"

// RenderMermaid is the name of the tool that renders diagrams on the hub's
// page.
const RenderMermaid = "render_mermaid"

// Names of tools from earlier systems, served by mcpserver.Options.Compat.
const (
	ReadSkill          = "read_skill"
	ActivateSkill      = "activate_skill"
	ExecuteSkillScript = "execute_skill_script"
)

// CompatSystems returns the values of mcpserver.Options.Compat: the names of
// the earlier systems whose tools can be served.
func CompatSystems() []string { return []string{"weknora", "ba-agent", "wegent"} }
