package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/session"
)

// maxLoaded is the maximum number of loaded skills that are remembered for a
// connection. Changes to skills that were loaded earlier are not reported.
const maxLoaded = 512

// loadedSkills remembers which versions of skills a connection has loaded. It
// is guarded by the mutex of catalogTexts.
type loadedSkills struct {
	byKey   map[string]loadedSkill
	order   []string // keys, the last loaded last
	checked uint64   // version of the snapshot for which all of them were checked
}

// loadedSkill is the version of a skill that a connection has loaded.
type loadedSkill struct {
	entry  *catalog.Entry // nil if it was not in the snapshot yet; a changed file has another entry
	digest string         // of SKILL.md
}

// add records a loaded skill.
func (l *loadedSkills) add(key string, s loadedSkill) {
	if _, ok := l.byKey[key]; ok {
		i := slices.Index(l.order, key)
		l.order = slices.Delete(l.order, i, i+1)
	} else if len(l.order) == maxLoaded {
		delete(l.byKey, l.order[0])
		l.order = slices.Delete(l.order, 0, 1)
	}
	if l.byKey == nil {
		l.byKey = map[string]loadedSkill{}
	}
	l.byKey[key] = s
	l.order = append(l.order, key)
}

// mayDiffer returns the skills whose entry in a snapshot differs from that of
// the loaded version.
func (l *loadedSkills) mayDiffer(now *catalog.Snapshot) (entries []*catalog.Entry) {
	for _, key := range l.order {
		if e := now.ByKey(key); e != nil && e != l.byKey[key].entry {
			entries = append(entries, e)
		}
	}
	return entries
}

type deliveredKey struct{}

// withDelivered returns a copy of ctx and the list to which noteDelivered adds
// skills when it is called with that context.
func withDelivered(ctx context.Context) (context.Context, *[]*session.Skill) {
	all := &[]*session.Skill{}
	return context.WithValue(ctx, deliveredKey{}, all), all
}

// noteDelivered records that the client of ctx's request has the given version
// of the skills.
func noteDelivered(ctx context.Context, skills ...*session.Skill) {
	if all, ok := ctx.Value(deliveredKey{}).(*[]*session.Skill); ok {
		*all = append(*all, skills...)
	}
}

// rememberLoads remembers the skills that the connection of req has loaded.
// before is a snapshot taken before the skills were read.
func (t *catalogTexts) rememberLoads(req mcp.Request, before *catalog.Snapshot, loaded []*session.Skill) {
	ss := longLivedSession(req)
	if ss == nil || len(loaded) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.conns[ss]
	if c == nil {
		return
	}
	c.loaded.checked = min(c.loaded.checked, before.Version)
	for _, m := range loaded {
		c.loaded.add(m.ID.Key(), loadedSkill{before.ByKey(m.ID.Key()), m.Digest})
	}
}

// updatesSince returns a message that names the skills that changed after the
// connection loaded them, each once per change. If a skill cannot be read, the
// next call tries again.
func (t *catalogTexts) updatesSince(ctx context.Context, s *Server, c *conn, now *catalog.Snapshot) string {
	t.mu.Lock()
	var entries []*catalog.Entry
	if c.loaded.checked < now.Version {
		entries = c.loaded.mayDiffer(now)
	}
	t.mu.Unlock()
	var byModel, byUser []string
	failed := false
	for _, e := range entries {
		digest, err := s.rt.Catalog().Digest(ctx, e)
		if err != nil {
			failed = true
			continue
		}
		if !t.replaceLoaded(c, loadedSkill{e, digest}) {
			continue
		}
		name := untrusted.New(e.Name).ForModel()
		if e.DisableModelInvocation {
			byUser = append(byUser, name)
		} else {
			byModel = append(byModel, name)
		}
	}
	if !failed {
		t.mu.Lock()
		c.loaded.checked = max(c.loaded.checked, now.Version)
		t.mu.Unlock()
	}
	return updateText(byModel, "Load a skill again before you use it.") + updateText(byUser, "Only the user can load them again.")
}

// replaceLoaded replaces a remembered version, and reports whether its digest
// differs.
func (t *catalogTexts) replaceLoaded(c *conn, now loadedSkill) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, ok := c.loaded.byKey[now.entry.Key()]
	if !ok {
		return false
	}
	c.loaded.byKey[now.entry.Key()] = now
	return was.digest != now.digest
}

// updateText returns a message that names the changed skills and ends with the
// given advice. It returns "" if there are no names.
func updateText(names []string, advice string) string {
	const most = 20
	if len(names) == 0 {
		return ""
	}
	text := "Loaded skills that changed: " + strings.Join(names[:min(len(names), most)], ", ")
	if rest := len(names) - most; rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text + ". " + advice + "\n"
}
