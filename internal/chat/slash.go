package chat

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/transcript"
	"github.com/loadout-dev/loadout/internal/usage"
)

// slashCommands returns the commands that the user can type: the built-in ones,
// then one per skill. If a skill has the same name as a built-in command, the
// user can load it with /load.
func (t *dialog) slashCommands(ctx context.Context) []terminal.Command {
	own := []terminal.Command{
		{Name: "help", Args: "[NAME]", Help: "show the commands, or help for NAME", Complete: t.completeNames(ctx), Run: t.showHelp},
		{Name: "skills", Help: "list skills and loaded skills", Run: ignoreEvents(t.listSkills)},
		{Name: "load", Args: "NAME", Help: "load a skill until /unload", Complete: t.completeSkills, Run: ignoreEvents(t.loadSkill)},
		{Name: "unload", Args: "NAME", Help: "unload a skill", Complete: t.completeLoaded, Run: ignoreEvents(t.unloadSkill)},
		{Name: "tools", Help: "list tools of the agent, skills and servers", Run: ignoreEvents(t.listTools)},
		{Name: "model", Aliases: []string{"models"}, Args: "[VENDOR:NAME]", Help: "choose a model, or switch to VENDOR:NAME", Complete: t.completeModels, Pick: t.pickModels, PickMore: t.offeredModels, PickTitle: "Choose a model", Free: true, Run: ignoreEvents(t.switchModel)},
		{Name: "cost", Help: "show tokens and cost, with and without cache", Run: ignoreEvents(t.formatCost)},
		{Name: "resume", Aliases: []string{"sessions"}, Args: "[ID]", Help: "choose a conversation to resume, or resume ID", Complete: t.completeConversations, Pick: t.pickConversations, PickTitle: "Resume a conversation", Run: ignoreEvents(t.resumeConversation)},
		{Name: "new", Help: "start a new conversation", Run: ignoreEvents(t.startConversation(false))},
		{Name: "clear", Help: "start a new conversation on an empty screen", Run: ignoreEvents(t.startConversation(true))},
		{Name: "export", Args: "[FILE]", Help: "export the conversation to a Markdown file", Run: ignoreEvents(t.exportConversation)},
		{Name: "compact", Help: "shorten the context with a summary, to save tokens", Run: func(ctx context.Context, _ string, emit func(agent.Event)) (string, error) {
			return "", t.Compact(ctx, emit)
		}},
		{Name: "details", Help: "show the last calls in full, like Ctrl-O", Run: ignoreEvents(t.showLastCalls)},
		{Name: "quit", Aliases: []string{"exit"}, Help: "exit, like Ctrl-D", Run: ignoreEvents(func(context.Context, string) (string, error) { return "", &terminal.End{} })},
	}
	return append(own, t.skillCommands(ctx, own)...)
}

// ignoreEvents converts f to a command function that ignores its event
// callback.
func ignoreEvents(f func(context.Context, string) (string, error)) func(context.Context, string, func(agent.Event)) (string, error) {
	return func(ctx context.Context, args string, _ func(agent.Event)) (string, error) { return f(ctx, args) }
}

// showHelp returns help for all commands, or for the named command or skill.
func (t *dialog) showHelp(ctx context.Context, name string, _ func(agent.Event)) (string, error) {
	all := t.slashCommands(ctx)
	if name = strings.TrimPrefix(name, "/"); name != "" {
		return t.helpFor(ctx, name, all)
	}
	var b strings.Builder
	b.WriteString("**Commands**\n\n")
	skills := 0
	for _, k := range all {
		if k.Detail != nil {
			skills++
			continue
		}
		fmt.Fprintf(&b, "- `%s` %s\n", strings.TrimSpace("/"+k.Name+" "+k.Args), k.Help)
	}
	if skills > 0 {
		fmt.Fprintf(&b, "- `/NAME` and a task: one of %d skills, see `/skills`\n", skills)
	}
	if !t.screen {
		return b.String() + "\n`@PATH` in a message attaches a file. Ctrl-D exits.\n", nil
	}
	b.WriteString("\n**Keys**\n\n" + terminal.KeyHelp())
	return b.String(), nil
}

