package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// TeamMember is a Team member to which the leader can hand over tasks.
type TeamMember struct {
	Name        string `json:"name"` // value of the tool's member argument
	Role        string `json:"role,omitempty"`
	Description string `json:"description,omitempty"`
	Confirm     bool   `json:"requireConfirmation" doc:"Whether each task for it needs approval"`
}

// HandOffTool is the name of the tool with which the leader hands over tasks.
const HandOffTool = toolname.HandOff

// MemberProfile returns the profile of the Team member with the given name in
// [Profile.Members].
func (r *Registry) MemberProfile(ctx context.Context, p account.Principal, team *Profile, name string) (*Profile, error) {
	return r.readConsistent(ctx, func() (*Profile, error) {
		a := r.newActor(p)
		a.trial = team.trial
		k, ok := a.trial.byID(team.ID)
		var err error
		if !ok {
			k, err = a.Kinds.Get(ctx, team.ID)
		}
		if err == nil {
			err = a.checkAccess(account.KindUse, accountResource(k.Namespace, k.CreatedBy), k.Kind, k.Name)
		}
		if err != nil {
			return nil, err
		}
		res, err := a.decodeResource(ctx, k)
		if err != nil {
			return nil, err
		}
		spec, ok := res.Spec.(*Team)
		if !ok {
			return nil, fmt.Errorf("%s %q: %w: not a Team", k.Kind, k.Name, store.ErrInvalid)
		}
		for _, m := range spec.Members {
			if m.Bot.String() == name {
				return r.botProfile(ctx, a, k.Namespace, m)
			}
		}
		return nil, fmt.Errorf("member %q of Team %q: %w", shorten(name), k.Name, store.ErrNotFound)
	})
}

// teamProfile returns the profile of a Team's leader, including the list of other
// members.
func (r *Registry) teamProfile(ctx context.Context, a actor, k store.Kind) (*Profile, error) {
	res, err := a.decodeResource(ctx, k)
	if err != nil {
		return nil, err
	}
	spec, ok := res.Spec.(*Team)
	if !ok || len(spec.Members) == 0 {
		return nil, fmt.Errorf("Team %q: %w", k.Name, store.ErrCorrupt)
	}
	first := max(slices.IndexFunc(spec.Members, func(m Member) bool { return m.Role == LeaderRole }), 0)
	p, err := r.botProfile(ctx, a, k.Namespace, spec.Members[first])
	if err != nil {
		return nil, fmt.Errorf("Team %q: %w", k.Name, err)
	}
	p.Kind, p.Namespace, p.Name, p.ID, p.In, p.Description = k.Kind, res.Namespace, k.Name, k.ID, k.Namespace, res.Description
	if err := r.addSettings(ctx, p, k.Namespace); err != nil {
		return nil, err
	}
	for i, m := range spec.Members {
		if i == first {
			continue
		}
		bot, err := a.findKind(ctx, account.KindUse, k.Namespace, BotKind, m.Bot)
		if errors.Is(err, store.ErrNotFound) {
			p.addProblem("member %s: Bot not found or not permitted", m.Bot)
			continue
		}
		if err != nil {
			return nil, err
		}
		kept, err := decodeRecord(bot)
		if err != nil {
			return nil, err
		}
		p.Members = append(p.Members, TeamMember{Name: m.Bot.String(), Role: m.Role, Description: kept.Description, Confirm: m.Confirm})
	}
	p.HandOff, err = newHandOffTool(p.Members)
	return p, err
}

// botProfile returns the profile of a member's Bot.
func (r *Registry) botProfile(ctx context.Context, a actor, home store.Namespace, m Member) (*Profile, error) {
	k, err := a.findKind(ctx, account.KindUse, home, BotKind, m.Bot)
	if err != nil {
		return nil, err
	}
	return r.buildProfile(ctx, a, k, m.Prompt)
}

// newHandOffTool returns the tool with which the leader hands a task to a member,
// or nil if there are no members.
func newHandOffTool(members []TeamMember) (*llm.Tool, error) {
	if len(members) == 0 {
		return nil, nil
	}
	var names []string
	about := "Hand a task to another member of your team. The member works alone with its own tools and returns the result. It does not see this conversation, so include everything it needs. Members:"
	for _, m := range members {
		names = append(names, m.Name)
		about += "\n- " + m.Name
		if m.Role != "" {
			about += " (" + shorten(printable.OneLine(m.Role)) + ")"
		}
		if m.Description != "" {
			about += ": " + cutText(printable.OneLine(m.Description))
		}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"member", "task"},
		"properties": map[string]any{
			"member": map[string]any{"type": "string", "enum": names, "description": "member that receives the task"},
			"task":   map[string]any{"type": "string", "description": "the task with all necessary information"},
		},
	})
	return &llm.Tool{Name: HandOffTool, Description: about, InputSchema: schema}, err
}
