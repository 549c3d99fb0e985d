// Command proxy exposes the MCP server at a URL over HTTP for old and new
// protocol versions, so that the conformance suite can test direct exposure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/mcpproxy"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/mcpserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("proxy", flag.ExitOnError)
	address := flags.String("http", "127.0.0.1:0", "serve at `ADDR`")
	verbose := flags.Bool("v", false, "log")
	_ = flags.Parse(args) // exits on error
	if flags.NArg() != 1 {
		return errors.New("missing argument: URL of an MCP server")
	}
	level := slog.LevelWarn
	if *verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	dialer := &upstream.Dialer{Logger: logger}
	config := &upstream.Config{Name: "everything", Type: upstream.HTTP, URLs: []string{flags.Arg(0)}}
	s := mcpproxy.New([]mcpproxy.Upstream{{Name: config.Name, Opener: mcpproxy.NewDialOpener(dialer, config)}}, &mcpproxy.Options{Logger: logger})
	defer s.Close()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "MCP endpoint: http://%s/mcp\n", listener.Addr())
	srv := &http.Server{
		Handler:           s.Handler(&mcpserver.HTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_ = srv.Close() // streams that a client left open never end by themselves
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
