package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/setup"
)

// pendingRequest is a pending request in the output of approve --pending --json.
type pendingRequest struct {
	setup.PendingRequest
	Command string `json:"command"` // command as the user types it
}

type pendingOutput struct {
	Requests []pendingRequest `json:"requests"`
}

func (a *app) listPending() error {
	all, err := a.PendingRequests()
	if err != nil {
		return err
	}
	if a.JSON {
		out := pendingOutput{[]pendingRequest{}}
		for _, r := range all {
			out.Requests = append(out.Requests, pendingRequest{r, r.Command()})
		}
		return a.PrintJSON(out)
	}
	if len(all) == 0 {
		fmt.Fprintln(a.Stdout, "No pending requests. Commands that only you can run appear here if an agent tries to run them.")
		return nil
	}
	for _, r := range all {
		fmt.Fprintf(a.Stdout, "%s\n  %s, in %s: %s\n", a.Bold(plain(r.Command())), r.Time.Local().Format("2006-01-02 15:04"), plain(r.Dir), plain(r.Reason))
	}
	return nil
}

// howToApprove returns a function for an MCP server that is like
// [setup.Setup.HowToApprove], but also records a request to approve a skill as
// pending.
func (a *app) howToApprove(ctx context.Context) func(error) string {
	return func(err error) string {
		if e, ok := errors.AsType[*loadout.RefusedError](err); ok && e.Call == nil && e.NeedsApproval {
			reason := "an MCP client wants to run its code"
			if e.Decision.Code == decision.HiddenText {
				reason = "an MCP client wants to read it, and it has hidden characters"
			}
			dir := a.RootOf(e.Skill)
			a.AddPending(ctx, setup.PendingRequest{Args: append([]string{"approve", e.Skill}, a.SkillArgsIn(dir)...), Dir: dir, Reason: reason})
		}
		return a.HowToApprove(err)
	}
}
