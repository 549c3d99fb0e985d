package upstream

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/internal/tree"
	"github.com/loadout-dev/loadout/skill"
)

// oauth reads the client that a person registered, as Claude Code, Cursor and
// Gemini have it. Where the server and its endpoints are is found out; a
// person may write down which one it has to be.
func (e *entry) oauth(f tree.Field) {
	if f.Value.Kind != tree.Map {
		e.add(skill.Info, "server-oauth", at(f), e.about(f.Key+" is not a client: signing in is offered where a server wants it"), "")
		return
	}
	c := &OAuthClient{}
	for _, kv := range f.Value.Fields {
		switch canon(kv.Key) {
		case "clientid":
			c.ID = e.value(kv)
		case "clientsecret":
			c.Secret = e.value(kv)
		case "issuer":
			c.Issuer = e.issuer(kv)
		case "scopes", "scope":
			c.Scopes = e.scopes(kv)
		case "redirectport":
			c.Redirect = e.redirect(kv, "127.0.0.1")
		case "callbackport": // Claude Code
			c.Redirect = e.redirect(kv, "localhost")
		case "redirecturi":
			c.Redirect = e.value(kv)
		default:
			e.add(skill.Info, "server-key", at(kv), e.about("key "+quote(f.Key+"."+kv.Key)+" is not known and is ignored"), "")
		}
	}
	if c.Secret != "" && c.ID == "" {
		e.warn("server-oauth", at(f), f.Key+" has a secret and no clientId", "write both, or neither")
	}
	e.c.OAuth = c
}

// scopes is a list, or a text with spaces as it is sent.
func (e *entry) scopes(f tree.Field) []string {
	var all []string
	for _, s := range e.texts(f) {
		all = append(all, strings.Fields(s)...)
	}
	return unique(all)
}

// issuer is the address of an authorization server. One that is none is kept: no
// server has it, so that nothing is sent to any.
func (e *entry) issuer(f tree.Field) string {
	s := e.value(f)
	if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		e.warn("server-oauth", f.Value, f.Key+" is no address of an authorization server: no sign-in will fit it", "write it as the server names it, as https://login.example.com")
	}
	return s
}

// redirect is the address of a port of this machine.
func (e *entry) redirect(f tree.Field, host string) string {
	port, err := strconv.ParseUint(text(f.Value), 10, 16)
	if err != nil || port == 0 {
		e.warn("server-oauth", f.Value, f.Key+" is no port and is ignored", "write a number from 1 to 65535")
		return ""
	}
	return (&url.URL{Scheme: "http", Host: fmt.Sprintf("%s:%d", host, port), Path: "/callback"}).String()
}
