package remote

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxCredential     = 64 << 10         // bytes that a helper prints
	credentialTimeout = 15 * time.Second // for all helpers together
)

// tokens are the variables that hold tokens, and the host that each is for.
var tokens = []struct{ host, variable, user string }{
	{"github.com", "GH_TOKEN", "x-access-token"},
	{"github.com", "GITHUB_TOKEN", "x-access-token"},
	{"gitlab.com", "GITLAB_TOKEN", "oauth2"},
}

// tokenVariable is the variable that may hold a token for a host, "" where none
// does.
func tokenVariable(host string) string {
	for _, t := range slices.Backward(tokens) {
		if t.host == host {
			return t.variable
		}
	}
	return ""
}

// credential is what there is for a host: what Options.Credential has, or else what
// the person has.
func (c *Client) credential(ctx context.Context, host string) (*Credential, error) {
	if c.opts.Credential != nil {
		return c.opts.Credential(ctx, host)
	}
	return c.personal(ctx, host)
}

// shows reports whether a credential may be looked for, to be shown to u. What the
// person has is for https: helpers are asked for that, and nobody else chose what to
// show.
func (c *Client) shows(u *url.URL) bool {
	return c.opts.Credential != nil || u.Scheme == "https" && !c.opts.Untrusted
}

// Token is what the environment has for a host that is known by its name, as GH_TOKEN
// for github.com; nil for others. Unlike [Personal] it asks nobody.
func Token(host string) *Credential {
	for _, t := range tokens {
		if v := strings.TrimSpace(os.Getenv(t.variable)); v != "" && t.host == host {
			return &Credential{User: t.user, Password: v}
		}
	}
	return nil
}

// Personal is what the person has for a host, as Options.Credential returns it where
// that is not set: for those who set it, and have something of their own first.
func Personal(ctx context.Context, host string) (*Credential, error) {
	return New(nil).personal(ctx, host)
}

// personal is the default of Options.Credential: a token in the environment for the
// one host that it is for, else what the person's git has for a host without
// asking. A helper that fails, or that does not answer in time, has nothing.
func (c *Client) personal(ctx context.Context, host string) (*Credential, error) {
	if t := Token(host); t != nil {
		return t, nil
	}
	program, err := c.gitProgram()
	if err != nil || strings.ContainsAny(host, "\r\n\x00") {
		return nil, nil
	}
	return c.fill(ctx, program, host)
}

// fill asks the credential helpers of git, as the person configured them: in an empty
// directory, so that no repository has a say.
func (c *Client) fill(ctx context.Context, program, host string) (*Credential, error) {
	dir, err := os.MkdirTemp(c.opts.TempDir, "loadout-git-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, credentialTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-c", "core.askPass=", "credential", "fill")
	cmd.Dir = dir
	cmd.Env = append(personalEnvironment(),
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never")
	cmd.Stdin = strings.NewReader("protocol=https\nhost=" + host + "\n\n")
	out := &bounded{left: maxCredential}
	cmd.Stdout = out
	apart(cmd)
	cmd.WaitDelay = time.Second
	if cmd.Run() != nil {
		return nil, nil // there is none, or none without asking the person
	}
	return parseCredential(out.String()), nil
}

// personalEnvironment is the person's, without what names a repository or adds
// configuration for one command.
func personalEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && name != "GIT_CONFIG_GLOBAL" && name != "GIT_CONFIG_SYSTEM" && name != "GIT_CONFIG_NOSYSTEM" && name != "GIT_EXEC_PATH"
	})
}

// parseCredential reads what git credential fill prints; nil where it has no
// password.
func parseCredential(text string) *Credential {
	c := &Credential{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		switch key {
		case "username":
			c.User = value
		case "password":
			c.Password = value
		}
	}
	if c.Password == "" {
		return nil
	}
	return c
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}
