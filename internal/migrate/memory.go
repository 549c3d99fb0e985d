package migrate

import (
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// isMemory reports whether a file belongs to the memory of ba-agent.
func isMemory(p string) bool {
	dirs := strings.Split(path.Dir(p), "/")
	return slices.Contains(dirs, "memory")
}

// parseMemory adds a file of ba-agent's memory to the conversation that holds
// the memory. Instructions for ba-agent itself are not migrated.
func (r *reader) parseMemory(p string, data []byte) {
	name := path.Base(p)
	switch name {
	case "AGENTS.md", "CLAUDE.md", "SOUL.md":
		r.plan.addLost(File, name, p, "instructions of ba-agent itself; copy what you want to keep to the AGENTS.md of a project")
		return
	}
	text, truncated := cleanText(string(data))
	if text == "" {
		return
	}
	if truncated {
		r.plan.addLost(File, name, p, "only the first %d bytes are kept", maxText)
	}
	if r.memory.From == "" {
		r.memory.Title, r.memory.From = "Memory of ba-agent", path.Dir(p)
	}
	text = "From the memory of ba-agent, file " + clip(untrusted.New(p).ForModel()) + ":\n\n" + text
	if !r.memory.add(PastMessage{PastMessage: session.PastMessage{Role: llm.User, Text: text}}) {
		r.plan.addLost(File, name, p, "too much in the memory (limit %d files, %d bytes)", maxMessages, maxAllText)
	}
}
