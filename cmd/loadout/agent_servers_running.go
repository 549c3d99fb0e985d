package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/clientname"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/serverstate"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/toolset"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// statePublisher publishes the state of this process's servers to other
// processes. A nil publisher does nothing.
type statePublisher struct {
	to   *serverstate.Publisher
	name *clientname.Observer

	mu   sync.Mutex
	sets []publishedSet
}

// publishedSet holds the servers of a profile, or those used without a profile.
type publishedSet struct {
	profile string
	*setup.Toolset
}

// publishState publishes the state of set's servers until close is called.
// callers holds the PIDs of the processes that started this one for a client.
func (a *app) publishState(set *setup.Toolset, callers []int) *statePublisher {
	dir := a.ProcessesDir()
	if dir == "" {
		return nil
	}
	p := &statePublisher{sets: []publishedSet{{"", set}}}
	// Publish takes a snapshot immediately, so p.name must be set before.
	p.name = clientname.New(func() { p.to.Update() })
	p.to = serverstate.Publish(dir, serverstate.Options{Callers: callers, Logger: a.Logger(), Snapshot: p.currentState})
	toolset.Pool(set).Subscribe(p.changed)
	return p
}

func (p *statePublisher) changed(*upstream.Server) { p.to.Update() }

// add starts publishing the servers of a profile, in addition to those that are
// already published.
func (p *statePublisher) add(profile string, set *setup.Toolset) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.sets = append(p.sets, publishedSet{profile, set})
	p.mu.Unlock()
	toolset.Pool(set).Subscribe(p.changed)
	p.to.Update()
}

func (p *statePublisher) close() {
	if p != nil {
		p.to.Close()
	}
}

// wrap returns an endpoint that also records the name of its client.
func (p *statePublisher) wrap(shown mcpEndpoint) mcpEndpoint {
	if p == nil {
		return shown
	}
	return &namedEndpoint{shown, p.name}
}

// currentState returns the client's name and the state of all published
// servers.
func (p *statePublisher) currentState() (string, []serverstate.Server) {
	p.mu.Lock()
	sets := slices.Clone(p.sets)
	p.mu.Unlock()
	var out []serverstate.Server
	for _, set := range sets {
		for _, s := range set.Servers() {
			i := newServerInfo(s, nil)
			out = append(out, serverstate.Server{Name: i.Name, Profile: set.profile, Transport: i.Transport, State: string(i.State), Era: i.Era, Tools: i.Tools,
				Error: cmp.Or(i.Error, i.Problem), LatencyMS: i.LatencyMS, Since: s.Since})
		}
	}
	return p.name.Name(), out
}

// runningProcesses returns this user's processes with running servers. It
// returns nil if the directory cannot be read.
func (a *app) runningProcesses() []serverstate.Process {
	all := []serverstate.Process{}
	if dir := a.ProcessesDir(); dir != "" {
		found, err := serverstate.List(dir)
		if err != nil {
			a.Note("%v", fileerror.Cause(err))
		}
		all = append(all, found...)
	}
	return all
}

// printRunning prints a section with the servers of each process.
func (a *app) printRunning(all []serverstate.Process) {
	for _, p := range all {
		who := fmt.Sprintf("pid %d", p.PID)
		if p.Client != "" {
			who += ", " + p.Client
		}
		fmt.Fprintf(a.Stdout, "\nRunning: loadout mcp (%s)\n", plain(who))
		rows := [][]string{{"NAME", "TRANSPORT", "STATE", "SINCE", "TOOLS", "LATENCY", "ERROR"}}
		for _, s := range p.Servers {
			since := ""
			if !s.Since.IsZero() {
				since = s.Since.Local().Format(time.DateTime)
			}
			name := s.Name
			if s.Profile != "" {
				name += " (" + s.Profile + ")"
			}
			rows = append(rows, []string{name, s.Transport, s.State, since, strconv.Itoa(s.Tools), formatMilliseconds(s.LatencyMS), plain(s.Error)})
		}
		if len(p.Servers) == 0 {
			fmt.Fprintln(a.Stdout, "  no MCP servers")
			continue
		}
		a.printServerTable("  ", rows)
	}
}

// namedEndpoint is an endpoint that records the name of its client.
type namedEndpoint struct {
	mcpEndpoint
	name *clientname.Observer
}

func (s *namedEndpoint) Run(ctx context.Context, t mcp.Transport) error {
	return s.mcpEndpoint.Run(ctx, s.name.Transport(t))
}
