package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/running"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// runningDir is where processes say how their servers are, "" where there is no
// place for it.
func (a *app) runningDir() string {
	if d := a.stateDir(); d != "" {
		return filepath.Join(d, "running")
	}
	return ""
}

// publication lets other processes see how the servers of this one are. A nil one
// does nothing.
type publication struct {
	to   *running.Publisher
	name clientName

	mu   sync.Mutex
	sets []publishedSet
}

// publishedSet is servers, of a profile at a path of its own or "".
type publishedSet struct {
	profile string
	*toolset
}

// publish begins, until close.
func (a *app) publish(set *toolset) *publication {
	dir := a.runningDir()
	if dir == "" {
		return nil
	}
	p := &publication{sets: []publishedSet{{"", set}}}
	p.to = running.Publish(dir, running.Options{Logger: a.logger(), Look: p.look})
	p.name.changed = p.to.Changed
	set.pool.Subscribe(p.changed)
	return p
}

func (p *publication) changed(*upstream.Server) { p.to.Changed() }

// add has the servers of a profile shown too, until the end of both.
func (p *publication) add(profile string, set *toolset) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.sets = append(p.sets, publishedSet{profile, set})
	p.mu.Unlock()
	set.pool.Subscribe(p.changed)
	p.to.Changed()
}

func (p *publication) close() {
	if p != nil {
		p.to.Close()
	}
}

// of is what is served, which tells which client it is for.
func (p *publication) of(shown exposed) exposed {
	if p == nil {
		return shown
	}
	return &introduced{shown, &p.name}
}

// look says how the servers are now.
func (p *publication) look() (string, []running.Server) {
	p.mu.Lock()
	sets := slices.Clone(p.sets)
	p.mu.Unlock()
	var out []running.Server
	for _, set := range sets {
		for _, s := range set.Servers() {
			i := infoOf(s, nil)
			out = append(out, running.Server{Name: i.Name, Profile: set.profile, Transport: i.Transport, State: string(i.State), Era: i.Era, Tools: i.Tools,
				Error: cmp.Or(i.Error, i.Problem), LatencyMS: i.LatencyMS, Since: s.Since})
		}
	}
	return p.name.get(), out
}

// runningNow are the processes that serve now. A directory that cannot be read
// has none.
func (a *app) runningNow() []running.Process {
	all := []running.Process{}
	if dir := a.runningDir(); dir != "" {
		found, err := running.List(dir)
		if err != nil {
			a.note("%v", reason(err))
		}
		all = append(all, found...)
	}
	return all
}

// showRunning prints a section for each process.
func (a *app) showRunning(all []running.Process) {
	for _, p := range all {
		who := fmt.Sprintf("pid %d", p.PID)
		if p.Client != "" {
			who += ", " + p.Client
		}
		fmt.Fprintf(a.stdout, "\nRunning: loadout mcp (%s)\n", plain(who))
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
			rows = append(rows, []string{name, s.Transport, s.State, since, strconv.Itoa(s.Tools), milliseconds(s.LatencyMS), skill.OneLine(s.Error)})
		}
		if len(p.Servers) == 0 {
			fmt.Fprintln(a.stdout, "  no MCP servers")
			continue
		}
		a.serverTable("  ", rows)
	}
}

// clientName is what the client of this process calls itself, once it has said so.
type clientName struct {
	changed func()

	mu   sync.Mutex
	name string
	read int // messages in which it was looked for
}

func (n *clientName) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.name
}

// look finds the name in a request: the first one of the older era has it, each
// one of the newer.
func (n *clientName) look(req *jsonrpc.Request) {
	const (
		most    = 10 // requests: a client that has not said it by then does not
		maxSize = 64 << 10
		maxName = 100
	)
	n.mu.Lock()
	n.read++
	enough := n.name != "" || n.read > most
	n.mu.Unlock()
	if enough || len(req.Params) > maxSize {
		return
	}
	type info struct {
		Name string `json:"name"`
	}
	var params struct {
		ClientInfo info `json:"clientInfo"`
		Meta       struct {
			ClientInfo info `json:"io.modelcontextprotocol/clientInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(req.Params, &params) != nil {
		return
	}
	name := skill.OneLine(cmp.Or(params.ClientInfo.Name, params.Meta.ClientInfo.Name))
	if name == "" || len(name) > maxName {
		return
	}
	n.mu.Lock()
	n.name = name
	n.mu.Unlock()
	n.changed()
}

// introduced notes the name of the one client that is served on a transport.
type introduced struct {
	exposed
	name *clientName
}

func (s *introduced) Run(ctx context.Context, t mcp.Transport) error {
	return s.exposed.Run(ctx, &named{t, s.name})
}

type named struct {
	mcp.Transport
	name *clientName
}

func (t *named) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &namedConn{c, t.name}, nil
}

type namedConn struct {
	mcp.Connection
	name *clientName
}

func (c *namedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if req, ok := msg.(*jsonrpc.Request); ok {
		c.name.look(req)
	}
	return msg, err
}
