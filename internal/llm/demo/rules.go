package demo

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
)

// Names of the tools that the rules use.
const (
	search    = toolname.SearchSkills
	load      = toolname.LoadSkill
	readFile  = toolname.ReadSkillFile
	runScript = toolname.RunSkillScript
	findTools = toolname.FindTools
	callTool  = toolname.CallTool
)

// turn holds the user's last message, the steps since then, and the skills and
// tools found in earlier results.
type turn struct {
	words  string
	has    map[string]bool // available tools
	steps  []*step
	skills []*skill // skills loaded in this conversation, the newest last
	listed []hit    // skills listed in the instructions
	tools  []tool   // tools found by a tool search
}

// step is a tool call and its result.
type step struct {
	id, name string
	args     map[string]any
	result   string
	answered bool
	failed   bool
}

// readTurn returns the last turn of a conversation. From earlier turns, it
// keeps only the loaded skills.
func readTurn(r *llm.Request) *turn {
	t := &turn{has: map[string]bool{}}
	for _, tool := range r.Tools {
		t.has[tool.Name] = true
	}
	t.listed, t.skills = readInstructions(truncate(r.Instructions, maxRead))
	open := map[string]*step{}
	start := lastUserMessage(r.Messages)
	for i := range r.Messages {
		m := &r.Messages[i]
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Call:
				if i < start && p.Name != load {
					if len(open) > 0 {
						delete(open, p.ID) // vendors reuse IDs
					}
					continue
				}
				s := newStep(p)
				open[p.ID] = s
				t.steps = append(t.steps, s)
			case llm.Result:
				if s := open[p.Call]; s != nil && !s.answered {
					s.answered, s.failed = true, p.Error
					s.result = truncate((&llm.Message{Parts: p.Parts}).Text(), maxRead)
					t.addResult(s)
				}
			}
		}
		if m.Role == llm.Notice { // the user loaded a skill, or it was loaded at the start
			for _, k := range parseLoadedSkills(truncate(m.Text(), maxRead)) {
				t.skills = append(removeSkill(t.skills, k), k)
			}
		}
		if i == start {
			t.words, t.steps, t.tools = truncate(typedText(m.Text()), maxWords), nil, nil
		}
	}
	return t
}

// query returns the first line of the user's message, which the demo searches
// for and quotes in its response.
func (t *turn) query() string {
	first, _, _ := strings.Cut(t.words, "\n")
	return truncate(strings.TrimSpace(first), 300)
}

// phrasings returns further lines of the user's message, which the demo also
// searches for.
func (t *turn) phrasings() []string {
	var out []string
	_, rest, _ := strings.Cut(t.words, "\n")
	for line := range strings.Lines(rest) {
		if line = strings.TrimSpace(line); line != "" && len(out) < 3 {
			out = append(out, truncate(line, 300))
		}
	}
	return out
}

// typedText returns the text that the user typed in a message, without the files
// that the chat appended.
func typedText(text string) string {
	text, _, _ = strings.Cut(text, "\n\nFile ")
	return strings.TrimSpace(text)
}

// lastUserMessage returns the index of the last message with text from the user,
// or -1 if there is none.
func lastUserMessage(messages []llm.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if m := &messages[i]; m.Role == llm.User && strings.TrimSpace(m.Text()) != "" {
			return i
		}
	}
	return -1
}

// Limits on the input of the rules, because results may have any size.
const (
	maxWords = 4000    // bytes of a user message
	maxRead  = 1 << 20 // bytes of a result
)

// addResult records the skills and tools that a result describes.
func (t *turn) addResult(s *step) {
	if s.failed {
		return
	}
	switch s.name {
	case load:
		for _, k := range readLoad(s.result, s.text("name")) {
			t.skills = append(removeSkill(t.skills, k), k)
		}
	case findTools:
		t.tools = readTools(s.result)
	}
}

// removeSkill returns the known skills except k. If the older entry for k has
// details that k lacks, it copies them to k, because the result of a repeated
// load may only refer to the first load.
func removeSkill(known []*skill, k *skill) []*skill {
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

// next returns the next tool call. ok is false if there is none: a turn calls
// each tool at most once and stops after a failure.
func (t *turn) next() (name string, args map[string]any, ok bool) {
	for _, s := range t.steps {
		if s.failed || !s.answered {
			return "", nil, false
		}
	}
	if t.words == "" {
		return "", nil, false
	}
	if t.asksForOverview() {
		return t.callOnce(search, map[string]any{})
	}
	if t.hasMadeFinalCall() {
		return "", nil, false
	}
	if name, args, ok := t.finalCall(); ok {
		return name, args, true
	}
	if t.has[search] && t.findStep(search) == nil {
		args := map[string]any{"query": t.query(), "limit": 5}
		if more := t.phrasings(); len(more) > 0 {
			args["queries"] = more
		}
		return t.callOnce(search, args)
	}
	if h := t.chooseSkill(); h != nil {
		return t.callOnce(load, map[string]any{"name": h.Name})
	}
	return t.callOnce(findTools, map[string]any{"query": t.query()})
}

func (t *turn) callOnce(name string, args map[string]any) (string, map[string]any, bool) {
	return name, args, t.has[name] && t.findStep(name) == nil
}

// findStep returns this turn's step that called the named tool, or nil.
func (t *turn) findStep(name string) *step {
	for _, s := range t.steps {
		if s.name == name {
			return s
		}
	}
	return nil
}

// hasMadeFinalCall reports whether this turn has already made its final call.
func (t *turn) hasMadeFinalCall() bool {
	return t.findStep(runScript) != nil || t.findStep(callTool) != nil || t.findStep(readFile) != nil
}

// finalCall returns a call that uses a script, file or tool named by the user.
// It prefers skills named by the user, then newer skills.
func (t *turn) finalCall() (string, map[string]any, bool) {
	for _, named := range []bool{true, false} {
		for i := len(t.skills) - 1; i >= 0; i-- {
			if k := t.skills[i]; mentions(t.words, k.name) == named {
				if name, args, ok := t.chooseCall(k); ok {
					return name, args, true
				}
			}
		}
	}
	return t.callNamed(t.tools)
}

func (t *turn) chooseCall(k *skill) (string, map[string]any, bool) {
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

// chooseSkill returns the skill to load: one of this turn's search results or,
// without a search, one of the listed skills. It chooses a weak result only if the
// user names the skill.
func (t *turn) chooseSkill() *hit {
	hits := t.listed
	if s := t.findStep(search); s != nil {
		hits = readHits(s.result)
	}
	for i := range hits {
		if mentions(t.words, hits[i].Name) {
			return &hits[i]
		}
	}
	for i := range hits {
		if !hits[i].Weak && fits(t.words, hits[i].Name+" "+hits[i].Description) {
			return &hits[i]
		}
	}
	return nil
}
