//go:build linux

// Command upstream measures the overhead of Loadout in front of other MCP servers. It calls an
// echo server directly and through `loadout mcp`, from one caller and from sixteen concurrent
// callers. It also measures memory and processes with fifty configured servers, of which three
// are used, and the time to the first tool result, with and without a saved tool list:
//
//	go run ./upstream [-peer "COMMAND" -peer-url URL] [-gc 100,400]
//
// All connections stay open, and their rounds alternate. A peer is another gateway. In its
// command, {config} stands for a file with mcpServers and {port} for a free port. It serves
// over standard input and output, or at the URL over HTTP with SSE. bench/README.md describes
// how to install one.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/bench/internal/measure"
	"github.com/loadout-dev/loadout/internal/toolname"
)

// flags holds the command-line options.
type flags struct {
	peer, peerURL, peerTool string
	gc                      string
	rounds, calls, starts   int
}

func main() {
	var f flags
	flag.StringVar(&f.peer, "peer", "", "`command` of another gateway, with {config} and {port}")
	flag.StringVar(&f.peerURL, "peer-url", "", "`URL` of the SSE endpoint of the peer, with {port}; default stdio")
	flag.StringVar(&f.peerTool, "peer-tool", "e0__echo", "`name` that the peer gives to the tool echo of server e0")
	flag.StringVar(&f.gc, "gc", "", "GC `percentages` to measure as well, such as 100,200")
	flag.IntVar(&f.rounds, "rounds", 11, "number of rounds")
	flag.IntVar(&f.calls, "calls", 300, "calls of one caller per round; sixteen callers make four times as many")
	flag.IntVar(&f.starts, "starts", 11, "number of starts of each way")
	measure.Main("upstream", false, func() error { return run(f) })
}

// site holds the programs and files of one run.
type site struct {
	dir, echo, loadout, empty string
	one, fifty                string // configuration files
}

func newSite(dir string) (*site, error) {
	s := &site{dir: dir, empty: filepath.Join(dir, "none"), one: filepath.Join(dir, "one.json"), fifty: filepath.Join(dir, "fifty.json")}
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
	return s, nil
}

// writeConfig writes a configuration with n different servers.
func (s *site) writeConfig(file string, n int) error {
	all := map[string]any{}
	for i := range n {
		all["e"+strconv.Itoa(i)] = map[string]any{"command": s.echo, "args": []string{strconv.Itoa(i)}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
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

// newDirect returns a way that connects to the server without a gateway.
func (s *site) newDirect() *way {
	return &way{name: "direct", args: []string{s.echo}, call: func(int) map[string]any { return echoParams("echo") }}
}

// newOurs returns a way that connects through `loadout mcp`.
func (s *site) newOurs(name, config string, more ...string) *way {
	return &way{name: name, args: append([]string{s.loadout, "mcp", "--skills", s.empty, "--mcp-config", config}, more...),
		call: func(i int) map[string]any { return callToolParams(fmt.Sprintf("e%d__echo", i)) }}
}

// newPeer returns a way that connects through the peer, or nil if there is no peer.
func (s *site) newPeer(f flags, config string) (*way, error) {
	if f.peer == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	l.Close()
	fill := strings.NewReplacer("{config}", config, "{port}", port).Replace
	words := strings.Fields(fill(f.peer))
	name := "peer"
	for _, w := range words { // skip node and its flags
		if b := filepath.Base(w); !strings.HasPrefix(b, "-") && b != "node" && b != "npx" {
			name = "peer: " + b
			break
		}
	}
	return &way{name: name, args: words, url: fill(f.peerURL),
		call: func(i int) map[string]any { return echoParams(strings.Replace(f.peerTool, "0", strconv.Itoa(i), 1)) }}, nil
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

// measureCalls prints the latency with one caller and the throughput with sixteen.
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
	peer, err := s.newPeer(f, s.one)
	if err != nil {
		return err
	}
	if peer != nil {
		ways = append(ways, peer)
	}
	for i, w := range ways {
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
	rows := [][]string{{"way", "one caller, p50", "p99", "added p50", "× direct", "sixteen callers", "resident"}}
	base := ways[0]
	for _, w := range ways {
		p50 := measure.Quantile(w.one, 0.5)
		memory, err := measure.MemoryOf(w.cmd.Process.Pid)
		if err != nil {
			return err
		}
		rows = append(rows, []string{w.name, measure.FormatNumber(p50) + " ms", measure.FormatNumber(measure.Quantile(w.one, 0.99)) + " ms",
			measure.FormatNumber(p50-measure.Quantile(base.one, 0.5)) + " ms", measure.FormatNumber(p50 / measure.Quantile(base.one, 0.5)),
			measure.FormatNumber(measure.Quantile(w.many, 0.5)) + " calls/s", measure.FormatNumber(float64(memory.Resident)/1e6) + " MB"})
	}
	measure.WriteMarkdown(os.Stdout, rows)
	return nil
}