func (t *dialog) helpFor(ctx context.Context, name string, all []terminal.Command) (string, error) {
	if k := terminal.FindCommand(all, name); k != nil && k.Detail == nil {
		return fmt.Sprintf("`%s` %s\n", strings.TrimSpace("/"+k.Name+" "+k.Args), k.Help), nil
	}
	return t.skillHelp(ctx, name)
}

// listTools lists the tools that the agent can call.
func (t *dialog) listTools(ctx context.Context, _ string) (string, error) {
	var b strings.Builder
	b.WriteString("**Tools of the agent**\n\n")
	for _, k := range t.Tools() {
		fmt.Fprintf(&b, "- %s: %s\n", literal(k.Name), literal(firstSentence(k.Description)))
	}
	brought, problems := t.session.Tools(ctx)
	if len(brought) > 0 {
		b.WriteString("\n**Tools of loaded skills**\n\n")
	}
	for _, k := range brought {
		asks := ""
		if k.NeedsApproval {
			asks = " (needs approval)"
		}
		fmt.Fprintf(&b, "- %s: %s%s\n", literal(k.Name), literal(firstSentence(k.Description)), asks)
	}
	servers := ""
	for _, s := range t.set.Servers() {
		if s.Name == setup.BuiltinName || s.Skill != "" {
			continue
		}
		known := 0
		if s.Listing != nil {
			known = len(s.Listing.Tools)
		}
		servers += fmt.Sprintf("- %s: %s, %d tools\n", literal(s.Name), strings.ToLower(string(s.State)), known)
	}
	if servers != "" {
		b.WriteString("\n**MCP servers** (the agent finds their tools itself)\n\n" + servers)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "\n%s\n", literal(p))
	}
	return b.String(), nil
}

// switchModel shows the current model or switches to another.
func (t *dialog) switchModel(ctx context.Context, name string) (string, error) {
	if name == "" {
		return fmt.Sprintf("Model: %s. To switch: `/model anthropic:NAME`, `/model openai:NAME` or `/model demo`.\n", t.modelLabel()), nil
	}
	next := t.activeModel().ResolveName(t.config, name)
	m, err := t.host.NewModel(ctx, t.config, next)
	if err != nil {
		return "", err
	}
	t.SetModel(m)
	t.model.Lock()
	t.answering.Now, t.answering.Model = next, m
	t.model.Unlock()
	return "Model: " + t.modelLabel() + ".\n", nil
}

// pickModels returns the models that /model lists.
func (t *dialog) pickModels() ([]terminal.Choice, string) { return t.knownModels(), "" }

// modelListTimeout is the time limit for each server to list its models.
const modelListTimeout = 5 * time.Second

// offeredModels returns the models offered by the servers that run the
// conversation's models. It omits servers that do not answer, and names that the
// user cannot type.
func (t *dialog) offeredModels(ctx context.Context) []terminal.Choice {
	var out []terminal.Choice
	servers := t.activeModel().Listable(t.config)
	for i, names := range listModels(ctx, servers, t.host.ListModels) {
		for _, name := range names {
			if terminal.Printable(name) && !strings.Contains(name, " ") && len(name) <= maxModelName {
				out = append(out, terminal.Choice{Name: name, Help: "offered by " + servers[i].Host()})
			}
		}
	}
	return out
}

// listModels lists the models of all servers concurrently, so that a slow server
// does not delay the others. A server that fails has no models in the result; the
// user can still type a name.
func listModels(ctx context.Context, servers []setup.ModelChoice, list func(context.Context, setup.ModelChoice) ([]string, error)) [][]string {
	out := make([][]string, len(servers))
	var all sync.WaitGroup
	for i, k := range servers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, modelListTimeout)
			defer cancel()
			out[i], _ = list(ctx, k)
		})
	}
	all.Wait()
	return out
}

