package demo

import (
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// The tools that the rules know.
const (
	search    = "search_skills"
	load      = "load_skill"
	readFile  = "read_skill_file"
	runScript = "run_skill_script"
	findTools = "find_tools"
	callTool  = "call_tool"
)

// turn is what a person said last, and what was done about it since.
type turn struct {
	words  string
	has    map[string]bool // tools that may be called
	steps  []*step
	skills []*skill // loaded in this conversation, the newest last
	listed []hit    // that the instructions name
	tools  []tool   // that were found by themselves
}

// step is a call, and what came of it.
type step struct {
	id, name string
	args     map[string]any
	result   string
	answered bool
	failed   bool
}

// read takes from a conversation what the rules need.
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
		if m.Role == llm.Notice { // a person loaded a skill, or it was from the start
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

// What is read is bounded: results may be of any size.
const (
	maxWords = 4000    // bytes of what a person says
	maxRead  = 1 << 20 // bytes of a result
)

// learn notes what a result says of skills and tools.
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

// without leaves out what was known of a skill before, unless that is more: a
// second load may say only that there was a first.
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

// next is the call to make now, if there is one. Each tool is called once a turn
// at most, and nothing is called after something failed.
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
	if h := t.fitting(); h != nil {
		return t.once(load, map[string]any{"name": h.Name})
	}
	return t.once(findTools, map[string]any{"query": bounded(t.words, 300)})
}

func (t *turn) once(name string, args map[string]any) (string, map[string]any, bool) {
	return name, args, t.has[name] && t.did(name) == nil
}

// did is the step of this turn with a tool, nil if there was none.
func (t *turn) did(name string) *step {
	for _, s := range t.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// acted reports whether this turn did what all before it was for.
func (t *turn) acted() bool {
	return t.did(runScript) != nil || t.did(callTool) != nil || t.did(readFile) != nil
}

// act calls what the person names of all that is known. The newest skill comes
// first, unless another one is named.
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

// fitting is the skill to load, of those that the search of this turn found, or
// of all where there is no search.
func (t *turn) fitting() *hit {
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

// minScore is what a search gives to a skill that has one telling word.
const minScore = 1.0
