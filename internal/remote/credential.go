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
	maxCredential     = 64 << 10         // output of a helper in bytes
	credentialTimeout = 15 * time.Second // timeout for all helpers together
)

// tokenVariables lists environment variables that hold tokens, and the hosts
// that accept the tokens.
var tokenVariables = []struct{ host, variable, user string }{
	{"github.com", "GH_TOKEN", "x-access-token"},
	{"github.com", "GITHUB_TOKEN", "x-access-token"},
	{"gitlab.com", "GITLAB_TOKEN", "oauth2"},
}

// tokenVariable returns the name of the environment variable to set for a
// host's token, or "" if there is none.
func tokenVariable(host string) string {
	for _, t := range slices.Backward(tokenVariables) {
		if t.host == host {
			return t.variable
		}
	}
	return ""
}

// credential returns the credential for a host. It uses Options.Credential if
// set, and [UserCredential] otherwise.
func (c *Client) credential(ctx context.Context, host string) (*Credential, error) {
	if c.opts.Credential != nil {
		return c.opts.Credential(ctx, host)
	}
	return c.userCredential(ctx, host)
}

// mayAuthenticate reports whether a credential may be looked up for u. The
// user's own credentials are sent only over HTTPS.
func (c *Client) mayAuthenticate(u *url.URL) bool {
	return c.opts.Credential != nil || u.Scheme == "https" && !c.opts.Untrusted
}

// EnvironmentCredential returns the token for a known host from the
// environment, for example GH_TOKEN for github.com. It returns nil if there is
// no token. Unlike [UserCredential], it runs no credential helper.
func EnvironmentCredential(host string) *Credential {
	for _, t := range tokenVariables {
		if v := strings.TrimSpace(os.Getenv(t.variable)); v != "" && t.host == host {
			return &Credential{User: t.user, Password: v}
		}
	}
	return nil
}

// UserCredential returns the user's credential for a host. It is the default of
// Options.Credential. Callers that set their own function can fall back to it.
func UserCredential(ctx context.Context, host string) (*Credential, error) {
	return New(nil).userCredential(ctx, host)
}

// userCredential returns the environment's token for the host, or else the
// one from the user's git credential helpers, without prompting. It returns nil if
// a helper fails or times out.
func (c *Client) userCredential(ctx context.Context, host string) (*Credential, error) {
	if t := EnvironmentCredential(host); t != nil {
		return t, nil
	}
	program, err := c.gitProgram()
	if err != nil || strings.ContainsAny(host, "\r\n\x00") {
		return nil, nil
	}
	return c.runHelpers(ctx, program, host)
}

// runHelpers runs the user's git credential helpers in an empty directory, so
// that no repository configuration applies.
func (c *Client) runHelpers(ctx context.Context, program, host string) (*Credential, error) {
	dir, err := os.MkdirTemp(c.opts.TempDir, "loadout-git-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, credentialTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-c", "core.askPass=", "credential", "fill")
	cmd.Dir = dir
	cmd.Env = append(userEnvironment(),
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never")
	cmd.Stdin = strings.NewReader("protocol=https\nhost=" + host + "\n\n")
	out := &limitedBuffer{left: maxCredential}
	cmd.Stdout = out
	detach(cmd)
	cmd.WaitDelay = time.Second
	if cmd.Run() != nil {
		return nil, nil // no credential, or only with a prompt
	}
	return parseCredential(out.String()), nil
}

// userEnvironment returns the environment without the variables that select a
// repository or override its configuration.
func userEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "GIT_") && name != "GIT_CONFIG_GLOBAL" && name != "GIT_CONFIG_SYSTEM" && name != "GIT_CONFIG_NOSYSTEM" && name != "GIT_EXEC_PATH"
	})
}

// parseCredential parses the output of git credential fill. It returns nil if
// there is no password in the output.
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

// limitedBuffer stores the first bytes written to it and discards the rest.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	b.Buffer.Write(p[:n])
	return len(p), nil
}
