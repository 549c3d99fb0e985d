//lint:file-ignore SA1019 the suite still tests what is deprecated

// Command server is a Loadout MCP server with the tools, resources and prompts
// that the official conformance suite expects. It adds them with the public
// options of [mcpserver.Server]. Its endpoint is the same as that of loadout
// mcp --http.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/mcpserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("server", flag.ExitOnError)
	address := flags.String("http", "127.0.0.1:0", "serve at `ADDR`")
	skills := flags.String("skills", "test/conformance/testdata/skills", "serve the skills in `DIR`")
	_ = flags.Parse(args) // exits on error
	root, err := filepath.Abs(*skills)
	if err != nil {
		return err
	}
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{catalog.NewDir("conformance", catalog.Project, root, nil)}})
	if err != nil {
		return err
	}
	defer rt.Close()
	if n := len(rt.Catalog().Snapshot().Skills()); n == 0 {
		return fmt.Errorf("no skills in %s", root)
	}
	watched := &watch{}
	s := mcpserver.New(rt, &mcpserver.Options{
		Extend: func(s *mcp.Server) {
			addTools(s)
			addResources(s)
			addPrompts(s)
			watched.server = s
		},
		Server: &mcp.ServerOptions{
			Capabilities:       &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}},
			CompletionHandler:  complete,
			SubscribeHandler:   subscribe,
			UnsubscribeHandler: unsubscribe,
		},
	})
	defer s.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watching := make(chan struct{})
	go func() { defer close(watching); watched.run(ctx) }()
	defer func() { stop(); <-watching }()
	return serve(ctx, *address, s.Handler(&mcpserver.HTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}), stdout)
}

// serve prints the address of the endpoint and serves it until ctx is done.
func serve(ctx context.Context, address string, h http.Handler, stdout io.Writer) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "MCP endpoint: http://%s/mcp\n", listener.Addr())
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
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
