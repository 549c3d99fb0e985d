package upstream

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/skill"
)

// parseOAuth parses an OAuth client that the user has registered, in the syntax
// of Claude Code, Cursor or Gemini CLI. Endpoints are discovered, but the user
// may set the issuer.
func (e *serverEntry) parseOAuth(f configfile.Field) {
	if f.Value.Kind != configfile.Map {
		e.add(skill.Info, "server-oauth", keyNode(f), e.serverMessage(f.Key+" is not a client ID: sign-in starts when the server requires it"), "")
		return
	}
	c := &OAuthClient{}
	for _, kv := range f.Value.Fields {
		switch canonicalKey(kv.Key) {
		case "clientid":
			c.ID = e.parseString(kv)
		case "clientsecret":
			c.Secret = e.parseString(kv)
		case "issuer":
			c.Issuer = e.parseIssuer(kv)
		case "scopes", "scope":
			c.Scopes = e.parseScopes(kv)
		case "redirectport":
			c.Redirect = e.parseRedirect(kv, "127.0.0.1")
		case "callbackport": // Claude Code
			c.Redirect = e.parseRedirect(kv, "localhost")
		case "redirecturi":
			c.Redirect = e.parseString(kv)
		default:
			e.add(skill.Info, "server-key", keyNode(kv), e.serverMessage("key "+quoteText(f.Key+"."+kv.Key)+" is unknown and ignored"), "")
		}
	}
	if c.Secret != "" && c.ID == "" {
		e.warn("server-oauth", keyNode(f), f.Key+" has a secret but no clientId", "write both, or neither")
	}
	e.c.OAuth = c
}

// parseScopes parses a list of scopes or a space-separated string.
func (e *serverEntry) parseScopes(f configfile.Field) []string {
	var all []string
	for _, s := range e.parseStrings(f) {
		all = append(all, strings.Fields(s)...)
	}
	return unique(all)
}

// parseIssuer parses the URL of an authorization server. It keeps an invalid
// URL, which matches no server, so that no secret is sent.
func (e *serverEntry) parseIssuer(f configfile.Field) string {
	s := e.parseString(f)
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		e.warn("server-oauth", f.Value, f.Key+" is not the URL of an authorization server: sign-in will fail", "write the issuer exactly as the server returns it, such as https://login.example.com")
	}
	return s
}

// parseRedirect returns the callback URL for a local port.
func (e *serverEntry) parseRedirect(f configfile.Field, host string) string {
	port, err := strconv.ParseUint(scalarText(f.Value), 10, 16)
	if err != nil || port == 0 {
		e.warn("server-oauth", f.Value, f.Key+" is not a port and is ignored", "write a number from 1 to 65535")
		return ""
	}
	return (&url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", host, port), Path: "/callback"}).String()
}
