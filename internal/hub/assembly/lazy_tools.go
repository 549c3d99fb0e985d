package assembly

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/agent"
)

// toolList identifies a list of tools whose definitions are the same in all
// conversations of a node.
type toolList struct {
	folder bool // whether the list has the tools for the working directory; otherwise it has those for skills
	runs   bool // whether code can run
}

// lazyTools returns the tools that open returns. It calls open only once, with ctx:
// immediately if no conversation of this node has opened the list yet, and
// otherwise at the first call of a tool. This saves time, because most turns call
// few tools, while open creates and connects MCP servers.
func (t *conversation) lazyTools(ctx context.Context, list toolList, open func(context.Context) ([]agent.Tool, error)) ([]agent.Tool, error) {
	if defined, ok := t.assembler.toolLists.Load(list); ok {
		// Not with the context of the call, because a connection serves later calls too.
		l := &lazyList{conversation: t, open: func() ([]agent.Tool, error) { return open(ctx) }}
		return l.tools(defined.([]agent.Tool)), nil
	}
	opened, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defined := slices.Clone(opened)
	for i := range defined {
		defined[i] = defined[i].Lazy(nil) // its functions belong to this conversation
	}
	t.assembler.toolLists.Store(list, defined)
	return opened, nil
}

// lazyList opens tools at the first call. It is safe for concurrent use.
type lazyList struct {
	conversation *conversation
	open         func() ([]agent.Tool, error)

	mu     sync.Mutex // guards opened; held while the list opens
	opened []agent.Tool
}

// tools returns tools with the given definitions. The first call of one of them
// opens the list.
func (l *lazyList) tools(defined []agent.Tool) []agent.Tool {
	out := slices.Clone(defined)
	for i := range out {
		name := out[i].Name
		out[i] = out[i].Lazy(func() (agent.Tool, error) { return l.find(name) })
	}
	return out
}

// find returns a tool.
func (l *lazyList) find(name string) (agent.Tool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		if l.conversation.isClosed() {
			return agent.Tool{}, errors.New("the turn has ended")
		}
		opened, err := l.open()
		if err != nil {
			return agent.Tool{}, err
		}
		l.opened = opened
	}
	i := slices.IndexFunc(l.opened, func(t agent.Tool) bool { return t.Name == name })
	if i < 0 {
		return agent.Tool{}, errors.New("tool " + name + " is no longer available")
	}
	return l.opened[i], nil
}
