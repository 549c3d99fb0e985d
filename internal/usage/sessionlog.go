package usage

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// sessionLog wraps a conversation's log and records skill loads and model
// responses as they are appended.
type sessionLog struct {
	session.Log
	uses    *Log
	iface   string
	resolve Resolver

	mu    sync.Mutex
	loads map[string]string // skill names of pending load_skill calls, by call ID
}

// Resolver returns the name and key of the skill that a model named. It returns
// false if no such skill exists. Only resolved names are recorded.
type Resolver func(ctx context.Context, name string) (skill, key string, ok bool)

// CountSession returns a session log that also records in l the skill and model
// uses appended to log. If l is nil, it returns log.
func (l *Log) CountSession(log session.Log, iface string, resolve Resolver) session.Log {
	if l == nil {
		return log
	}
	return &sessionLog{Log: log, uses: l, iface: iface, resolve: resolve, loads: map[string]string{}}
}

// Append implements [session.Log].
func (l *sessionLog) Append(ctx context.Context, events ...*session.Event) error {
	if err := l.Log.Append(ctx, events...); err != nil {
		return err
	}
	for _, e := range events {
		l.countEvent(ctx, e)
	}
	return nil
}

func (l *sessionLog) countEvent(ctx context.Context, e *session.Event) {
	switch {
	case e.Loaded != nil:
		l.uses.Note(Use{Interface: l.iface, Kind: KindLoad, Skill: e.Loaded.Skill.Name, Key: e.Loaded.Skill.Key(), Tokens: e.Loaded.Tokens, Outcome: OK})
	case e.Message != nil && e.Message.Role == llm.Assistant:
		l.countMessage(e.Message)
	case e.Result != nil:
		l.countFailedLoad(ctx, e.Result)
	}
}

func (l *sessionLog) countMessage(m *session.Message) {
	if m.Usage != nil && m.Model != "" {
		u := *m.Usage
		l.uses.Note(Use{Interface: l.iface, Kind: KindModel, Model: m.Model, Usage: &u, Outcome: OK})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.loads) // vendors reuse call IDs
	for _, c := range m.Calls {
		var in struct{ Name string }
		if c.Name == toolname.LoadSkill && json.Unmarshal([]byte(c.Arguments), &in) == nil {
			l.loads[c.ID] = in.Name
		}
	}
}

// countFailedLoad records a failed load. Successful loads have their own event.
func (l *sessionLog) countFailedLoad(ctx context.Context, r *session.CallResult) {
	l.mu.Lock()
	name, load := l.loads[r.Call]
	l.mu.Unlock()
	if !load || !r.Error {
		return
	}
	u := Use{Interface: l.iface, Kind: KindLoad, Outcome: Failed}
	u.Skill, u.Key, _ = l.resolve(ctx, name)
	l.uses.Note(u)
}