// maxModelName is the maximum length of a listed model's name, in bytes.
const maxModelName = 200

// knownModels returns the current model, the configured models, and the demo.
func (t *dialog) knownModels() []terminal.Choice {
	now := t.activeModel().Now
	all := []terminal.Choice{{Name: cmp.Or(now.Requested, now.Name, vendors.Demo), Help: "current, " + t.Model().Name()}}
	add := func(name, help string) {
		if name != "" && !slices.ContainsFunc(all, func(c terminal.Choice) bool { return c.Name == name }) {
			all = append(all, terminal.Choice{Name: name, Help: help})
		}
	}
	add(t.config.Models.Default, "default")
	for _, name := range slices.Sorted(maps.Keys(t.config.Models.Names)) {
		add(name, t.config.Models.Names[name].Model)
	}
	for _, name := range slices.Sorted(maps.Keys(t.config.Models.Prices)) {
		if !strings.Contains(name, "*") {
			add(name, "")
		}
	}
	add(vendors.Demo, "built-in rules, needs no key")
	return all
}

// completeModels returns the known models whose names start with a prefix.
func (t *dialog) completeModels(prefix string) []terminal.Choice {
	return slices.DeleteFunc(t.knownModels(), func(c terminal.Choice) bool { return !strings.HasPrefix(c.Name, prefix) })
}

// modelLabel returns the model's name and the server that runs it.
func (t *dialog) modelLabel() string {
	out := literal(t.Model().Name())
	if host := t.activeModel().Now.Host(); host != "" {
		out += " at " + literal(host)
	}
	return out
}

// formatCost formats the tokens and cost of each model.
func (t *dialog) formatCost(context.Context, string) (string, error) {
	spent := t.UsageByModel()
	if len(spent) == 0 {
		return "No requests yet.\n", nil
	}
	var b strings.Builder
	b.WriteString("| model | read | from cache | to cache | written | cost | without cache |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	weighed := false
	for _, name := range slices.Sorted(maps.Keys(spent)) {
		u := spent[name]
		with, without := "", ""
		if p, known := t.price(name); known {
			x, y := p.Cost(u)
			with, without = terminal.FormatDollars(x), terminal.FormatDollars(y)
		} else {
			x, y := usage.Equivalents(u)
			with, without, weighed = terminal.FormatTokens(int(x))+"*", terminal.FormatTokens(int(y))+"*", true
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", literal(name), terminal.FormatTokens(u.Input), terminal.FormatTokens(u.CacheRead), terminal.FormatTokens(u.CacheWrite), terminal.FormatTokens(u.Output), with, without)
	}
	if weighed {
		b.WriteString("\n\\* in input tokens, because no price is configured (`models.prices`).\n")
	}
	return b.String(), nil
}

// showLastCalls returns the last tool calls in full, for terminals that cannot
// expand them.
func (t *dialog) showLastCalls(context.Context, string) (string, error) {
	var b strings.Builder
	results := map[string]string{}
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch {
		case e.Result != nil:
			results[e.Result.Call] = e.Result.Text
		case e.Message != nil && len(e.Message.Calls) > 0:
			for _, c := range e.Message.Calls {
				fmt.Fprintf(&b, "**%s**\n\n%s\n\n%s\n\n", literal(c.Name), fenced(c.Arguments), fenced(results[c.ID]))
			}
			return b.String(), nil
		}
	}
	return "No tool calls yet.\n", nil
}

// firstSentence returns the first sentence of a description.
func firstSentence(text string) string {
	text = terminal.Plain(text)
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i+1]
	}
	return terminal.Clip(text, 120)
}

// literal returns untrusted text on one line, escaped for Markdown.
func literal(text string) string { return transcript.Escape(terminal.Plain(text)) }

// fenced returns untrusted text as a Markdown code block.
func fenced(text string) string { return transcript.Fence(terminal.Safe(text)) }
