//go:build linux

// Command upstream measures what Loadout adds to a call of a tool: an echo server
// on standard input and output, called directly and through `loadout mcp`, by one
// caller after another and by sixteen at a time:
//
//	go run ./bench/upstream [-peer "COMMAND"]
//
// All ways are connected at once, and their rounds alternate. A peer is another
// gateway that is started as given, with {echo} in place of the echo server's
// command, and speaks on standard input and output.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/bench/internal/measure"
)

// echo is the server behind: as little as a server can be.
const echo = `package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments struct{ Text string }
			}
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := "{}"
		switch m.Method {
		case "initialize":
			result = ` + "`" + `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}` + "`" + `
		case "tools/list":
			result = ` + "`" + `{"tools":[{"name":"echo","description":"Say it again.","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}` + "`" + `
		case "tools/call":
			text, _ := json.Marshal(m.Params.Arguments.Text)
			result = fmt.Sprintf(` + "`" + `{"content":[{"type":"text","text":%s}]}` + "`" + `, text)
		case "ping":
		default:
			fmt.Fprintf(out, ` + "`" + `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}` + "`" + `+"\n", m.ID)
			out.Flush()
			continue
		}
		fmt.Fprintf(out, ` + "`" + `{"jsonrpc":"2.0","id":%s,"result":%s}` + "`" + `+"\n", m.ID, result)
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}
`

func main() {
	peer := flag.String("peer", "", "`command` of another gateway, with {echo} in it")
	rounds := flag.Int("rounds", 11, "rounds")
	calls := flag.Int("calls", 300, "calls of one caller in a round; sixteen make four times as many")
	flag.Parse()
	if err := run(*peer, *rounds, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

func run(peer string, rounds, calls int) error {
	tmp, err := os.MkdirTemp("", "loadout-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	server, err := measure.BuildSource(tmp, "echo", echo)
	if err != nil {
		return err
	}
	loadout, err := measure.Build(tmp, "./cmd/loadout")
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"e": map[string]any{"command": server}}})
	if err != nil {
		return err
	}
	file := filepath.Join(tmp, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return err
	}
	empty := filepath.Join(tmp, "none")
	if err := os.Mkdir(empty, 0o755); err != nil {
		return err
	}
	direct := map[string]any{"name": "echo", "arguments": map[string]any{"text": "hello"}}
	exposed := map[string]any{"name": "e__echo", "arguments": map[string]any{"text": "hello"}}
	through := map[string]any{"name": "call_tool", "arguments": exposed}
	ways := []*way{
		{name: "direct", args: []string{server}, params: direct},
		{name: "loadout mcp, call_tool", args: []string{loadout, "mcp", "--skills", empty, "--mcp-config", file}, params: through},
		{name: "loadout mcp --expose direct", args: []string{loadout, "mcp", "--skills", empty, "--mcp-config", file, "--expose", "direct"}, params: exposed},
	}
	if peer != "" {
		words := strings.Fields(strings.ReplaceAll(peer, "{echo}", server))
		ways = append(ways, &way{name: "peer: " + filepath.Base(words[0]), args: words, params: direct})
	}
	for _, w := range ways {
		if err := w.connect(tmp); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		defer w.close()
	}
	for range rounds {
		for _, w := range ways {
			if err := w.round(calls); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	fmt.Println("| way | one caller, p50 | p99 | added p50 | sixteen callers, calls/s |\n|---|---|---|---|---|")
	base := quantile(ways[0].one, 0.5)
	for _, w := range ways {
		fmt.Printf("| %s | %.3f ms | %.2f ms | %+.3f ms | %.0f |\n", w.name, ms(quantile(w.one, 0.5)), ms(quantile(w.one, 0.99)), ms(quantile(w.one, 0.5)-base), rate(w.many))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func quantile(all []time.Duration, q float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[int(q*float64(len(all)-1))]
}

// rate is the median of the rounds.
func rate(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// way is one way to call the tool.
type way struct {
	name   string
	args   []string
	params map[string]any

	cmd  *exec.Cmd
	in   io.WriteCloser
	body []byte // of a request, after its id

	mu      sync.Mutex
	id      int
	waiting map[int]chan error

	one  []time.Duration
	many []float64
}

func (w *way) connect(home string) error {
	w.cmd = exec.Command(w.args[0], w.args[1:]...)
	w.cmd.Env = append(os.Environ(), "HOME="+home+"/home", "XDG_CONFIG_HOME="+home+"/home", "LOADOUT_STATE="+home+"/state", "LOADOUT_CACHE="+home+"/cache")
	w.cmd.Stderr = os.Stderr
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	w.waiting = map[int]chan error{}
	go w.read(bufio.NewReaderSize(out, 1<<20))
	params, err := json.Marshal(w.params)
	if err != nil {
		return err
	}
	hello := `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	if err := w.call([]byte(hello)); err != nil {
		return err
	}
	if _, err := io.WriteString(w.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return err
	}
	w.body = fmt.Appendf(nil, `"method":"tools/call","params":%s}`, params)
	for range 50 { // connected, and warm
		if err := w.call(w.body); err != nil {
			return err
		}
	}
	return nil
}

func (w *way) close() {
	w.in.Close()
	w.cmd.Wait()
}

// read hands answers to who waits for them.
func (w *way) read(out *bufio.Reader) {
	for {
		line, err := out.ReadBytes('\n')
		if err != nil {
			w.mu.Lock()
			for _, c := range w.waiting {
				c <- io.ErrUnexpectedEOF
			}
			clear(w.waiting)
			w.mu.Unlock()
			return
		}
		var m struct {
			ID     int
			Method string
			Error  json.RawMessage
			Result struct{ IsError bool }
		}
		if json.Unmarshal(line, &m) != nil || m.Method != "" {
			continue
		}
		w.mu.Lock()
		c := w.waiting[m.ID]
		delete(w.waiting, m.ID)
		w.mu.Unlock()
		switch {
		case c == nil:
		case m.Error != nil || m.Result.IsError:
			c <- fmt.Errorf("it answered %s", line)
		default:
			c <- nil
		}
	}
}

func (w *way) call(body []byte) error {
	c := make(chan error, 1)
	w.mu.Lock()
	w.id++
	w.waiting[w.id] = c
	_, err := w.in.Write(append(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,%s`, w.id, body), '\n'))
	w.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-c:
		return err
	case <-time.After(30 * time.Second):
		return context.DeadlineExceeded
	}
}

func (w *way) round(calls int) error {
	for range calls {
		began := time.Now()
		if err := w.call(w.body); err != nil {
			return err
		}
		w.one = append(w.one, time.Since(began))
	}
	const callers = 16
	each := calls * 4 / callers
	began := time.Now()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range each {
				if errs[i] = w.call(w.body); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	w.many = append(w.many, float64(callers*each)/time.Since(began).Seconds())
	return nil
}
