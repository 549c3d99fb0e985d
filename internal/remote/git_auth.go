package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/printable"
)

// withRemote calls run, which contacts the remote. It calls run again with a
// credential if the remote denies access, and after a redirect, at most once
// each.
func (g *gitSession) withRemote(ctx context.Context, run func() error) error {
	for {
		err := run()
		if err == nil || ctx.Err() != nil {
			return err
		}
		again := false
		if gitFailureReason(err) == redirected {
			again, err = g.followRedirect(ctx, err)
		}
		switch gitFailureReason(err) {
		case unauthorized, forbidden, missing:
			again, err = g.findCredential(ctx, err)
		}
		if !again {
			return g.explainError(err)
		}
	}
}

// followRedirect changes the remote to the address to which the server
// redirects. It follows at most one redirect. If it returns false, the error
// says why.
func (g *gitSession) followRedirect(ctx context.Context, err error) (bool, error) {
	if g.moved || !isHTTP(g.url) {
		return false, err
	}
	resp, err := g.get(ctx)
	if err != nil {
		return false, err
	}
	resp.Body.Close()
	if err := g.moveTo(ctx, resp.Request.URL); err != nil {
		return false, err
	}
	return true, nil
}

// moveTo changes the remote's address to u, the URL of the server's first
// response.
func (g *gitSession) moveTo(ctx context.Context, u *url.URL) error {
	g.moved = true
	to, ok := strings.CutSuffix(u.EscapedPath(), "/info/refs")
	next := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + to
	if clean, err := cleanURL(next); ok && err == nil {
		next = clean.String()
	}
	if !ok || checkURL(next, Git) != nil || next == g.url {
		return fmt.Errorf("redirect to %s, which is not a repository URL", cleanAddress(u))
	}
	if strings.HasPrefix(g.url, "https:") && u.Scheme != "https" {
		return fmt.Errorf("redirect from https to %s not followed", cleanAddress(u))
	}
	if next != g.url+".git" { // some hosts add it even if users omit it
		g.addProblem("moved", "the repository is now at "+shownURL(next), "use the new address, because someone else could register the old one")
	}
	if err := g.setRemote(ctx, next); err != nil {
		return err
	}
	if !g.sameHost() {
		g.credentialTried, g.cred = true, nil // do not send the user's credential for one host to another
	}
	g.setCredential(u)
	return nil
}

// sameHost reports whether the remote is still on the host that the user named.
func (g *gitSession) sameHost() bool {
	from, err1 := url.Parse(g.location.URL)
	to, err2 := url.Parse(g.url)
	return err1 == nil && err2 == nil && from.Host == to.Host && from.Scheme == to.Scheme
}

// findCredential looks up the user's credential for the remote's host, at most
// once. If it returns false, the error says why.
func (g *gitSession) findCredential(ctx context.Context, refused error) (bool, error) {
	u, err := url.Parse(g.url)
	if err != nil || g.credentialTried || !isHTTP(g.url) {
		return false, refused
	}
	if e, ok := errors.AsType[*StatusError](refused); ok && !strings.EqualFold(urlHost(e.URL), u.Host) {
		return false, refused // another host denied access after a redirect
	}
	g.credentialTried = true
	if u.Scheme != "https" && !isLocalhost(hostName(u.Hostname())) || !g.client.mayAuthenticate(u) {
		return false, refused
	}
	cred, err := g.client.credential(ctx, u.Host)
	if err != nil {
		return false, fmt.Errorf("read credential for %s: %w", u.Host, err)
	}
	if cred == nil {
		return false, refused
	}
	if strings.ContainsAny(cred.User+cred.Password, "\r\n\x00") {
		return false, fmt.Errorf("credential for %s contains a line break", u.Host)
	}
	g.cred = cred
	g.setCredential(u)
	return true, nil
}

// setCredential configures git to send the credential to the host of u.
func (g *gitSession) setCredential(u *url.URL) {
	if g.cred == nil {
		return
	}
	// Git passes the credential through a helper: a line of shell that reads
	// the environment. Other programs could read arguments and files. The
	// helper is configured for this host only.
	const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$LOADOUT_GIT_USER" "$LOADOUT_GIT_PASSWORD"; }; f`
	g.remoteOptions = append(g.remoteOptions, "-c", "credential."+u.Scheme+"://"+u.Host+".helper="+helper)
	g.remoteEnv = append(g.remoteEnv, "LOADOUT_GIT_USER="+g.cred.gitUser(), "LOADOUT_GIT_PASSWORD="+g.cred.Password)
}

// gitUser returns the user name to send. Hosts that only need a token ignore
// the user name.
func (c *Credential) gitUser() string { return cmp.Or(c.User, "x-access-token") }

// explainError adds advice for the user to a git error.
func (g *gitSession) explainError(err error) error {
	host := printable.OneLine(repoHost(g.url))
	switch why := gitFailureReason(err); {
	case why == missing || why == unauthorized && g.cred == nil:
		return &NotFoundError{What: "repository " + shownURL(g.url), Hint: g.hint(host)}
	case why == unauthorized || why == forbidden:
		return &DeniedError{Host: host, CredentialSent: g.cred != nil}
	case why == missingRef:
		return &NotFoundError{What: fmt.Sprintf("branch or tag %q in %s", g.location.Ref, shownURL(g.url)), Hint: "it was deleted during the fetch"}
	case why == dumbServer:
		return fmt.Errorf("%s is not a git server; only the smart HTTP protocol is supported: %w", host, err)
	case why == unknownHostKey:
		return fmt.Errorf("unknown ssh host key of %s: connect once with ssh and verify the key: %w", host, err)
	case why == outOfMemory:
		return fmt.Errorf("git exceeded its memory limit of %d MiB: %w", g.memory>>20, err)
	case why == invalidObjects:
		return fmt.Errorf("invalid git repository: %w", err)
	}
	return err
}

// hint suggests why a repository might not have been found.
func (g *gitSession) hint(host string) string {
	hint := "if it is private, sign in to " + host + " with git"
	if v := tokenVariable(host); v != "" {
		hint += ", or set " + v
	}
	switch {
	case !isHTTP(g.url):
		return "check its path"
	case g.cred != nil:
		hint = "or the credential for " + host + " may not read it"
	}
	if short, ok := strings.CutPrefix(g.location.URL, "https://github.com/"); ok {
		hint += "; for a local folder write ./" + strings.TrimSuffix(short, ".git")
	}
	return hint
}

// repoHost returns the host of a repository, including the port if there is
// one.
func repoHost(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	before, _, _ := strings.Cut(address, ":")
	_, host, _ := strings.Cut(before, "@")
	return host
}
