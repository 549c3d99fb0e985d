package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/chatlog"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/servertext"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/session"
	"github.com/loadout-dev/loadout/tools"
)

// conversation holds the agent, session, skills and tools that a chat has
// opened. Function openConversation creates it.
type conversation struct {
	*agent.Agent
	session *session.Session
	runtime *loadout.Runtime
	set     *setup.Toolset
	id      string
	queue   *approval.Queue
	folder  string // working directory
	named   string // working directory given by the user, or ""
	closers []func()
}

// onClose registers a function that close calls.
func (t *conversation) onClose(f func()) { t.closers = append(t.closers, f) }

// close closes the parts of the conversation in reverse order of opening.
func (t *conversation) close() {
	for _, f := range slices.Backward(t.closers) {
		f()
	}
	t.closers = nil
}

// explainSkillPath returns a hint if text contains the path of a file in an
// active skill, and "" otherwise.
func (t *conversation) explainSkillPath(text string) string {
	return workspace.SkillPathHint(text, t.session.Active(), func(id session.ID) string {
		for e := range t.runtime.Catalog().Snapshot().All() {
			if e.Key() == id.Key() {
				return e.Location()
			}
		}
		return ""
	})
}

// skillsToPreload returns the skills configured to be preloaded into new
// conversations. A project's skills need the user's permission.
func (h *Host) skillsToPreload(ctx context.Context, t *conversation, o *Flags) ([]string, error) {
	if len(t.session.Events(0)) > 0 {
		return nil, nil // a resumed conversation already has its skills
	}
	var keys []string
	for _, e := range t.runtime.Catalog().Snapshot().ForModel() {
		if !e.Preload {
			continue
		}
		if e.Scope == catalog.Project && len(h.Skills) == 0 {
			if wanted, err := h.projectAllowed(ctx, h.skillProject(e, o)); err != nil {
				return nil, err
			} else if !wanted {
				h.Note("skill %s not preloaded: you have not allowed the skills of this project yet; to allow them, start loadout chat without -p", e.Name)
				continue
			}
		}
		if refused := setup.TextRefusal(ctx, t.runtime, e.Key()); refused != nil {
			h.Note("skill %s not preloaded: %v; review it: %s", e.Name, refused, h.ApproveHint(refused))
			continue
		}
		keys = append(keys, e.Key())
	}
	return keys, nil
}

// preloadSkills loads the named skills for the whole conversation.
func (t *conversation) preloadSkills(ctx context.Context, named []string) error {
	for _, name := range named {
		res, err := t.session.Load(ctx, name, &session.LoadOptions{Retention: session.RetainPinned, Direct: true})
		if err != nil {
			return err
		}
		if res.State == session.StateFailed {
			return exit.Errorf(exit.NotFound, "list the skills: loadout list", "preload %s: %s", name, strings.Join(res.Problems, "; "))
		}
	}
	return nil
}

// buildInstructions returns the system prompt for an agent: lead, the general
// instructions, the skills and the MCP servers. The prompt can change between
// calls, for example when the tools of another server become known.
func buildInstructions(rt *loadout.Runtime, servers []tools.ServerSummary, lead string) string {
	text := "You help the user. Read and write the files in your working folder; commands run there, in a sandbox. Skills are instructions for kinds of tasks: before a task that one of them covers, load it with load_skill and follow it. " +
		"Call the tools it provides with call_tool, and run its scripts with run_skill_script. Say plainly what failed.\n"
	if lead != "" {
		text = lead + "\n\n" + text
	}
	if skills := rt.CatalogText(4000); skills != "" {
		text += "\nSkills:\n" + skills
	}
	servers = slices.DeleteFunc(slices.Clone(servers), func(s tools.ServerSummary) bool { return s.Name == setup.BuiltinName }) // its tools are always available
	return text + servertext.Section(servers)
}

// approvalStore returns the store of pending approval requests. If there is no
// state directory, the requests are stored only in memory.
func (h *Host) approvalStore() approval.Store {
	if d := h.StateDir(); d != "" {
		return approval.NewFileStore(filepath.Join(d, "asks"))
	}
	return &approval.MemoryStore{}
}

// chats returns the directory of saved conversations.
func (h *Host) chats() (chatlog.Dir, error) {
	dir := h.StateDir()
	if dir == "" {
		return "", exit.Errorf(exit.Missing, "set LOADOUT_STATE to a directory", "no directory to save the conversation in")
	}
	return chatlog.Dir(filepath.Join(dir, "sessions")), nil
}

// openChatLog opens a conversation's log, or creates a new one if id is "".
func (h *Host) openChatLog(id string) (*session.FileLog, string, error) {
	dir, err := h.chats()
	if err != nil {
		return nil, "", err
	}
	log, found, err := dir.Open(id)
	switch {
	case errors.Is(err, chatlog.ErrName):
		return nil, "", exit.Errorf(exit.Usage, "conversations are files in "+string(dir), "invalid conversation name %q", id)
	case errors.Is(err, chatlog.ErrNotFound):
		return nil, "", exit.Errorf(exit.NotFound, "conversations are files in "+string(dir), "conversation %s not found", id)
	case errors.Is(err, session.ErrInUse):
		return nil, "", exit.Errorf(exit.Failure, "end it there first", "open conversation %s: %w", found, err)
	case err != nil && !hasType[*os.PathError](err):
		return nil, "", exit.Errorf(exit.Failure, "start a new one: loadout chat"+h.SkillFlags(), "open conversation %s: %w", found, err)
	case err != nil:
		return nil, "", fmt.Errorf("open conversation %s: %w", found, err)
	}
	return log, found, nil
}
