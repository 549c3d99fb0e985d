package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/tools"
)

type loginOutput struct {
	Name    string         `json:"name"`
	Issuer  string         `json:"issuer"`
	Scopes  []string       `json:"scopes"`
	Expires *time.Time     `json:"expires,omitempty"` // expiry of the token
	Renewed bool           `json:"renewed"`           // whether the token was renewed without prompting the user
	State   upstream.State `json:"state"`
	Tools   int            `json:"tools"`
	Error   string         `json:"error"`
}

type logoutOutput struct {
	Name      string `json:"name"`
	SignedOut bool   `json:"signed_out"` // false if the user was not signed in
	Revoked   bool   `json:"revoked"`    // whether the token was also revoked at the issuer
}

// loginCommands returns the commands for signing in to servers and signing out.
func (a *app) loginCommands(files *[]string) []*cobra.Command {
	var quietly bool
	login := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to an MCP server",
		Long: `Sign in to an MCP server with your browser. The token is stored in a file that only you
can read, is renewed automatically if the server allows it, and is sent to that server
only. If the browser runs on another machine, paste the address of the final page into
the terminal, even if the browser could not load that page.`,
		Example: "  loadout servers login search\n  loadout servers login search --no-browser",
		Args:    argCount(1, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.loginServer(cmd.Context(), args[0], *files, quietly)
		},
	}
	login.Flags().BoolVar(&quietly, "no-browser", false, "print the address without opening a browser")
	return []*cobra.Command{login, {
		Use:     "logout NAME",
		Short:   "Sign out of an MCP server and revoke the token",
		Example: "  loadout servers logout search",
		Args:    argCount(1, 1, "NAME"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.logoutServer(cmd.Context(), args[0], *files) },
	}}
}

// findSignInServer returns the user's server with the given name and the store of
// sign-ins. If signOut is set, only the variables in the server's URLs need values.
func (a *app) findSignInServer(name string, files []string, signOut bool) (*upstream.Config, *oauth.Store, error) {
	c, err := a.LoadConfig(nil)
	if err != nil {
		return nil, nil, err
	}
	all, findings, err := a.ReadServers(c, files)
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(all, func(s *upstream.Config) bool { return s.Name == name })
	if i < 0 {
		for _, f := range findings {
			a.Note("%s", f)
		}
		return nil, nil, exit.Errorf(exit.NotFound, "list your servers: loadout servers", "MCP server %q not found", name)
	}
	s := all[i]
	switch {
	case s.Owner != "":
		return nil, nil, exit.Errorf(exit.Refused, "if you trust it, copy it into your servers.yaml", "%s comes from %s: you can sign in to your own servers only", name, s.Owner)
	case serverTransport(s) != upstream.HTTP:
		return nil, nil, exit.Errorf(exit.Usage, "set env or headers with ${{secrets.NAME}}; see: loadout secret --help", "%s uses %s: only servers with a url support signing in", name, serverTransport(s))
	}
	if signOut {
		s = &upstream.Config{Name: s.Name, Type: s.Type, URLs: s.URLs, File: s.File}
	}
	resolved, unset := s.Resolve(a.ServerVariables(c))
	if len(unset) > 0 { // the hint is the end of the message
		return nil, nil, exit.Errorf(exit.Failure, unset[0].Hint, "%s is not configured: %s", name, strings.TrimSuffix(unset[0].String(), ": "+unset[0].Hint))
	}
	store := a.SignInStore()
	if store == nil {
		return nil, nil, exit.Errorf(exit.Failure, "set LOADOUT_STATE to a directory of yours", "no directory to store the sign-in")
	}
	return resolved, store, nil
}

func (a *app) loginServer(ctx context.Context, name string, files []string, quietly bool) error {
	s, store, err := a.findSignInServer(name, files, false)
	if err != nil {
		return err
	}
	if setup.HasCredentials(s) {
		return exit.Errorf(exit.Usage, "remove the Authorization header or the user in its url from "+s.File, "%s has credentials in its configuration, which take precedence over a sign-in", name)
	}
	out := loginOutput{Name: name, Scopes: []string{}}
	for _, at := range s.URLs { // each instance is a separate server
		got, err := store.Login(ctx, a.newLogin(s, at, quietly))
		if err != nil {
			return a.loginError(ctx, s, files, err)
		}
		out.Issuer, out.Renewed, out.Scopes = got.Issuer, got.Renewed, append([]string{}, got.Scopes...)
		if !got.Expiry.IsZero() {
			out.Expires = &got.Expiry
		}
	}
	return a.withServers(ctx, files, true, name, func(set *setup.Toolset, wrong map[string]string, _ []string) error {
		all := set.Servers()
		if i := slices.IndexFunc(all, func(s tools.Server) bool { return s.Name == name }); i >= 0 {
			info := newServerInfo(all[i], wrong)
			out.State, out.Tools, out.Error = info.State, info.Tools, info.Error
		} else {
			out.Error = "server is disabled"
		}
		return a.printLogin(out)
	})
}

