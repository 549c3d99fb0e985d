package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// ActiveSkill describes an active skill in a conversation.
type ActiveSkill struct {
	Skill      session.ID            `json:"skill"`
	Title      string                `json:"displayName"` // display name, or else the name
	Tokens     int                   `json:"tokens"`
	Tools      []string              `json:"tools,omitempty" doc:"Tools that the skill provides"`
	RequiredBy string                `json:"for,omitempty" doc:"The skill that requires this one"`
	Retention  session.RetentionMode `json:"keep,omitempty" enum:",pinned,once"`
	// TurnsLeft is the number of further turns for which the skill stays active
	// without being used; nil means no limit.
	TurnsLeft *int `json:"left" doc:"The number of further turns for which the skill stays active without being used; null means no limit"`

	Origin    string    `json:"origin" doc:"The label of the skill's source"`
	SkillID   string    `json:"skill_id,omitempty" doc:"The ID in /skills; absent if the skill is not in the library or the ID was not recorded"`
	Namespace string    `json:"namespace,omitempty" doc:"The namespace that owns the skill, if the caller may see it"`
	Version   string    `json:"version,omitempty" doc:"The version that the skill declares"`
	Digest    string    `json:"digest" doc:"The digest of SKILL.md when the skill was loaded"`
	Changed   bool      `json:"changed,omitempty" doc:"Whether SKILL.md has changed since then"`
	Since     time.Time `json:"since"`
	LoadReason
}

// LoadReason describes why a skill is active, as far as the transcript records
// it.
type LoadReason struct {
	By           session.Cause `json:"by,omitempty" enum:"model,person,preload,dependency" doc:"What activated the skill; absent if unknown"`
	Why          string        `json:"why,omitempty" doc:"A sentence that says why the skill is active"`
	Start        string        `json:"start,omitempty" doc:"For a preloaded skill, a text that says why it is preloaded"`
	Call         string        `json:"call,omitempty" doc:"The ID of the call with which the model loaded the skill"`
	Query        string        `json:"query,omitempty" doc:"The model's last search in that turn"`
	MatchedWords []string      `json:"words,omitempty" doc:"The words of the user's message that also occur in the skill's name or description"`
}

// ActiveSkills returns the active skills of a conversation in the order in which
// they were loaded.
func (e *Engine) ActiveSkills(ctx context.Context, p account.Principal, id string) ([]ActiveSkill, error) {
	s, steps, err := e.replay(ctx, p, id)
	if err != nil {
		return nil, err
	}
	var out []ActiveSkill
	path := currentPath(steps)
	for _, a := range s.Active() {
		load := steps[a.Seq-1]
		f := ActiveSkill{Skill: a.Skill, Title: cmp.Or(a.Title, a.Skill.Name), Tokens: a.Tokens, Tools: a.Tools, RequiredBy: a.RequiredBy, Retention: a.Retention,
			Origin: a.Skill.Origin, SkillID: load.SkillID, Version: a.Version, Digest: a.Digest, Changed: a.Current != a.Digest, Since: load.Time,
			LoadReason: findLoadReason(path[:slices.IndexFunc(path, func(s step) bool { return s.Seq == a.Seq })], a)}
		if left, bounded := s.TurnsLeft(a.Skill); bounded {
			f.TurnsLeft = &left
		}
		out = append(out, f)
	}
	return out, nil
}

// findLoadReason determines why a skill is active. earlier holds the steps on
// its branch before the skill was loaded.
func findLoadReason(earlier []step, a session.ActiveSkill) LoadReason {
	c := LoadReason{By: loadCause(a)}
	switch c.By {
	case session.ByDependency:
		c.Why = "required by the skill " + a.RequiredBy
	case session.ByPreload:
		c.Why = "preloaded"
		if a.Why != "" {
			c.Start = a.Why
			c.Why += ": " + a.Why
		}
	case session.ByUser:
		c.Why = "the user loaded it"
	case session.ByModel:
		if !a.Direct { // otherwise it was loaded again after a change
			c.findCall(earlier, a)
		}
		c.Why = "the model loaded it"
		if c.Query != "" {
			c.Why += fmt.Sprintf(" after a search for %q", c.Query)
		}
		if len(c.MatchedWords) > 0 {
			c.Why += "; words in both the message and the description: " + strings.Join(c.MatchedWords, ", ")
		}
	}
	return c
}

// loadCause returns the cause of a skill's activation. It returns "" for a
// skill that was loaded before the first message of an older transcript, which
// does not record the cause.
func loadCause(a session.ActiveSkill) session.Cause {
	switch {
	case a.By != "":
		return a.By
	case a.RequiredBy != "":
		return session.ByDependency
	case !a.Direct && a.Turn > 0:
		return session.ByModel
	case a.Direct && a.Turn > 0:
		return session.ByUser
	}
	return ""
}

// findCall sets the fields for a skill that the model loaded: the call, the
// last search before it in the same turn, and the matching words of the user's
// message.
func (c *LoadReason) findCall(earlier []step, a session.ActiveSkill) {
	for _, s := range slices.Backward(earlier) {
		switch {
		case s.Message == nil:
			continue
		case s.Message.Role == llm.User:
			c.MatchedWords = bm25.SharedWords(s.Message.Text, strings.Join([]string{a.Skill.Name, a.Title, a.Description}, "\n"))
			return
		}
		for _, call := range slices.Backward(s.Message.Calls) {
			var args struct {
				Name, Query string
				Older       string `json:"skill_name"`
			}
			if json.Unmarshal([]byte(call.Arguments), &args) != nil {
				continue
			}
			switch {
			case call.Name == toolname.LoadSkill && c.Call == "" && (a.Skill.Matches(args.Name) || a.Skill.Matches(args.Older)):
				c.Call = call.ID
			case call.Name == toolname.SearchSkills && c.Query == "":
				c.Query = args.Query
			}
		}
	}
}
