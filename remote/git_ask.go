package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// ask runs what asks the remote: again, once, with a credential where the remote
// refuses, and once at the address that it redirects to.
func (g *gitTrip) ask(ctx context.Context, run func() error) error {
	for {
		err := run()
		if err == nil || ctx.Err() != nil {
			return err
		}
		again := false
		if whyOf(err) == movedAway {
			again, err = g.follow(ctx, err)
		}
		switch whyOf(err) {
		case unauthorized, forbidden, notThere:
			again, err = g.sign(ctx, err)
		}
		if !again {
			return g.explain(err)
		}
	}
}

// follow goes where the remote redirects to, once; the error is why not.
func (g *gitTrip) follow(ctx context.Context, err error) (bool, error) {
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

// moveTo has the remote be where u, the URL of a server's first answer, says.
func (g *gitTrip) moveTo(ctx context.Context, u *url.URL) error {
	g.moved = true
	to, ok := strings.CutSuffix(u.EscapedPath(), "/info/refs")
	next := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() + to
	if clean, err := cleanURL(next); ok && err == nil {
		next = clean.String()
	}
	if !ok || checkURL(next, Git) != nil || next == g.url {
		return fmt.Errorf("it redirects to %s, which is no repository", place(u))
	}
	if strings.HasPrefix(g.url, "https:") && u.Scheme != "https" {
		return fmt.Errorf("it redirects from https to %s", place(u))
	}
	if next != g.url+".git" { // which some hosts add, and people leave out
		g.problem("moved", "the repository is now at "+shownURL(next), "use the new address; whoever takes the old one over decides what comes from there")
	}
	if err := g.goTo(ctx, next); err != nil {
		return err
	}
	if !g.sameHost() {
		g.tried, g.cred = true, nil // what the person has for one host is not shown to another
	}
	g.show(u)
	return nil
}

// sameHost reports whether the remote is at the host that the person named.
func (g *gitTrip) sameHost() bool {
	from, err1 := url.Parse(g.asked.URL)
	to, err2 := url.Parse(g.url)
	return err1 == nil && err2 == nil && from.Host == to.Host && from.Scheme == to.Scheme
}

// sign gets the person's credential for the host of the remote, once; the error is
// why it is not tried again.
func (g *gitTrip) sign(ctx context.Context, refused error) (bool, error) {
	u, err := url.Parse(g.url)
	if err != nil || g.tried || !isHTTP(g.url) {
		return false, refused
	}
	if e, ok := errors.AsType[*StatusError](refused); ok && !strings.EqualFold(hostOf(e.URL), u.Host) {
		return false, refused // by another host, which it redirects to
	}
	g.tried = true
	if u.Scheme != "https" && !isLocalhost(hostName(u.Hostname())) || !g.client.shows(u) {
		return false, refused
	}
	cred, err := g.client.credential(ctx, u.Host)
	if err != nil {
		return false, fmt.Errorf("the credential for %s: %w", u.Host, err)
	}
	if cred == nil {
		return false, refused
	}
	if strings.ContainsAny(cred.User+cred.Password, "\r\n\x00") {
		return false, fmt.Errorf("the credential for %s has a line break in it", u.Host)
	}
	g.cred = cred
	g.show(u)
	return true, nil
}

// show has git show the credential that there is to the host of u, where it is asked
// for one.
func (g *gitTrip) show(u *url.URL) {
	if g.cred == nil {
		return
	}
	// Git asks a helper, which is a line of shell and reads the environment of
	// git: arguments and files are read by others. It is asked for this host alone.
	const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$LOADOUT_GIT_USER" "$LOADOUT_GIT_PASSWORD"; }; f`
	g.asking = append(g.asking, "-c", "credential."+u.Scheme+"://"+u.Host+".helper="+helper)
	g.askEnv = append(g.askEnv, "LOADOUT_GIT_USER="+g.cred.gitUser(), "LOADOUT_GIT_PASSWORD="+g.cred.Password)
}

// gitUser is the name that a host is told: hosts that take tokens alone read none.
func (c *Credential) gitUser() string { return cmp.Or(c.User, "x-access-token") }

// explain is the error that a person can act on.
func (g *gitTrip) explain(err error) error {
	host := skill.OneLine(repoHost(g.url))
	switch why := whyOf(err); {
	case why == notThere || why == unauthorized && g.cred == nil:
		return &NotFoundError{What: "repository " + shownURL(g.url), Hint: g.hint(host)}
	case why == unauthorized || why == forbidden:
		return &DeniedError{Host: host, Shown: g.cred != nil}
	case why == noRef:
		return &NotFoundError{What: fmt.Sprintf("branch or tag %q in %s", g.asked.Ref, shownURL(g.url)), Hint: "it was there a moment ago"}
	case why == dumb:
		return fmt.Errorf("%s serves the files of a repository, but not git: %w", host, err)
	case why == hostKey:
		return fmt.Errorf("ssh does not know %s: connect to it once with ssh, and look at its key: %w", host, err)
	case why == noMemory:
		return fmt.Errorf("git needs more than the %d MiB of memory that it may have: %w", g.memory>>20, err)
	case why == broken:
		return fmt.Errorf("the repository breaks the rules of git: %w", err)
	}
	return err
}

// hint is what a repository that is not found may be instead.
func (g *gitTrip) hint(host string) string {
	hint := "a private one looks so too: sign in to " + host + " with git"
	if v := tokenVariable(host); v != "" {
		hint += ", or set " + v
	}
	switch {
	case !isHTTP(g.url):
		return "look at its path"
	case g.cred != nil:
		hint = "or the credential for " + host + " may not read it"
	}
	if short, ok := strings.CutPrefix(g.asked.URL, "https://github.com/"); ok {
		hint += "; a folder of this machine is written ./" + strings.TrimSuffix(short, ".git")
	}
	return hint
}

// repoHost is the host of a repository, with a port where it has one.
func repoHost(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	before, _, _ := strings.Cut(address, ":")
	_, host, _ := strings.Cut(before, "@")
	return host
}
