//go:build linux

// Command upstream measures what Loadout costs in front of other MCP servers. A
// server that says again what it is told is called directly and through `loadout
// mcp`: by one caller after another, and by sixteen at a time. Then memory and
// processes are counted with fifty servers configured of which three are used, and
// the time to the first result of a tool, with and without what an earlier start has
// kept:
//
//	go run ./bench/upstream [-peer "COMMAND" -peer-url URL] [-gc 100,400]
//
// All ways are connected at once, and their rounds alternate. A peer is another
// gateway: its command has {config} in place of a file with mcpServers and {port} of
// a free port, and it speaks on standard input and output, or at the URL over HTTP
// with SSE. How to get one is in bench/README.md.
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
)

// flags are what a person can choose.
type flags struct {
	peer, peerURL, peerTool string
	gc                      string
	rounds, calls, starts   int
}

func main() {
	var f flags
	flag.StringVar(&f.peer, "peer", "", "`command` of another gateway, with {config} and {port} in it")
	flag.StringVar(&f.peerURL, "peer-url", "", "`URL` of the peer's SSE endpoint, with {port} in it; none is stdio")
	flag.StringVar(&f.peerTool, "peer-tool", "e0__echo", "`name` of the tool echo of server e0 at the peer")
	flag.StringVar(&f.gc, "gc", "", "also measure these `percents` of garbage collection, as 100,200")
	flag.IntVar(&f.rounds, "rounds", 11, "rounds")
	flag.IntVar(&f.calls, "calls", 300, "calls of one caller in a round; sixteen make four times as many")
	flag.IntVar(&f.starts, "starts", 11, "starts of each way to its first result")
	measure.Main("upstream", false, func() error { return run(f) })
}

// site is where everything of a run lies.
type site struct {
	dir, echo, loadout, empty string
	one, fifty                string // configurations
}

func newSite(dir string) (*site, error) {
	s := &site{dir: dir, empty: filepath.Join(dir, "none"), one: filepath.Join(dir, "one.json"), fifty: filepath.Join(dir, "fifty.json")}
	var err error
	if s.echo, err = measure.Build(dir, "./bench/upstream/echo"); err != nil {
		return nil, err
	}
	if s.loadout, err = measure.Build(dir, "./cmd/loadout"); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.empty, 0o755); err != nil {
		return nil, err
	}
	for file, n := range map[string]int{s.one: 1, s.fifty: servers} {
		if err := s.configure(file, n); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// configure writes a configuration of n servers, which differ.
func (s *site) configure(file string, n int) error {
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

func arguments(tool string) map[string]any {
	return map[string]any{"name": tool, "arguments": map[string]any{"text": "hello"}}
}

func metaCall(tool string) map[string]any {
	return map[string]any{"name": "call_tool", "arguments": arguments(tool)}
}

func (s *site) direct() *way {
	return &way{name: "direct", args: []string{s.echo}, call: func(int) map[string]any { return arguments("echo") }}
}

func (s *site) ours(name, config string, more ...string) *way {
	return &way{name: name, args: append([]string{s.loadout, "mcp", "--skills", s.empty, "--mcp-config", config}, more...),
		call: func(i int) map[string]any { return metaCall(fmt.Sprintf("e%d__echo", i)) }}
}

// peer is nil where none was given.
func (s *site) peer(f flags, config string) (*way, error) {
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
	for _, w := range words { // behind node and the like
		if b := filepath.Base(w); !strings.HasPrefix(b, "-") && b != "node" && b != "npx" {
			name = "peer: " + b
			break
		}
	}
	return &way{name: name, args: words, url: fill(f.peerURL),
		call: func(i int) map[string]any { return arguments(strings.Replace(f.peerTool, "0", strconv.Itoa(i), 1)) }}, nil
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
	fmt.Println(measure.Where())
	for _, part := range []func(flags) error{s.calls, s.many, s.first} {
		fmt.Println()
		if err := part(f); err != nil {
			return err
		}
	}
	return nil
}

// calls prints the latency of one caller and the throughput of sixteen.
func (s *site) calls(f flags) error {
	ways := []*way{s.direct(), s.ours("`loadout mcp`, call_tool", s.one)}
	exposed := s.ours("`loadout mcp --expose direct`", s.one, "--expose", "direct")
	exposed.call = func(int) map[string]any { return arguments("e0__echo") }
	ways = append(ways, exposed)
	for _, percent := range strings.FieldsFunc(f.gc, func(r rune) bool { return r == ',' }) {
		w := s.ours("call_tool, GOGC="+percent, s.one)
		w.env = []string{"GOGC=" + percent}
		ways = append(ways, w)
	}
	peer, err := s.peer(f, s.one)
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
		for range 50 { // connected, and warm
			if err := w.tool(0); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	for range f.rounds {
		for _, w := range ways {
			if err := w.round(f.calls); err != nil {
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
		rows = append(rows, []string{w.name, measure.Number(p50) + " ms", measure.Number(measure.Quantile(w.one, 0.99)) + " ms",
			measure.Number(p50-measure.Quantile(base.one, 0.5)) + " ms", measure.Number(p50 / measure.Quantile(base.one, 0.5)),
			measure.Number(measure.Quantile(w.many, 0.5)) + " calls/s", measure.Number(float64(memory.Resident)/1e6) + " MB"})
	}
	measure.Markdown(os.Stdout, rows)
	return nil
}
