package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/session"
)

// conversation is a running chat, opened by openConversation.
type conversation struct {
	*agent.Agent
	session *session.Session
	runtime *loadout.Runtime
	set     *toolset
	id      string
	desk    *approval.Queue
	folder  string // working directory
	named   string // working directory, if the user named it
	closers []func()
}

// onClose adds a function that close calls.
func (t *conversation) onClose(f func()) { t.closers = append(t.closers, f) }

// close closes the parts of the conversation, the last opened first.
func (t *conversation) close() {
	for _, f := range slices.Backward(t.closers) {
		f()
	}
	t.closers = nil
}

// sessionFolder returns the directory that the user named when the conversation
// began.
func sessionFolder(ctx context.Context, log session.Log) (string, error) {
	events, err := log.Read(ctx, 0)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Start == nil || e.Start.Folder == "" {
			continue
		}
		if fi, err := os.Stat(e.Start.Folder); err != nil || !fi.IsDir() {
			return "", fail(exitNotFound, "name its new location with --workspace", "directory %s of the conversation not found", e.Start.Folder)
		}
		return e.Start.Folder, nil
	}
	return "", nil
}

// isActive reports whether a skill is loaded.
func (t *conversation) isActive(e *catalog.Entry) bool {
	return slices.ContainsFunc(t.session.Active(), func(a session.ActiveSkill) bool { return a.Skill.Key() == e.Key() })
}

// markedSkills returns the skills marked to be preloaded into a new
// conversation. Skills of a project need the user's permission.
func (a *app) markedSkills(ctx context.Context, t *conversation, o *chatFlags) ([]string, error) {
	if len(t.session.Events(0)) > 0 {
		return nil, nil // a resumed conversation has its skills already
	}
	var keys []string
	for _, e := range t.runtime.Catalog().Snapshot().ForModel() {
		if !e.Preload {
			continue
		}
		if e.Scope == catalog.Project && len(a.skills) == 0 {
			if wanted, err := a.projectAllowed(ctx, a.skillProject(e, o)); err != nil {
				return nil, err
			} else if !wanted {
				a.note("skill %s not preloaded: the skills of this project are not allowed yet; loadout chat asks", e.Name)
				continue
			}
		}
		keys = append(keys, e.Key())
	}
	return keys, nil
}

// preloadSkills loads skills for the whole conversation.
func (t *conversation) preloadSkills(ctx context.Context, named []string) error {
	for _, name := range named {
		res, err := t.LoadSkill(ctx, name, session.RetainPinned)
		if err != nil {
			return err
		}
		if res.State == session.StateFailed {
			return fail(exitNotFound, "list the skills: loadout list", "preload %s: %s", name, strings.Join(res.Problems, "; "))
		}
	}
	return nil
}

// buildInstructions returns the system prompt of an agent.
func buildInstructions(rt *loadout.Runtime, lead string) string {
	text := "You help the user. Read and write the files in your working folder; commands run there, in a sandbox. Skills are instructions for kinds of tasks: before a task that one of them covers, load it with load_skill and follow it. " +
		"Call the tools it provides with call_tool, and run its scripts with run_skill_script. Say plainly what failed.\n"
	if lead != "" {
		text = lead + "\n\n" + text
	}
	if skills := rt.CatalogText(loadout.TextOptions{Tokens: 4000}); skills != "" {
		text += "\nSkills:\n" + skills
	}
	return text
}

// approvalStore returns the store of open approval requests.
func (a *app) approvalStore() approval.Store {
	if d := a.stateDir(); d != "" {
		return approval.NewFileStore(filepath.Join(d, "asks"))
	}
	return &approval.MemoryStore{}
}

// sessionID matches the name of a conversation.
var sessionID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// sessionsDir returns the directory of saved conversations.
func (a *app) sessionsDir() (string, error) {
	dir := a.stateDir()
	if dir == "" {
		return "", fail(exitMissing, "set LOADOUT_STATE to a directory", "no directory to save the conversation in")
	}
	return filepath.Join(dir, "sessions"), nil
}

// openSessionLog opens the log of a conversation, or creates one if id is "".
func (a *app) openSessionLog(id string) (*session.FileLog, string, error) {
	dir, err := a.sessionsDir()
	if err != nil {
		return nil, "", err
	}
	if id == "" {
		id = time.Now().Format("20060102-150405-") + strings.ToLower(rand.Text()[:5])
	} else if !sessionID().MatchString(id) {
		return nil, "", fail(exitUsage, "conversations are files in "+dir, "invalid conversation name %q", id)
	} else if _, err := os.Stat(filepath.Join(dir, id+".jsonl")); err != nil {
		return nil, "", fail(exitNotFound, "conversations are files in "+dir, "conversation %s not found", id)
	}
	log, err := session.OpenFileLog(filepath.Join(dir, id+".jsonl"))
	if errors.Is(err, session.ErrInUse) {
		return nil, "", fail(exitFailure, "end it there first", "conversation %s: %w", id, err)
	}
	if err != nil && !isType[*os.PathError](err) {
		return nil, "", fail(exitFailure, "start a new one: loadout chat"+a.skillFlags(), "conversation %s: %w", id, err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("conversation %s: %w", id, err)
	}
	return log, id, nil
}
