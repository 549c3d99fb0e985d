package setup

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/oauth"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/policy"
)

// SignInStore returns the store of the user's sign-ins, or nil if there is no
// directory for it.
func (s *Setup) SignInStore() *oauth.Store {
	d := s.StateDir()
	if d == "" {
		return nil
	}
	return oauth.NewStore(oauth.FileStorage(filepath.Join(d, "oauth")), policy.LocalUser().ID)
}

// LoginCommand returns the command for signing in to a server.
func (s *Setup) LoginCommand(name string, files []string) string {
	return s.SignInCommand("login", name, files)
}

// SignInCommand returns the command that signs in to a server or out of it.
// verb is "login" or "logout".
func (s *Setup) SignInCommand(verb, name string, files []string) string {
	var b strings.Builder
	b.WriteString("loadout servers " + verb + " " + console.ShellQuote(name))
	for _, f := range files {
		b.WriteString(" --mcp-config " + console.ShellQuote(f))
	}
	return b.String() + s.SkillFlags()
}

// NewOAuthHandler returns a function that creates the OAuth handler for a
// connection. The handlers use stored sign-ins and never prompt, because the
// user may not be present.
func (s *Setup) NewOAuthHandler(files []string) func(*upstream.Config, string) auth.OAuthHandler {
	store := s.SignInStore()
	return func(c *upstream.Config, at string) auth.OAuthHandler {
		switch {
		case HasCredentials(c):
			return nil
		case c.Owner != "":
			return oauth.NewRefusingHandler("its configuration comes from " + string(c.Owner) + ", and your sign-ins are used for your own servers only: if you trust the server, copy it into your servers.yaml and sign in there")
		case store == nil:
			return oauth.NewRefusingHandler("set LOADOUT_STATE to a directory of yours: there is no directory for sign-ins")
		}
		return store.Handler(at, "sign in with: "+s.LoginCommand(c.Name, files))
	}
}

// HasCredentials reports whether a server configuration contains credentials.
func HasCredentials(c *upstream.Config) bool {
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
