package evalfile

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
)

// form is the form of a file, which a field at the top level identifies.
type form struct {
	field string
	read  func(r *reader, doc *configfile.Node)
}

// The order matters: a file of waza may have tasks and other fields.
var forms = []form{
	{"cases", (*reader).readOwn},
	{"evals", (*reader).readEvals},
	{"scenarios", (*reader).readScenarios},
	{"stimuli", (*reader).readStimuli},
	{"should_trigger_prompts", (*reader).readTriggerTests},
	{"should_not_trigger_prompts", (*reader).readTriggerTests},
	{"tasks", (*reader).readTasks},
	{"queries", func(r *reader, doc *configfile.Node) { r.queries(doc.Get("queries")); r.skipRest(doc, "queries") }},
}

// document reads a document of any form.
func (r *reader) document(doc *configfile.Node) {
	if doc.Kind == configfile.List {
		r.queries(doc)
		return
	}
	for _, f := range forms {
		if doc.Get(f.field) != nil {
			f.read(r, doc)
			return
		}
	}
	if strings.HasPrefix(path.Base(r.name), "test.") && r.name != OwnFile { // a file of another kind
		if n := len(r.suite.Files); n > 0 && r.suite.Files[n-1] == r.name && !slices.ContainsFunc(r.suite.Cases, func(c Case) bool { return c.File == r.name }) {
			r.suite.Files = r.suite.Files[:n-1]
		}
		return
	}
	r.problem(r.name, doc.Line, "not an evaluation file of a known form: it has none of cases, evals, scenarios, stimuli, should_trigger_prompts, tasks and queries")
}

// items returns the maps in a list, and reports other values.
func (r *reader) items(list *configfile.Node) []*configfile.Node {
	if list.Kind != configfile.List {
		r.problem(r.name, list.Line, "want a list of cases, got a %s", list.Kind)
		return nil
	}
	var out []*configfile.Node
	for _, item := range list.Items {
		if item.Kind != configfile.Map {
			r.problem(r.name, item.Line, "want a case, got a %s", item.Kind)
			continue
		}
		out = append(out, item)
	}
	return out
}

// boolean returns the value of a field, or missing if there is none.
func (r *reader) boolean(n *configfile.Node, key string, missing bool) bool {
	switch v := n.Get(key); {
	case v == nil || v.Kind == configfile.Null:
		return missing
	case v.Kind == configfile.Bool:
		return v.Text == "true"
	default:
		r.problem(r.name, v.Line, "%s is not true or false", key)
		return missing
	}
}

// readOwn reads a file of Loadout.
func (r *reader) readOwn(doc *configfile.Node) {
	if v := text(doc.Get("version")); v != "1" {
		r.problem(r.name, doc.Line, "version is %q, want 1; upgrade Loadout if the file is newer", v)
		return
	}
	for _, c := range r.items(doc.Get("cases")) {
		r.add(c, first(c, "id"), text(c.Get("prompt")), r.boolean(c, "trigger", true), texts(c.Get("accept"))...)
		r.skipRest(c, "prompt", "trigger", "accept")
	}
	r.skipRest(doc, "cases")
}

// readEvals reads evals.json of skill-creator. Its prompts are tasks for the skill.
func (r *reader) readEvals(doc *configfile.Node) {
	for _, c := range r.items(doc.Get("evals")) {
		r.add(c, first(c, "id", "name"), first(c, "prompt", "query"), r.boolean(c, "should_trigger", true))
		r.skipRest(c, "prompt", "query", "should_trigger")
	}
	r.skipRest(doc, "evals")
}

// readScenarios reads eval.yaml of dotnet/skills, first generation.
func (r *reader) readScenarios(doc *configfile.Node) {
	for _, c := range r.items(doc.Get("scenarios")) {
		r.add(c, first(c, "name", "id"), text(c.Get("prompt")), r.boolean(c, "expect_activation", true))
		r.skipRest(c, "prompt", "expect_activation")
	}
	r.skipRest(doc, "scenarios")
}

