package main

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
)

// describe is an error of a turn with its exit code and the next step. again is what
// may help where the same may well succeed later.
func (t *talk) describe(err error, again string) *exitError {
	status, refused := errors.AsType[*llm.StatusError](err)
	switch {
	case errors.Is(err, context.Canceled):
		return &exitError{exitFound, err, again}
	case refused && (status.Code == 401 || status.Code == 403):
		return &exitError{exitRefused, err, t.answering.now.keyHint()}
	case refused && status.Code == 404:
		return &exitError{exitNotFound, err, "check the name of the model" + t.answering.now.serverHint(" and the address given with --base-url")}
	case refused && !status.Again():
		return &exitError{exitFound, err, "the same will be refused again: check what it says" + t.answering.now.serverHint(", and the address given with --base-url")}
	case isType[*url.Error](err) && !isType[*llm.CutError](err):
		return &exitError{exitFound, err, "check " + t.answering.now.serverHint("that the server runs, and the address given with --base-url", "that this machine is online")}
	}
	return &exitError{exitFound, err, again}
}

// described is an error of a turn or a command as a person on a screen reads it.
func (t *talk) described(err error) string {
	if e, ok := errors.AsType[*exitError](err); ok && e.err != nil {
		return plain(e.Error()) + "\n" + plain(e.hint)
	}
	const another = "choose another model with /model"
	_, refused := errors.AsType[*llm.StatusError](err)
	switch {
	case errors.Is(err, agent.ErrSteps), errors.Is(err, agent.ErrTokens):
		return plain(err.Error()) + "\nSay that it should go on, and it does."
	case !refused && !isType[*llm.CutError](err) && !isType[*url.Error](err):
		return plain(err.Error())
	}
	e := t.describe(err, "Say it again, or "+another+".")
	if !strings.Contains(e.hint, another) {
		e.hint = strings.ToUpper(e.hint[:1]) + e.hint[1:] + "; or " + another + "."
	}
	return plain(err.Error()) + "\n" + plain(e.hint)
}

// command goes on with the conversation, as it is typed in a shell: with the same
// model at the same server, folder and servers.
func (t *talk) command() string {
	o, now := t.flags, t.answering.now
	words := "loadout chat --session " + t.id
	add := func(flag, value string) {
		if value != "" {
			words += " --" + flag + " " + quoted(value)
		}
	}
	usual := chosenModel(t.config, &chatFlags{model: now.asked})
	add("model", now.asked)
	if now.server != usual.server {
		add("base-url", now.server)
	}
	if now.key != usual.key {
		add("key", now.key)
	}
	add("workspace", o.workspace)
	add("approve", o.approve)
	add("profile", o.profile)
	for _, file := range o.files {
		add("mcp-config", file)
	}
	return words + t.app.flags()
}
