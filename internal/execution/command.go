package execution

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
)

// A CommandError reports that a command cannot be started.
type CommandError struct {
	Program string
	Reason  string // the problem and how to fix it
}

func (e *CommandError) Error() string { return fmt.Sprintf("%s: %s", e.Program, e.Reason) }

// command is a parsed service command.
type command struct {
	words []string        // program and arguments, with the skill directory replaced
	pkg   *packageCommand // package that npx or uvx starts; nil for other programs
}

// skillDirNames replaces the variables for the skill directory with its path in
// the sandbox.
var skillDirNames = strings.NewReplacer("${CLAUDE_SKILL_DIR}", mountpoint.Skill, "${SKILL_DIR}", mountpoint.Skill, "${LOADOUT_SKILL}", mountpoint.Skill,
	"${CLAUDE_PLUGIN_ROOT}", mountpoint.Skill, "{baseDir}", mountpoint.Skill)

// containerEngines lists programs that start containers, which does not work in
// a sandbox.
var containerEngines = []string{"docker", "docker-compose", "podman", "nerdctl", "container"}

// ReplaceSkillDir replaces the variables for the skill directory in text with
// its path in the sandbox.
func ReplaceSkillDir(text string) string { return skillDirNames.Replace(text) }

// CheckCommand returns an error if the command can never be started. Otherwise,
// it reports whether the command needs a package to be installed.
func CheckCommand(args []string) (installs bool, err error) {
	c, err := parseCommand(args)
	return err == nil && c.pkg != nil, err
}

// parseCommand parses a command. It returns an error if the command can never
// be started, so that no approval is requested for it.
func parseCommand(args []string) (*command, error) {
	c := &command{}
	for _, w := range args {
		c.words = append(c.words, skillDirNames.Replace(w))
	}
	if len(c.words) == 0 || c.words[0] == "" {
		return nil, &CommandError{"command", "empty command; write a program"}
	}
	var err error
	switch base := c.program(); {
	case slices.Contains(containerEngines, base):
		return nil, &CommandError{base, "a server outside your own configuration runs in the sandbox, which cannot start containers; " +
			"if you trust it with this machine, add it to your own servers.yaml, or ask its author for a program that needs no container"}
	case base == "npx":
		c.pkg, err = parseNPX(c.words[1:])
	case base == "uvx":
		c.pkg, err = parseUVX(c.words[1:])
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// program returns the base name of the program, without ".exe".
func (c *command) program() string { return strings.TrimSuffix(path.Base(c.words[0]), ".exe") }

// name returns the first words of the command, for display.
func (c *command) name() string { return strings.Join(c.words[:min(len(c.words), 3)], " ") }