// readStimuli reads eval.yaml of Vally.
func (r *reader) readStimuli(doc *configfile.Node) {
	for _, c := range r.items(doc.Get("stimuli")) {
		r.add(c, first(c, "name", "id"), text(c.Get("prompt")), r.boolean(c, "expect_activation", true))
		r.skipRest(c, "prompt", "expect_activation")
	}
	r.skipRest(doc, "stimuli")
}

// readTriggerTests reads trigger_tests.yaml of waza.
func (r *reader) readTriggerTests(doc *configfile.Node) {
	for _, trigger := range []bool{true, false} {
		key := "should_trigger_prompts"
		if !trigger {
			key = "should_not_trigger_prompts"
		}
		list := doc.Get(key)
		if list == nil || list.Kind == configfile.Null {
			continue
		}
		if list.Kind != configfile.List {
			r.problem(r.name, list.Line, "%s: want a list, got a %s", key, list.Kind)
			continue
		}
		for _, c := range list.Items {
			r.add(c, first(c, "id"), first(c, "prompt")+text(c), trigger)
			if c.Kind == configfile.Map {
				r.skipRest(c, "prompt")
			}
		}
	}
	r.skipRest(doc, "should_trigger_prompts", "should_not_trigger_prompts")
}

// readTasks reads eval.yaml of waza and the files of its tasks.
func (r *reader) readTasks(doc *configfile.Node) {
	r.skipRest(doc, "tasks")
	suite, list := r.name, doc.Get("tasks")
	defer func() { r.name = suite }()
	if list.Kind != configfile.List {
		r.problem(suite, list.Line, "tasks: want a list of paths, got a %s", list.Kind)
		return
	}
	for _, item := range list.Items {
		pattern := text(item)
		if pattern == "" {
			r.problem(suite, item.Line, "tasks: want the path of a file, got a %s", item.Kind)
			continue
		}
		names, err := fs.Glob(r.fsys, path.Join(path.Dir(suite), pattern))
		if err != nil || len(names) == 0 {
			r.problem(suite, item.Line, "no file matches %q", pattern)
		}
		for _, name := range names {
			if r.read[name] || IsFileName(path.Base(name)) {
				continue
			}
			if len(r.read) >= MaxFiles {
				r.problem(suite, item.Line, "too many evaluation files (limit %d)", MaxFiles)
				return
			}
			r.readTask(name)
		}
	}
}

// readTask reads a task of waza.
func (r *reader) readTask(name string) {
	r.read[name] = true
	r.suite.Files = append(r.suite.Files, name)
	for _, task := range r.parse(name) {
		inputs := task.Get("inputs")
		r.add(task, first(task, "id", "name"), first(inputs, "prompt")+first(task, "prompt"), true)
		r.skipRest(task, "inputs", "prompt")
		if inputs != nil && inputs.Kind == configfile.Map {
			r.skipRest(inputs, "prompt")
		}
	}
}

// queries reads eval_queries.json of skill-creator, or a query file of skill-reach.
func (r *reader) queries(list *configfile.Node) {
	for _, c := range r.items(list) {
		prompt := first(c, "query", "text", "prompt")
		if c.Get("expected_skill") == nil && c.Get("kind") == nil {
			r.add(c, first(c, "id"), prompt, r.boolean(c, "should_trigger", true))
			r.skipRest(c, "query", "text", "prompt", "should_trigger")
			continue
		}
		want := text(c.Get("expected_skill"))
		accept := texts(c.Get("acceptable_skills"))
		trigger := want == r.skill
		for _, name := range accept {
			trigger = trigger || name == r.skill
		}
		r.add(c, first(c, "id"), prompt, trigger, append(accept, want)...)
		r.skipRest(c, "query", "text", "prompt", "kind", "expected_skill", "acceptable_skills")
	}
}
