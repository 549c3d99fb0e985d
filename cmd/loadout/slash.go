package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/session"
)

// commands are those that a person may type: first those of the program, then a skill
// each. A skill of the name of a command is loaded with /load.
func (t *talk) commands(ctx context.Context) []terminal.Command {
	own := []terminal.Command{
		{Name: "help", Args: "[NAME]", Help: "what there is, or what NAME is", Complete: t.namesOfAll(ctx), Run: t.help},
		{Name: "skills", Help: "the skills, and which are loaded", Run: quiet(t.skills)},
		{Name: "load", Args: "NAME", Help: "load a skill, until /unload", Complete: t.skillNames, Run: quiet(t.load)},
		{Name: "unload", Args: "NAME", Help: "unload a skill", Complete: t.loadedNames, Run: quiet(t.unload)},
		{Name: "tools", Help: "the tools of the agent, of skills and of servers", Run: quiet(t.tools)},
		{Name: "model", Args: "[VENDOR:NAME]", Help: "the model, or another one from here on", Run: quiet(t.choose)},
		{Name: "cost", Help: "tokens and money, with the cache and without", Run: quiet(t.cost)},
		{Name: "resume", Args: "[ID]", Help: "your conversations, or go on with one", Complete: t.conversationNames, Run: quiet(t.resume)},
		{Name: "export", Args: "[FILE]", Help: "write the conversation to a Markdown file", Run: quiet(t.export)},
		{Name: "compact", Help: "tell the model in short what was said, to save tokens", Run: func(ctx context.Context, _ string, tell func(agent.Event)) (string, error) {
			return "", t.Compact(ctx, tell)
		}},
		{Name: "details", Help: "the last calls unfolded, as Ctrl-O", Run: quiet(t.details)},
		{Name: "quit", Help: "leave, as Ctrl-D", Run: quiet(func(context.Context, string) (string, error) { return "", &terminal.End{} })},
	}
	return append(own, t.skillCommands(ctx, own)...)
}

// quiet is a command in whose course nothing happens.
func quiet(f func(context.Context, string) (string, error)) func(context.Context, string, func(agent.Event)) (string, error) {
	return func(ctx context.Context, args string, _ func(agent.Event)) (string, error) { return f(ctx, args) }
}

// help says what commands and skills there are, or what one is.
func (t *talk) help(ctx context.Context, name string, _ func(agent.Event)) (string, error) {
	all := t.commands(ctx)
	if name = strings.TrimPrefix(name, "/"); name != "" {
		return t.helpOf(ctx, name, all)
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
		fmt.Fprintf(&b, "- `/NAME` and what it is for: one of %d skills, see `/skills`\n", skills)
	}
	b.WriteString("\n**Keys**\n\n- Enter says it; Alt-Enter, Ctrl-J or a backslash before Enter begins a new line\n- Tab completes, ↑ and ↓ go through what you typed before\n" +
		"- Esc or Ctrl-C stops the answer; Ctrl-C twice, or Ctrl-D, leaves\n- Ctrl-O unfolds the last calls\n")
	return b.String(), nil
}

func (t *talk) helpOf(ctx context.Context, name string, all []terminal.Command) (string, error) {
	i := slices.IndexFunc(all, func(k terminal.Command) bool { return k.Name == name })
	if i >= 0 && all[i].Detail == nil {
		return fmt.Sprintf("`%s` %s\n", strings.TrimSpace("/"+name+" "+all[i].Args), all[i].Help), nil
	}
	return t.helpOfSkill(ctx, name)
}

// tools names what can be called.
func (t *talk) tools(ctx context.Context, _ string) (string, error) {
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
		if k.NeedsPerson {
			asks = " (you are asked)"
		}
		fmt.Fprintf(&b, "- %s: %s%s\n", literal(k.Name), literal(firstSentence(k.Description)), asks)
	}
	servers := ""
	for _, s := range t.set.Servers() {
		if s.Name == builtinName || s.Skill != "" {
			continue
		}
		known := 0
		if s.Known != nil {
			known = len(s.Known.Tools)
		}
		servers += fmt.Sprintf("- %s: %s, %d tools\n", literal(s.Name), strings.ToLower(string(s.State)), known)
	}
	if servers != "" {
		b.WriteString("\n**MCP servers**, whose tools the agent finds by itself\n\n" + servers)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "\n%s\n", literal(p))
	}
	return b.String(), nil
}

// choose says which model answers, or has another one answer from here on.
func (t *talk) choose(ctx context.Context, name string) (string, error) {
	if name == "" {
		return fmt.Sprintf("%s answers. For another one: `/model anthropic:NAME`, `/model openai:NAME` or `/model demo`.\n", t.where()), nil
	}
	next := t.answering.named(t.config, name)
	m, err := t.app.model(ctx, t.config, next)
	if err != nil {
		return "", err
	}
	t.SetModel(m)
	t.answering.now, t.answering.model = next, m
	return t.where() + " answers from here on.\n", nil
}

// where is the model, and the server that answers for it.
func (t *talk) where() string {
	out := literal(t.Model().Name())
	if host := t.answering.now.host(); host != "" {
		out += " at " + literal(host)
	}
	return out
}

// cost says what each model took.
func (t *talk) cost(context.Context, string) (string, error) {
	spent := t.Spent()
	if len(spent) == 0 {
		return "Nothing was asked so far.\n", nil
	}
	var b strings.Builder
	b.WriteString("| model | read | from cache | to cache | written | cost | without cache |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	weighed := false
	for _, name := range slices.Sorted(maps.Keys(spent)) {
		u := spent[name]
		with, without := "", ""
		if p, known := t.price(name); known {
			x, y := p.Cost(u)
			with, without = terminal.Dollars(x), terminal.Dollars(y)
		} else {
			x, y := u.Equivalents()
			with, without, weighed = terminal.Tokens(int(x))+"*", terminal.Tokens(int(y))+"*", true
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", literal(name), terminal.Tokens(u.Input), terminal.Tokens(u.CacheRead), terminal.Tokens(u.CacheWrite), terminal.Tokens(u.Output), with, without)
	}
	if weighed {
		b.WriteString("\n\\* in tokens of input, as no price is known: `models.prices` in the configuration has them.\n")
	}
	return b.String(), nil
}

// details names the last calls, where nothing unfolds them on a screen.
func (t *talk) details(context.Context, string) (string, error) {
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
	return "No tool was called so far.\n", nil
}

// firstSentence is the beginning of a description.
func firstSentence(text string) string {
	text = plain(text)
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i+1]
	}
	return clip(text, 120)
}

// literal is text of others in Markdown, on one line and with nothing in it that means
// something there.
func literal(text string) string { return session.Literal(plain(text)) }

// fenced is text of others as a block of code in Markdown.
func fenced(text string) string { return session.Fenced(safe(text)) }
