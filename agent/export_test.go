package agent

import (
	"context"

	"github.com/loadout-dev/loadout/internal/fold"
)

// MaxResult is the size limit of a result's text in bytes.
const MaxResult = maxResult

// Connect connects to an in-process server.
var Connect = connect

// Tools returns the server's tools, except those named in without.
func (c *connection) Tools(ctx context.Context, without ...string) ([]Tool, error) {
	listed, err := c.tools(ctx, without...)
	return c.withCalls(listed), err
}

// Limits of the images in a result.
const (
	MaxImages     = maxImages
	MaxImageBytes = maxImageBytes
)

// ResultOutcome converts a result to an outcome for the model.
var ResultOutcome = resultOutcome

// ProgressText returns the text of a progress notification.
var ProgressText = progressText

// FoldedState returns the state of an agent's conversation.
func FoldedState(a *Agent) *fold.State { return a.folded() }
