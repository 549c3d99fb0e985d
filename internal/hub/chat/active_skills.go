package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/bm25"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/session"
)

// InForce is an active skill of a conversation.
type InForce struct {
	Skill      session.ID            `json:"skill"`
	Title      string                `json:"displayName"` // or its name
	Tokens     int                   `json:"tokens"`
	Tools      []string              `json:"tools,omitempty" doc:"That came with it"`
	RequiredBy string                `json:"for,omitempty" doc:"The skill that needed it"`
	Retention  session.RetentionMode `json:"keep,omitempty" enum:",pinned,once"`
	// TurnsLeft is the number of further turns that the skill stays active
	// without being used; nil is unlimited.
	TurnsLeft *int `json:"left" doc:"For how many turns after this one it stays without being used; null is for good"`

	Origin    string    `json:"origin" doc:"The label of the source that it came from"`
	SkillID   string    `json:"skill_id,omitempty" doc:"In /skills; not there where it is not of the library, or that was not noted"`
	Namespace string    `json:"namespace,omitempty" doc:"Where it is at home, for who sees it"`
	Version   string    `json:"version,omitempty" doc:"That it states"`
	Digest    string    `json:"digest" doc:"Of SKILL.md as it was loaded"`
	Changed   bool      `json:"changed,omitempty" doc:"SKILL.md is another one by now"`
	Since     time.Time `json:"since"`
	Chosen
}

// Chosen says why a skill is active, as far as the transcript records it.
type Chosen struct {
	By           session.Cause `json:"by,omitempty" enum:"model,person,preload,dependency" doc:"Who brought it into force; not there where that is not known"`
	Why          string        `json:"why,omitempty" doc:"The same with its reason, for people"`
	Start        string        `json:"start,omitempty" doc:"Of a skill that is in force from the start: who wants that, for people"`
	Call         string        `json:"call,omitempty" doc:"The id of the call by which the model loaded it"`
	Query        string        `json:"query,omitempty" doc:"What the model had searched for last in that turn"`
	MatchedWords []string      `json:"words,omitempty" doc:"Of what the person had said, those that its name and description have too"`
}

// ActiveSkills returns the active skills in the order of loading.
func (e *Engine) ActiveSkills(ctx context.Context, p account.Principal, id string) ([]InForce, error) {
	s, steps, err := e.replay(ctx, p, id)
	if err != nil {
		return nil, err
	}
	var out []InForce
	for _, a := range s.Active() {
		load := steps[a.Seq-1]
		f := InForce{Skill: a.Skill, Title: a.DisplayName(), Tokens: a.Tokens, Tools: a.Tools, RequiredBy: a.RequiredBy, Retention: a.Retention,
			Origin: a.Skill.Origin, SkillID: load.SkillID, Version: a.Version, Digest: a.Digest, Changed: a.Current != a.Digest, Since: load.Time,
			Chosen: findLoadReason(steps[:a.Seq-1], a)}
		if left, bounded := s.TurnsLeft(a.Skill); bounded {
			f.TurnsLeft = &left
		}
		out = append(out, f)
	}
	return out, nil
}

// findLoadReason determines from the steps before a load why the skill is
// active.
func findLoadReason(before []step, a session.ActiveSkill) Chosen {
	c := Chosen{By: loadCause(a)}
	switch c.By {
	case session.ByDependency:
		c.Why = "the skill " + a.RequiredBy + " needs it"
	case session.ByPreload:
		c.Why = "it is in force from the start"
		if a.Why != "" {
			c.Start = a.Why
			c.Why += ": " + a.Why
		}
	case session.ByUser:
		c.Why = "a person loaded it by hand"
	case session.ByModel:
		c.findCall(before, a)
		c.Why = "the model loaded it"
		if c.Query != "" {
			c.Why += fmt.Sprintf(", having searched for %q", c.Query)
		}
		if len(c.MatchedWords) > 0 {
			c.Why += "; its description has words of the message: " + strings.Join(c.MatchedWords, ", ")
		}
	}
	return c
}

// loadCause returns what activated a skill. Older transcripts do not record it;
// in these a skill loaded before the first message has no known cause.
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

// findCall finds the call by which the model loaded a skill, the last search
// before it in that turn, and the matching words of the user's message.
func (c *Chosen) findCall(before []step, a session.ActiveSkill) {
	for _, s := range slices.Backward(before) {
		switch {
		case s.Message == nil:
			continue
		case s.Message.Role == session.RoleUser:
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
