package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/tools"
	"github.com/loadout-dev/loadout/upstream"
)

type loginOutput struct {
	Name    string         `json:"name"`
	Issuer  string         `json:"issuer"`
	Scopes  []string       `json:"scopes"`
	Expires *time.Time     `json:"expires,omitempty"` // the token
	Renewed bool           `json:"renewed"`           // without the person
	State   upstream.State `json:"state"`
	Tools   int            `json:"tools"`
	Error   string         `json:"error"`
}

type logoutOutput struct {
	Name      string `json:"name"`
	SignedOut bool   `json:"signed_out"` // false where nobody was signed in
	Revoked   bool   `json:"revoked"`    // also where the token came from
}

// loginCommands sign in to servers, and out.
func (a *app) loginCommands(files *[]string) []*cobra.Command {
	var quietly bool
	login := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to an MCP server that wants it",
		Long: `Sign in to an MCP server with your browser. What you are given is kept in a file that
only you can read, is renewed without you where the server allows that, and goes to
that server alone. Where the browser is on another machine, paste the address that
it ends at, which it cannot open.`,
		Example: "  loadout servers login search\n  loadout servers login search --no-browser",
		Args:    want(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.serversLogin(cmd.Context(), args[0], *files, quietly)
		},
	}
	login.Flags().BoolVar(&quietly, "no-browser", false, "only print the address; open no browser")
	return []*cobra.Command{login, {
		Use:     "logout NAME",
		Short:   "Sign out of an MCP server, and have it forget the token",
		Example: "  loadout servers logout search",
		Args:    want(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.serversLogout(cmd.Context(), args[0], *files) },
	}}
}

// signIns is where sign-ins of this person are kept, nil where there is no place.
func (a *app) signIns() *oauth.Store {
	d := a.stateDir()
	if d == "" {
		return nil
	}
	return oauth.NewStore(oauth.Files(filepath.Join(d, "oauth")), policy.Local().ID)
}

// loginCommand is what a person types to sign in to a server.
func (a *app) loginCommand(name string, files []string) string {
	return a.signInCommand("login", name, files)
}

func (a *app) signInCommand(verb, name string, files []string) string {
	var b strings.Builder
	b.WriteString("loadout servers " + verb + " " + quoted(name))
	for _, f := range files {
		b.WriteString(" --mcp-config " + quoted(f))
	}
	return b.String() + a.flags()
}

// oauth gives connections what the person signed in for. Nobody is asked: who
// starts a server may not be there.
func (a *app) oauth(files []string) func(*upstream.Config, string) auth.OAuthHandler {
	store := a.signIns()
	return func(c *upstream.Config, at string) auth.OAuthHandler {
		switch {
		case authorized(c):
			return nil
		case c.Owner != "":
			return oauth.Refuse("its configuration comes from " + c.Owner + ", and what is not yours gets no sign-in of yours: if you trust the server, copy it into your own servers.yaml and sign in there")
		case store == nil:
			return oauth.Refuse("set LOADOUT_STATE to a directory that is yours: there is no place to keep a sign-in")
		}
		return store.Handler(at, "sign in with: "+a.loginCommand(c.Name, files))
	}
}

// authorized says whether a configuration brings credentials of its own.
func authorized(c *upstream.Config) bool {
	for k := range c.Headers {
		if strings.EqualFold(k, "Authorization") {
			return true
		}
	}
	return slices.ContainsFunc(c.URLs, func(raw string) bool {
		u, err := url.Parse(raw)
		return err == nil && u.User != nil
	})
}

// signInTo finds a server of the person's that can be signed in to. To sign out,
// only its address has to be known.
func (a *app) signInTo(name string, files []string, out bool) (*upstream.Config, *oauth.Store, error) {
	c, err := a.settings(nil)
	if err != nil {
		return nil, nil, err
	}
	all, findings, err := a.servers(c, files)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(all, func(s *upstream.Config) bool { return s.Name == name })
	if i < 0 {
		for _, f := range findings {
			a.note("%s", f)
		}
		return nil, nil, fail(exitNotFound, "see those there are: loadout servers", "there is no MCP server %q of yours", name)
	}
	s := all[i]
	switch {
	case s.Owner != "":
		return nil, nil, fail(exitRefused, "if you trust it, copy it into your own servers.yaml", "%s comes from %s: you cannot sign in to what is not yours", name, s.Owner)
	case transportOf(s) != upstream.HTTP:
		return nil, nil, fail(exitUsage, "give it what it needs as env or headers, with ${{secrets.NAME}}; see: loadout secret --help", "%s is reached over %s: signing in is for servers with a url, over HTTP", name, transportOf(s))
	}
	if out {
		s = &upstream.Config{Name: s.Name, Type: s.Type, URLs: s.URLs, File: s.File}
	}
	resolved, unset := s.Resolve(a.variables(c))
	if len(unset) > 0 { // the hint is what the error ends in
		return nil, nil, fail(exitFound, unset[0].Hint, "%s is not configured: %s", name, strings.TrimSuffix(unset[0].String(), ": "+unset[0].Hint))
	}
	store := a.signIns()
	if store == nil {
		return nil, nil, fail(exitFound, "set LOADOUT_STATE to a directory that is yours", "there is no place to keep a sign-in")
	}
	return resolved, store, nil
}

