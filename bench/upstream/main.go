//go:build linux

// Command upstream measures the overhead of Loadout in front of other MCP servers. It calls an
// echo server directly and through `loadout mcp`, over standard input and output and over HTTP,
// from one caller and from sixteen concurrent callers. It also measures memory and processes with
// fifty configured servers, of which three are used, and the time to the first tool result, with
// and without a saved tool list:
//
//	go run ./upstream [-gc 100,400] [-peer NAME=PROGRAM]…
//
// All connections stay open, and their rounds alternate. Peers serve HTTP at /mcp: mcp-proxy of
// the npm registry in front of a server on standard input and output, and another gateway in
// front of a server over HTTP. The program of that gateway is started with two arguments, the
// port to serve at 127.0.0.1 and the URL of the server.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// flags holds the command-line options.
type flags struct {
	gc                    string
	peers                 map[string]string
	rounds, calls, starts int
}

func main() {
	f := flags{peers: measure.PeersFlag()}
	flag.StringVar(&f.gc, "gc", "", "GC `percentages` to measure as well, such as 100,200")
	flag.IntVar(&f.rounds, "rounds", 11, "number of rounds")
	flag.IntVar(&f.calls, "calls", 300, "calls of one caller per round; sixteen callers make four times as many")
	flag.IntVar(&f.starts, "starts", 11, "number of starts of each way")
	measure.Main("upstream", false, func() error { return run(f) })
}

// site holds the programs and files of one run.
type site struct {
	dir, echo, loadout, empty string
	one, fifty, web           string // configuration files
	url                       string // of the echo server over HTTP
}

func newSite(dir string) (*site, error) {
	s := &site{dir: dir, empty: filepath.Join(dir, "none"), one: filepath.Join(dir, "one.json"), fifty: filepath.Join(dir, "fifty.json"), web: filepath.Join(dir, "web.json")}
	var err error
	if s.echo, err = measure.Build(dir, "./upstream/echo"); err != nil {
		return nil, err
	}
	if s.loadout, err = measure.BuildLoadout(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.empty, 0o755); err != nil {
		return nil, err
	}
	for file, n := range map[string]int{s.one: 1, s.fifty: servers} {
		if err := s.writeConfig(file, n); err != nil {
			return nil, err
		}
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	s.url = "http://127.0.0.1:" + ports[0] + "/mcp"
	return s, writeServers(s.web, map[string]any{"e0": map[string]any{"type": "http", "url": s.url}})
}

// writeConfig writes a configuration with n different servers.
func (s *site) writeConfig(file string, n int) error {
	all := map[string]any{}
	for i := range n {
		all["e"+strconv.Itoa(i)] = map[string]any{"command": s.echo, "args": []string{strconv.Itoa(i)}}
	}
	return writeServers(file, all)
}

func writeServers(file string, servers map[string]any) error {
	text, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func echoParams(tool string) map[string]any {
	return map[string]any{"name": tool, "arguments": map[string]any{"text": "hello"}}
}

func callToolParams(tool string) map[string]any {
	return map[string]any{"name": toolname.CallTool, "arguments": echoParams(tool)}
}

// The names of ways in rows. A peer's name follows its transports.
const (
	direct      = "the server itself"
	directHTTP  = "the server itself over HTTP"
	overHTTP    = "HTTP to HTTP"
	httpToStdio = "HTTP to stdio"
)

// newDirect returns a way that connects to the server without a gateway.
func (s *site) newDirect() *way {
	return &way{name: direct, args: []string{s.echo}, call: echoOnly}
}

// newOurs returns a way that connects through `loadout mcp`.
func (s *site) newOurs(name, config string, more ...string) *way {
	return &way{name: name, args: append([]string{s.loadout, "mcp", "--skills", s.empty, "--mcp-config", config}, more...),
		call: func(i int) map[string]any { return callToolParams(fmt.Sprintf("e%d__echo", i)) }}
}

// echoOnly returns the parameters for a program that has one server and does not rename its tool.
func echoOnly(int) map[string]any { return echoParams("echo") }

// newHTTPWays returns the ways over HTTP. The first one calls the server that the others proxy.
func (s *site) newHTTPWays(f flags) ([]*way, error) {
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	ways := []*way{{name: directHTTP, args: []string{s.echo, "-http", address}, url: s.url, call: echoOnly}}
	add := func(w *way, port string) {
		w.url = "http://127.0.0.1:" + port + "/mcp"
		ways = append(ways, w)
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	add(s.newOurs("`loadout mcp`, "+overHTTP, s.web, "--http", "127.0.0.1:"+ports[0]), ports[0])
	add(s.newOurs("`loadout mcp`, "+httpToStdio, s.one, "--http", "127.0.0.1:"+ports[1]), ports[1])
	if program := f.peers["mcp-proxy"]; program != "" {
		add(&way{name: "peer mcp-proxy, " + httpToStdio, args: []string{program, "--host", "127.0.0.1", "--port", ports[2], "--server", "stream", "--", s.echo}, call: echoOnly}, ports[2])
	}
	if program := f.peers["docker"]; program != "" {
		add(&way{name: "peer docker, " + overHTTP, args: []string{program, ports[3], s.url}, call: echoOnly}, ports[3])
	}
	return ways, nil
}

func run(f flags) error {
	dir, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := newSite(dir)
	if err != nil {
		return err
	}
	fmt.Println(measure.Environment())
	for _, part := range []func(flags) error{s.measureCalls, s.measureMemory, s.measureStarts} {
		fmt.Println()
		if err := part(f); err != nil {
			return err
		}
	}
	return nil
}

// measureCalls prints the latency and the CPU time with one caller, the throughput with sixteen,
// and the memory.
func (s *site) measureCalls(f flags) error {
	ways := []*way{s.newDirect(), s.newOurs("`loadout mcp`, call_tool", s.one)}
	exposed := s.newOurs("`loadout mcp --expose direct`", s.one, "--expose", "direct")
	exposed.call = func(int) map[string]any { return echoParams("e0__echo") }
	ways = append(ways, exposed)
	for _, percent := range strings.FieldsFunc(f.gc, func(r rune) bool { return r == ',' }) {
		w := s.newOurs("call_tool, GOGC="+percent, s.one)
		w.env = []string{"GOGC=" + percent}
		ways = append(ways, w)
	}
	web, err := s.newHTTPWays(f)
	if err != nil {
		return err
	}
	table := measure.Table{Name: "calls"}
	row := func(w *way, what, unit string, baseline *measure.Row) *measure.Row {
		return table.Row(measure.Row{Name: w.name + ": " + what, Unit: unit, Baseline: baseline})
	}
	ways = append(ways, web...)
	for i, w := range ways {
		base := ways[0]
		if w.url != "" {
			base = web[0]
		}
		w.one, w.cpu = row(w, "one caller", "ms", base.one), row(w, "CPU of a call", "µs", nil)
		w.many, w.resident = row(w, "sixteen callers", "calls/s", nil), row(w, "resident", "MB", nil)
		defer w.close()
		if err := w.start(filepath.Join(s.dir, fmt.Sprint("calls", i)), 0); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		for range 50 { // warm up
			if err := w.callTool(0); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	for range f.rounds {
		for _, w := range ways {
			if err := w.runRound(f.calls); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	for _, w := range ways {
		memory, err := measure.MemoryOf(w.cmd.Process.Pid)
		if err != nil {
			return err
		}
		w.resident.Add(float64(memory.Resident) / 1e6)
	}
	table.Print(os.Stdout)
	return nil
}
