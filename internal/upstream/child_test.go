package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// childVariable selects the server that the test binary acts as.
const childVariable = "LOADOUT_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

type echoArgs struct {
	Text string `json:"text"`
}

// newServer is a server with an echo, and tools that misbehave.
func newServer(name string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Says it again."}, func(_ context.Context, _ *mcp.CallToolRequest, a echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(os.Getpid())}}}, nil, nil
	})
	hanging, over := make(chan struct{}, 100), make(chan struct{}, 100)
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		hanging <- struct{}{}
		<-ctx.Done()
		over <- struct{}{}
		return nil, nil, ctx.Err()
	})
	for name, what := range map[string]chan struct{}{"wait_hanging": hanging, "wait_over": over} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			<-what
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "crash"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(3)
		return nil, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "huge"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Stdout.WriteString(`{"jsonrpc":"2.0","id":2,"result":"`)
		for range 100 {
			os.Stdout.WriteString(strings.Repeat("x", 1<<20))
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "noise"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		fmt.Println(`{"level":"info","msg":"working"}`)
		fmt.Println("half way there")
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "slow"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3})
		}
		req.Session.Ping(ctx, nil) // probeAnswered after they were handled
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "grown"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

// child is the test binary as a server.
func child(mode string) int {
	serve := func(t mcp.Transport) int {
		if err := newServer(mode).Run(context.Background(), t); err != nil {
			return 1
		}
		return 0
	}
	switch mode {
	case "modern":
		return serve(&mcp.StdioTransport{})
	case "legacy": // answers the probe with an error
		return serve(&gate{})
	case "ignores": // does not answer unknown methods
		return serve(&gate{unknown: func(string) {}})
	case "exits-on-probe":
		return serve(&gate{unknown: func(string) { os.Exit(4) }})
	case "noisy":
		fmt.Println("npm notice New minor version of npm available!")
		fmt.Println()
		fmt.Println(`{"level":"info","msg":"starting"}`)
		return serve(&mcp.StdioTransport{})
	case "mute":
		io.Copy(io.Discard, os.Stdin)
		return 0
	case "exits":
		fmt.Fprintln(os.Stderr, "config.json: no such file")
		return 7
	case "garbage":
		for i := range 1000 {
			fmt.Println("!! garbage", i)
		}
		io.Copy(io.Discard, os.Stdin)
		return 0
	case "stderr":
		for range 20_000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("e", 200))
		}
		fmt.Fprintln(os.Stderr, "the last line")
		return serve(&mcp.StdioTransport{})
	case "repeats": // its arguments, wherever it can
		for _, a := range os.Args[1:] {
			fmt.Println("got", a)
			fmt.Fprintf(os.Stderr, "got %s\n", a)
		}
		s := newServer(mode)
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == "tools/call" {
					data, _ := json.Marshal(os.Args[1:])
					return nil, &jsonrpc.Error{Code: -32000, Message: strings.Join(os.Args[1:], " "), Data: data}
				}
				return next(ctx, method, req)
			}
		})
		s.Run(context.Background(), &mcp.StdioTransport{})
		return 0
	case "repeats-and-exits":
		fmt.Fprintln(os.Stderr, os.Args[1:])
		return 7
	case "deaf": // never reads
		time.Sleep(time.Hour)
	case "many":
		s := mcp.NewServer(&mcp.Implementation{Name: mode, Version: "1"}, nil)
		for i := range 2000 {
			mcp.AddTool(s, &mcp.Tool{Name: fmt.Sprintf("tool_%04d", i)}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
		}
		s.Run(context.Background(), &mcp.StdioTransport{})
		return 0
	}
	return 99
}

// gate is standard input and output of a legacy server. Methods that did not exist in
// its release go to unknown, or get an error.
type gate struct{ unknown func(method string) }

func (g *gate) Connect(ctx context.Context) (mcp.Connection, error) {
	r, w := io.Pipe()
	go func() {
		defer w.Close()
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			json.Unmarshal(line, &m)
			if m.Method == "server/discover" {
				if g.unknown != nil {
					g.unknown(m.Method)
				} else {
					fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
				}
				continue
			}
			w.Write(line)
		}
	}()
	return (&mcp.IOTransport{Reader: r, Writer: os.Stdout}).Connect(ctx)
}

// childConfig is the configuration of the test binary as a server.
func childConfig(t *testing.T, mode string) *upstream.Config {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &upstream.Config{Name: mode, Command: exe, Env: map[string]string{
		childVariable: mode,
		"GORACE":      "atexit_sleep_ms=0", // else the race detector keeps it for a second
	}}
}

func newDialer() *upstream.Dialer {
	return &upstream.Dialer{Spawn: spawn.New(&spawn.Options{Grace: 500 * time.Millisecond}).Start}
}