func (a *app) serversLogin(ctx context.Context, name string, files []string, quietly bool) error {
	s, store, err := a.signInTo(name, files, false)
	if err != nil {
		return err
	}
	if authorized(s) {
		return fail(exitUsage, "take the Authorization header, or the user in its url, out of "+s.File, "%s has credentials in its configuration, which are used in place of a sign-in", name)
	}
	out := loginOutput{Name: name, Scopes: []string{}}
	for _, at := range s.URLs { // each instance is a server of its own
		got, err := store.Login(ctx, a.login(s, at, quietly))
		if err != nil {
			return a.loginFailed(ctx, s, files, err)
		}
		out.Issuer, out.Renewed, out.Scopes = got.Issuer, got.Renewed, append([]string{}, got.Scopes...)
		if !got.Expiry.IsZero() {
			out.Expires = &got.Expiry
		}
	}
	return a.withServers(ctx, files, true, name, func(set *toolset, wrong map[string]string, _ []string) error {
		all := set.Servers()
		if i := slices.IndexFunc(all, func(s tools.Server) bool { return s.Name == name }); i >= 0 {
			info := infoOf(all[i], wrong)
			out.State, out.Tools, out.Error = info.State, info.Tools, info.Error
		} else {
			out.Error = "it is disabled"
		}
		return a.showLogin(out)
	})
}

func (a *app) showLogin(out loginOutput) error {
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.stdout, "Signed in to %s, at %s.", a.bold(plain(out.Name)), plain(out.Issuer))
		if !out.Renewed && out.Expires != nil {
			fmt.Fprintf(a.stdout, " That ends %s.", out.Expires.Local().Format("2006-01-02 15:04"))
		}
		if out.State == upstream.Ready {
			fmt.Fprintf(a.stdout, " It has %s.\n", counted(out.Tools, "tool"))
		} else {
			fmt.Fprintf(a.stdout, " But it does not work: %s\n", plain(skill.OneLine(out.Error)))
		}
	}
	if out.State != upstream.Ready {
		return errFound
	}
	return nil
}

// login is the sign-in to one address of a server.
func (a *app) login(s *upstream.Config, at string, quietly bool) *oauth.Login {
	l := &oauth.Login{Target: oauth.Target{Server: at, Headers: s.Headers}, Say: func(text string) { fmt.Fprintln(a.stderr, text) }}
	if c := s.OAuth; c != nil {
		l.ID, l.Secret, l.Scopes, l.Redirect, l.Issuer = c.ID, c.Secret, c.Scopes, c.Redirect, c.Issuer
	}
	pasting := isTerminal(a.stdin)
	if pasting {
		l.Paste = io.LimitReader(a.stdin, 1<<20)
	}
	l.Show = func(page string) {
		fmt.Fprintf(a.stderr, "To sign in to %s, open this page:\n\n  %s\n\n", plain(s.Name), plain(page))
		if pasting {
			fmt.Fprintln(a.stderr, "If that browser is on another machine, paste here the address that it ends at.")
		}
		if !quietly {
			a.browse(page)
		}
	}
	return l
}

// browse opens a page in the browser, where there is one: it was printed too.
func (a *app) browse(page string) {
	argv := []string{"xdg-open"}
	switch own := a.getenv("BROWSER"); {
	case own != "" && !strings.ContainsAny(own, " :%"): // one program, not a list of them
		argv = []string{own}
	case runtime.GOOS == "darwin":
		argv = []string{"open"}
	case runtime.GOOS == "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(argv[0], append(argv[1:], page)...) // its output is nobody's
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// loginFailed ends an error of a sign-in in a next step.
func (a *app) loginFailed(ctx context.Context, s *upstream.Config, files []string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*policy.UnsafeError](err); ok {
		return fail(exitRefused, "look at it, who owns it and who can read it; delete it, or as: chmod 600", "sign in to %s: %w", s.Name, err)
	}
	if other, ok := errors.AsType[*oauth.IssuerError](err); ok {
		next := "ask its makers which one is right; if it is the one that the server names, correct oauth.issuer in " + s.File
		if !other.Configured {
			next = "ask its makers whether they moved; if they did: " + a.signInCommand("logout", s.Name, files) + ", then: " + a.loginCommand(s.Name, files)
		}
		return fail(exitRefused, next, "sign in to %s: %w", s.Name, err)
	}
	again := "try it again: " + a.loginCommand(s.Name, files)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fail(exitFound, "check its url, and that it runs; then "+again, "sign in to %s: it cannot be reached: %w", s.Name, err)
	}
	var denied *oauth.DeniedError
	if !errors.As(err, &denied) && !errors.Is(err, oauth.ErrLate) {
		again = "check its url, and what its makers say about signing in; a client that you registered there goes into its configuration as oauth: {clientId: …}"
	}
	return fail(exitFound, again, "sign in to %s: %w", s.Name, err)
}

func (a *app) serversLogout(ctx context.Context, name string, files []string) error {
	s, store, err := a.signInTo(name, files, true)
	if err != nil {
		return err
	}
	out := logoutOutput{Name: name, Revoked: true}
	for _, at := range s.URLs {
		found, revoked, err := store.Logout(ctx, at)
		if err != nil {
			return fail(exitFound, "look at who owns it and who can read it, or delete it yourself in the directory oauth of "+a.stateDir(), "sign out of %s: %w", name, err)
		}
		out.SignedOut = out.SignedOut || found
		out.Revoked = out.Revoked && (revoked || !found)
	}
	out.Revoked = out.Revoked && out.SignedOut
	switch {
	case a.json:
		return a.printJSON(out)
	case !out.SignedOut:
		fmt.Fprintf(a.stdout, "You were not signed in to %s.\n", plain(name))
	case out.Revoked:
		fmt.Fprintf(a.stdout, "Signed out of %s; the token is good for nothing now.\n", plain(name))
	default:
		fmt.Fprintf(a.stdout, "Signed out of %s. The token was deleted here, but could not be revoked there: it may be good until it ends.\n", plain(name))
	}
	return nil
}
