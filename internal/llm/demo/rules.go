package demo

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// The tools that the rules know.
const (
	search    = toolname.SearchSkills
	load      = toolname.LoadSkill
	readFile  = toolname.ReadSkillFile
	runScript = toolname.RunSkillScript
	findTools = toolname.FindTools
	callTool  = toolname.CallTool
)

// turn is the user's last message and the steps since then.
type turn struct {
	words  string
	has    map[string]bool // available tools
	steps  []*step
	skills []*skill // loaded in this conversation, the newest last
	listed []hit    // listed in the instructions
	tools  []tool   // found by a tool search
}

// step is a call with its result.
type step struct {
	id, name string
	args     map[string]any
	result   string
	answered bool
	failed   bool
}

// read extracts the input of the rules from a conversation.
func read(r *llm.Request) *turn {
	t := &turn{has: map[string]bool{}}
	for _, tool := range r.Tools {
		t.has[tool.Name] = true
	}
	t.listed, t.skills = readInstructions(bounded(r.Instructions, maxRead))
	open := map[string]*step{}
	for i := range r.Messages {
		m := &r.Messages[i]
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Call:
				s := newStep(p)
				open[p.ID] = s
				t.steps = append(t.steps, s)
			case llm.Result:
				if s := open[p.Call]; s != nil && !s.answered {
					s.answered, s.failed = true, p.Error
					s.result = bounded((&llm.Message{Parts: p.Parts}).Words(), maxRead)
					t.learn(s)
				}
			}
		}
		if m.Role == llm.Notice { // a skill was loaded by the user or at the start
			for _, k := range readLoaded(bounded(m.Words(), maxRead)) {
				t.skills = append(without(t.skills, k), k)
			}
		}
		if words := strings.TrimSpace(m.Words()); m.Role == llm.User && words != "" {
			t.words, t.steps, t.tools = bounded(words, maxWords), nil, nil
		}
	}
	return t
}

// Limits for reading, because results may be of any size.
const (
	maxWords = 4000    // bytes of a user message
	maxRead  = 1 << 20 // bytes of a result
)

// learn records the skills and tools in a result.
func (t *turn) learn(s *step) {
	if s.failed {
		return
	}
	switch s.name {
	case load:
		for _, k := range readLoad(s.result, s.text("name")) {
			t.skills = append(without(t.skills, k), k)
		}
	case findTools:
		t.tools = readTools(s.result)
	}
}

// without returns the known skills without k. If the older entry has more
// information, it is merged, because a repeated load may only refer to the
// first one.
func without(known []*skill, k *skill) []*skill {
	var out []*skill
	for _, old := range known {
		if old.name != k.name {
			out = append(out, old)
			continue
		}
		if len(k.scripts)+len(k.files)+len(k.tools) == 0 {
			k.scripts, k.files, k.tools = old.scripts, old.files, old.tools
		}
		if k.instructions == "" {
			k.instructions = old.instructions
		}
	}
	return out
}

// next returns the next call, if there is one. A turn calls each tool at most
// once and stops after a failure.
func (t *turn) next() (name string, args map[string]any, ok bool) {
	for _, s := range t.steps {
		if s.failed || !s.answered {
			return "", nil, false
		}
	}
	if t.words == "" {
		return "", nil, false
	}
	if t.asksWhatThereIs() {
		return t.once(search, map[string]any{})
	}
	if t.acted() {
		return "", nil, false
	}
	if name, args, ok := t.act(); ok {
		return name, args, true
	}
	if t.has[search] && t.did(search) == nil {
		return t.once(search, map[string]any{"query": bounded(t.words, 300), "limit": 5})
	}
	if h := t.chooseSkill(); h != nil {
		return t.once(load, map[string]any{"name": h.Name})
	}
	return t.once(findTools, map[string]any{"query": bounded(t.words, 300)})
}

func (t *turn) once(name string, args map[string]any) (string, map[string]any, bool) {
	return name, args, t.has[name] && t.did(name) == nil
}

// did returns the step of this turn with a tool, or nil.
func (t *turn) did(name string) *step {
	for _, s := range t.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// acted reports whether this turn already made its final call.
func (t *turn) acted() bool {
	return t.did(runScript) != nil || t.did(callTool) != nil || t.did(readFile) != nil
}

// act returns a call of a script, file or tool that the user names. It prefers
// skills that are named, then newer skills.
func (t *turn) act() (string, map[string]any, bool) {
	for _, named := range []bool{true, false} {
		for i := len(t.skills) - 1; i >= 0; i-- {
			if k := t.skills[i]; mentions(t.words, k.name) == named {
				if name, args, ok := t.actWith(k); ok {
					return name, args, true
				}
			}
		}
	}
	return t.callNamed(t.tools)
}

func (t *turn) actWith(k *skill) (string, map[string]any, bool) {
	if path := namedFile(t.words, k.scripts); path != "" && t.has[runScript] {
		args := map[string]any{"skill": k.name, "script": path}
		if list := scriptArguments(t.words, k.name, path); len(list) > 0 {
			args["args"] = list
		}
		return runScript, args, true
	}
	if name, args, ok := t.callNamed(k.tools); ok {
		return name, args, true
	}
	if path := namedFile(t.words, k.files); path != "" && t.has[readFile] {
		return readFile, map[string]any{"skill": k.name, "path": path}, true
	}
	return "", nil, false
}

func (t *turn) callNamed(all []tool) (string, map[string]any, bool) {
	for _, tool := range all {
		if t.has[callTool] && namesTool(t.words, tool.name) {
			return callTool, map[string]any{"name": tool.name, "arguments": toolArguments(t.words, tool)}, true
		}
	}
	return "", nil, false
}

// chooseSkill returns the skill to load: from the search results of this turn, or
// from the listed skills if there is no search.
func (t *turn) chooseSkill() *hit {
	hits := t.listed
	if s := t.did(search); s != nil {
		hits = readHits(s.result)
	}
	for i := range hits {
		if mentions(t.words, hits[i].Name) {
			return &hits[i]
		}
	}
	for i := range hits {
		if hits[i].Score >= minScore || share(t.words, hits[i].Name+" "+hits[i].Description) {
			return &hits[i]
		}
	}
	return nil
}

// minScore is the search score of a skill with one significant word.
const minScore = 1.0
