package mcpapi

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/mcpserver"
	"github.com/loadout-dev/loadout/session"
)

// countUse counts the use of a library skill.
func (e *endpoint) countUse(u mcpserver.Use) {
	s, err := e.kit.Runtime.Catalog().Snapshot().Get(u.Key)
	if err != nil {
		return
	}
	use := store.SkillUsage{SkillID: e.kit.SkillID(session.ID{Name: s.Name, Origin: s.Origin, Dir: s.Dir}), Tokens: int64(u.Tokens), LastUsed: time.Now()}
	if u.Kind == "load" {
		use.Loads = 1
	} else {
		use.Calls = 1
	}
	if u.Refused || u.Failed {
		use.Errors = 1
	}
	e.uses.Add(use)
}

// consumption returns a user's consumption. The model of an MCP client is unknown.
func (e *endpoint) consumption(uses []store.SkillUsage) store.MeterEntry {
	s := store.MeterEntry{Date: time.Now(), Owner: e.kit.Principal.ID}
	if p := e.kit.Profile; p != nil {
		s.Namespace, s.Agent = p.In, assembly.AgentName(p.Kind, cmp.Or(p.Namespace, api.OwnNamespace), p.Name)
	}
	for _, u := range uses {
		s.Add(store.MeterEntry{Loads: u.Loads, Calls: u.Calls, Errors: u.Errors})
	}
	return s
}

// saveUses stores the skill uses that an endpoint has counted.
func (h *Handlers) saveUses(ctx context.Context, e *endpoint) {
	uses := e.uses.Drain()
	if len(uses) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), api.OperationTimeout)
	defer stop()
	err := errors.Join(h.Library.RecordUsage(ctx, uses...), h.DB.Meter.Add(ctx, e.consumption(uses)))
	if err != nil {
		h.Log.Warn("couldn't save the use of skills", "error", err)
	}
}
