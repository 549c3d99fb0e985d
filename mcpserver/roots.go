//lint:file-ignore SA1019 clients of earlier protocol versions name their project only as a root

package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/rpcmessage"
	"github.com/loadout-dev/loadout/internal/sources"
)

const (
	maxRoots     = 16               // further roots of a client are ignored
	maxRootURI   = 3 * maxURIPath   // bytes
	rootsTimeout = 30 * time.Second // for the answer to roots/list
	rootsWait    = time.Second      // default of Options.RootsWait
)

// connRoots holds the state of requests for a client's roots.
type connRoots struct {
	mu     sync.Mutex    // guards the fields below
	first  chan struct{} // closed when the first answer was handled; nil if the client was not asked
	asking bool
	again  bool // whether the roots changed since the client was last asked
	// project is the first root, with symlinks resolved, and its parents up to the
	// root of the repository; nil if it is not known.
	project []string
}

// handlesRoots reports whether the server asks the client of req for its roots.
func (s *Server) handlesRoots(req mcp.Request) bool {
	ss := longLivedSession(req)
	if s.opts.SetRoots == nil || ss == nil {
		return false
	}
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		return false // HTTP, with several clients
	}
	p := ss.InitializeParams()
	return p != nil && p.ProtocolVersion < rpcmessage.ModernVersion && p.Capabilities != nil && p.Capabilities.RootsV2 != nil
}

// askRoots asks the client of req for its roots in the background. If the roots
// change in the meantime, it asks once more.
func (s *Server) askRoots(req mcp.Request) {
	if !s.handlesRoots(req) {
		return
	}
	ss, c := longLivedSession(req), s.texts.conn(s, req)
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking {
		r.again = true
		return
	}
	first := r.first == nil
	if first {
		r.first = make(chan struct{})
	}
	r.asking = s.rootsTasks.start(func(ctx context.Context) {
		for again := true; again; {
			if err := s.updateRoots(ctx, ss, r); err != nil {
				s.log.Info("cannot use the roots of the client", "reason", err)
			}
			r.mu.Lock()
			if first {
				close(r.first)
				first = false
			}
			again = r.again && ctx.Err() == nil
			r.asking, r.again = again, false
			r.mu.Unlock()
		}
	})
}

// updateRoots asks a client for its roots and passes them to Options.SetRoots.
func (s *Server) updateRoots(ctx context.Context, ss *mcp.ServerSession, r *connRoots) error {
	ask, cancel := context.WithTimeoutCause(ctx, rootsTimeout, fmt.Errorf("no answer to roots/list within %v", rootsTimeout))
	defer cancel()
	res, err := ss.ListRoots(ask, nil)
	if err != nil {
		if ask.Err() != nil {
			err = context.Cause(ask)
		}
		return err
	}
	dirs, skipped := rootDirs(res.Roots)
	if skipped != nil {
		s.log.Info("roots of the client ignored", "reason", skipped)
	}
	if err := s.opts.SetRoots(ctx, dirs); err != nil {
		return err
	}
	var project []string
	if len(dirs) > 0 {
		if project, err = projectDirs(ctx, dirs[0]); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.project = project
	return nil
}

// projectDirs returns a directory, with symlinks resolved, and its parents up to the
// root of its repository. Once ctx is done, it no longer waits for a file system that
// does not respond.
func projectDirs(ctx context.Context, dir string) ([]string, error) {
	found := make(chan []string, 1)
	go func() {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			real = dir
		}
		found <- sources.ProjectDirs(real)
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case dirs := <-found:
		return dirs, nil
	}
}

// waitForRoots waits until the skills in the client's first roots are known, but
// no longer than Options.RootsWait.
func (s *Server) waitForRoots(ctx context.Context, req mcp.Request) {
	if !s.handlesRoots(req) {
		return
	}
	c := s.texts.conn(s, req)
	r := &c.roots
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()
	if first == nil || s.texts.hasTools(c) {
		return
	}
	wait := s.opts.RootsWait
	if wait == 0 {
		wait = rootsWait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-first:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// rootDirs returns the distinct local directories among the first roots. skipped
// joins the errors of the others.
func rootDirs(roots []*mcp.Root) (dirs []string, skipped error) {
	var errs []error
	if n := len(roots); n > maxRoots {
		errs = append(errs, fmt.Errorf("too many roots (%d, limit %d)", n, maxRoots))
		roots = roots[:maxRoots]
	}
	for _, r := range roots {
		if r == nil {
			continue
		}
		dir, err := rootDir(r.URI)
		switch {
		case err != nil:
			errs = append(errs, err)
		case !slices.Contains(dirs, dir):
			dirs = append(dirs, dir)
		}
	}
	return dirs, errors.Join(errs...)
}

// rootDir converts a file URI to the path of a directory.
func rootDir(uri string) (string, error) {
	if len(uri) > maxRootURI {
		return "", fmt.Errorf("root URI too long (%d bytes, limit %d)", len(uri), maxRootURI)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "file" || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("root %q: want file:// and a path", uri)
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("root %q: on another machine", uri)
	case strings.ContainsRune(u.Path, 0) || slices.Contains(strings.Split(u.Path, "/"), ".."):
		return "", fmt.Errorf("root %q: invalid path", uri)
	}
	path := u.Path
	if drive := strings.TrimPrefix(path, "/"); filepath.VolumeName(drive) != "" { // /C:/dir on Windows
		path = drive
	}
	path = filepath.FromSlash(path)
	switch {
	case strings.HasPrefix(filepath.VolumeName(path), `\\`): // on Windows; reading it would sign in there
		return "", fmt.Errorf("root %q: on another machine", uri)
	case !filepath.IsAbs(path):
		return "", fmt.Errorf("root %q: not an absolute path", uri)
	}
	return filepath.Clean(path), nil
}

// rootsTasks runs the background work for the roots of clients.
type rootsTasks struct {
	mu      sync.Mutex // guards the fields below
	closed  bool
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// start runs f in the background until close cancels its context. It returns false
// if close was called.
func (t *rootsTasks) start(f func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.cancel == nil {
		t.ctx, t.cancel = context.WithCancel(context.Background())
	}
	ctx := t.ctx
	t.running.Go(func() { f(ctx) })
	return true
}

// close cancels the background work and waits for it to end.
func (t *rootsTasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.interrupt()
	t.running.Wait()
}

// interrupt cancels the background work in progress. It does not wait for it to
// end.
func (t *rootsTasks) interrupt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
		t.cancel = nil
	}
}
