package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

const skillSchema = `{"type":"object","properties":{"name":{"type":"string","description":"of the skill"}},"required":["name"]}`

// skillLoader is the type of [Options.LoadSkill].
type skillLoader = func(ctx context.Context, skill string, load func() (*session.LoadResult, error)) (*session.LoadResult, error)

// loadTool returns the tool that a model calls to load skills. hook and check may be
// nil.
func loadTool(s *session.Session, hook skillLoader, check loadCheck) Tool {
	return Tool{Repeatable: true, ReadOnly: true, checkLoad: check, Tool: llm.Tool{
		Name: toolname.LoadSkill, InputSchema: json.RawMessage(skillSchema),
		Description: "Load a skill: its instructions, and the tools that it brings. Do so before a task that one of the available skills is for.",
	}, Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		name, out := skillName(args)
		if out != nil {
			return out, nil
		}
		if check != nil {
			if out, err := check(ctx, name, args); out != nil || err != nil {
				return out, err
			}
		}
		load := func() (*session.LoadResult, error) {
			return s.Load(ctx, name, &session.LoadOptions{ByModel: true})
		}
		var r *session.LoadResult
		var err error
		if hook != nil {
			r, err = hook(ctx, name, load)
		} else {
			r, err = load()
		}
		if err != nil {
			return nil, err
		}
		text := r.Text
		if r.State == session.StateAlreadyLoaded && len(r.Problems) > 0 {
			text += "\nProblems: " + strings.Join(r.Problems, "; ")
		}
		return &Outcome{Text: text, Error: r.State == session.StateFailed}, nil
	}}
}

// unloadTool returns the tool that a model calls to unload skills.
func unloadTool(s *session.Session) Tool {
	return Tool{Repeatable: true, Tool: llm.Tool{
		Name: toolname.UnloadSkill, InputSchema: json.RawMessage(skillSchema),
		Description: "Unload a skill that is not needed any more.",
	}, Call: func(ctx context.Context, args json.RawMessage) (*Outcome, error) {
		name, out := skillName(args)
		if out != nil {
			return out, nil
		}
		gone, err := s.Unload(ctx, name, "the agent is done with it", false)
		if needed := (*session.NeededByOthersError)(nil); errors.Is(err, session.ErrNotLoaded) || errors.As(err, &needed) {
			return newErrorOutcome(err.Error(), false), nil
		}
		if err != nil {
			return nil, err
		}
		return &Outcome{Text: "Unloaded " + strings.Join(gone, ", ") + "."}, nil
	}}
}

// skillName parses the arguments of load_skill and unload_skill. If they are
// invalid, it returns an outcome for the model.
func skillName(args json.RawMessage) (string, *Outcome) {
	var in struct {
		Name  string `json:"name"`
		Older string `json:"skill_name"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return "", &Outcome{Text: "The arguments are no JSON object with a name.", Error: true}
	}
	if in.Name == "" {
		in.Name = in.Older
	}
	if in.Name == "" {
		return "", &Outcome{Text: "Give the name of a skill.", Error: true}
	}
	return in.Name, nil
}