func (a *app) printLogin(out loginOutput) error {
	if a.JSON {
		if err := a.PrintJSON(out); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.Stdout, "Signed in to %s, at %s.", a.Bold(plain(out.Name)), plain(out.Issuer))
		if !out.Renewed && out.Expires != nil {
			fmt.Fprintf(a.Stdout, " Expires %s.", out.Expires.Local().Format("2006-01-02 15:04"))
		}
		if out.State == upstream.Ready {
			fmt.Fprintf(a.Stdout, " It has %s.\n", console.Pluralize(out.Tools, "tool"))
		} else {
			fmt.Fprintf(a.Stdout, " But the server does not work: %s\n", plain(out.Error))
		}
	}
	if out.State != upstream.Ready {
		return exit.Reported
	}
	return nil
}

// newLogin prepares a sign-in to one address of a server.
func (a *app) newLogin(s *upstream.Config, at string, quietly bool) *oauth.Login {
	l := &oauth.Login{Target: oauth.Target{Server: at, Headers: s.Headers}, Print: func(text string) { fmt.Fprintln(a.Stderr, text) }}
	if c := s.OAuth; c != nil {
		l.ID, l.Secret, l.Scopes, l.Redirect, l.Issuer = c.ID, c.Secret, c.Scopes, c.Redirect, c.Issuer
	}
	pasting := console.IsTerminal(a.Stdin)
	if pasting {
		l.Paste = io.LimitReader(a.Stdin, 1<<20)
	}
	l.Show = func(page string) {
		fmt.Fprintf(a.Stderr, "To sign in to %s, open this page:\n\n  %s\n\n", plain(s.Name), plain(page))
		if pasting {
			fmt.Fprintln(a.Stderr, "If the browser runs on another machine, paste the address of its final page here.")
		}
		if !quietly {
			a.openBrowser(page)
		}
	}
	return l
}

// openBrowser opens a page in the user's browser, if there is one. The caller
// prints the address too.
func (a *app) openBrowser(page string) {
	argv := []string{"xdg-open"}
	switch own := a.Getenv("BROWSER"); {
	case own != "" && !strings.ContainsAny(own, " :%"): // a single program, not a list
		argv = []string{own}
	case runtime.GOOS == "darwin":
		argv = []string{"open"}
	case runtime.GOOS == "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(argv[0], append(argv[1:], page)...) // discards the output
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// loginError adds a hint to a sign-in error.
func (a *app) loginError(ctx context.Context, s *upstream.Config, files []string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		return exit.Errorf(exit.Refused, "check its owner and permissions; delete it, or run chmod 600", "sign in to %s: %w", s.Name, err)
	}
	if other, ok := errors.AsType[*oauth.IssuerError](err); ok {
		next := "ask the operator of the server which issuer is right; to use the one the server names, correct oauth.issuer in " + s.File
		if !other.Configured {
			next = "ask the operator of the server whether its issuer changed; if so: " + a.SignInCommand("logout", s.Name, files) + ", then: " + a.LoginCommand(s.Name, files)
		}
		return exit.Errorf(exit.Refused, next, "sign in to %s: %w", s.Name, err)
	}
	again := "try again: " + a.LoginCommand(s.Name, files)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return exit.Errorf(exit.Failure, "check its url, and that it is running; then "+again, "sign in to %s: cannot connect: %w", s.Name, err)
	}
	var denied *oauth.DeniedError
	if !errors.As(err, &denied) && !errors.Is(err, oauth.ErrTimeout) {
		again = "check its url and its documentation about signing in; if you registered a client, add it to the entry: oauth: {clientId: …}"
	}
	return exit.Errorf(exit.Failure, again, "sign in to %s: %w", s.Name, err)
}

func (a *app) logoutServer(ctx context.Context, name string, files []string) error {
	s, store, err := a.findSignInServer(name, files, true)
	if err != nil {
		return err
	}
	out := logoutOutput{Name: name, Revoked: true}
	for _, at := range s.URLs {
		found, revoked, err := store.Logout(ctx, at)
		if err != nil {
			return exit.Errorf(exit.Failure, "check its owner and permissions, or delete it yourself in the directory oauth of "+a.StateDir(), "sign out of %s: %w", name, err)
		}
		out.SignedOut = out.SignedOut || found
		out.Revoked = out.Revoked && (revoked || !found)
	}
	out.Revoked = out.Revoked && out.SignedOut
	switch {
	case a.JSON:
		return a.PrintJSON(out)
	case !out.SignedOut:
		fmt.Fprintf(a.Stdout, "You were not signed in to %s.\n", plain(name))
	case out.Revoked:
		fmt.Fprintf(a.Stdout, "Signed out of %s and revoked the token.\n", plain(name))
	default:
		fmt.Fprintf(a.Stdout, "Signed out of %s. The token was deleted here but could not be revoked: it may stay valid until it expires.\n", plain(name))
	}
	return nil
}
