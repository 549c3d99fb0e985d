package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
)

// gitSession runs git for a single call to Open or Latest, in its own temporary
// directory. Its methods must not be called concurrently. Its objects are safe
// for concurrent use.
type gitSession struct {
	client          *Client
	program         string
	dir             *gitDir  // temporary directory that contains the home, the repository and the working directory
	memory          int64    // memory limit of each process in bytes
	location        Location // location that the user named
	url             string   // current address of the repository; a redirect changes it
	options         []string // options of every command
	env             []string
	remoteOptions   []string // additional options of commands that contact the remote
	remoteEnv       []string // additional environment of these commands; may contain a password
	credentialTried bool     // whether the credential was looked up, or must not be
	cred            *Credential
	moved           bool // a redirect was followed
	problems        []catalog.Problem
	objects         *gitObjects
}

// gitConfig is git's entire configuration. Git reads neither the system's nor
// the user's configuration.
var gitConfig = []string{
	"protocol.allow=never",        // except for the protocols that setRemote allows
	"core.hooksPath=" + emptyFile, // no hooks
	"core.fsmonitor=false",
	"core.symlinks=false", // nothing is checked out; this is an additional protection
	"core.askPass=",
	"core.bigFileThreshold=8m", // larger objects are not unpacked into memory, except for deltas
	"pack.threads=1",           // each thread needs memory
	"credential.helper=",
	"credential.interactive=false",
	"fetch.unpackLimit=1", // always one pack
	"fetch.recurseSubmodules=false",
	"fetch.writeCommitGraph=false",
	"submodule.recurse=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"http.followRedirects=false", // followRedirect checks each new address
	"http.lowSpeedLimit=1",
	"http.lowSpeedTime=60",
	"http.maxRequests=2",
	// Objects must follow git's format rules, except for harmless errors in
	// commits and trees written by old programs.
	"transfer.fsckObjects=true",
	"fetch.fsck.zeroPaddedFilemode=ignore",
	"fetch.fsck.badTimezone=ignore",
	"fetch.fsck.missingSpaceBeforeDate=ignore",
	"fetch.fsck.missingEmail=ignore",
	"fetch.fsck.missingNameBeforeEmail=ignore",
	"fetch.fsck.missingSpaceBeforeEmail=ignore",
	"fetch.fsck.badEmail=ignore",
}

// emptyFile is the path of a file that is always empty.
const emptyFile = os.DevNull

// newGit creates git's temporary directory and removes abandoned directories.
func (c *Client) newGit(ctx context.Context, program string, l Location) (*gitSession, error) {
	sweep(c.opts.TempDir)
	dir, err := newGitDir(ctx, c.opts.TempDir)
	if err != nil {
		return nil, err
	}
	g := &gitSession{client: c, program: program, dir: dir, memory: c.opts.Limits.Memory, location: l}
	for _, o := range gitConfig {
		g.options = append(g.options, "-c", o)
	}
	g.env = g.environment()
	g.objects = newGitObjects(g)
	err = os.Mkdir(g.home(), 0o700)
	if err == nil {
		err = g.setRemote(ctx, l.URL)
	}
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	return g, nil
}

func (g *gitSession) home() string { return filepath.Join(g.dir.path, "home") }
func (g *gitSession) repo() string { return filepath.Join(g.dir.path, "repo") }

// environment returns git's environment. It omits all of this process's
// variables that start with GIT_.
func (g *gitSession) environment() []string {
	env := []string{
		"LANG=C", "LC_ALL=C",
		"HOME=" + g.home(), "XDG_CONFIG_HOME=" + g.home(), "TMPDIR=" + g.home(), "TEMP=" + g.home(), "TMP=" + g.home(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + emptyFile, "GIT_ATTR_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.dir.path), // ignore repositories in parent directories
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never",
		"GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_PROTOCOL_FROM_USER=0",
	}
	return append(env, inheritedEnv("PATH", "SYSTEMROOT", "COMSPEC", "PATHEXT", "WINDIR")...)
}

// inheritedEnv returns this process's environment variables with the given
// names.
func inheritedEnv(names ...string) []string {
	var out []string
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// setRemote sets the address of the remote. It allows git to use only the
// protocol of the address and the checked IP addresses of its host.
func (g *gitSession) setRemote(ctx context.Context, address string) error {
	g.url, g.remoteOptions, g.remoteEnv = address, nil, nil
	protocol := "ssh"
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "" && strings.Contains(address, "://") {
		protocol = u.Scheme
	}
	g.remoteOptions = append(g.remoteOptions, "-c", "protocol."+protocol+".allow=always")
	g.remoteEnv = append(g.remoteEnv, "GIT_ALLOW_PROTOCOL="+protocol)
	switch protocol {
	case "https", "http":
		return g.pinAddresses(ctx, u)
	case "file":
		return g.setFileRemote()
	}
	// Unlike git, ssh uses the user's home, keys, agent and known hosts.
	// Setting HOME has no effect on versions of ssh that read the home
	// directory from the account. ssh never prompts, and forwards neither the
	// agent nor ports.
	g.remoteEnv = append(g.remoteEnv, inheritedEnv("SSH_AUTH_SOCK")...)
	if home, err := os.UserHomeDir(); err == nil {
		g.remoteEnv = append(g.remoteEnv, "LOADOUT_SSH_HOME="+home)
	}
	g.remoteEnv = append(g.remoteEnv, "GIT_SSH_VARIANT=ssh",
		`GIT_SSH_COMMAND=HOME="$LOADOUT_SSH_HOME" ssh -oBatchMode=yes -oConnectTimeout=30 -oForwardAgent=no -oClearAllForwardings=yes`)
	return nil
}

// setFileRemote allows git to read a local repository that another user owns.
// This is safe because the user named the repository and git only reads it. git
// upload-pack runs in the repository and reads its configuration. It ignores
// the options of the fetch, so its limits are in the file that replaces the
// user's configuration.
func (g *gitSession) setFileRemote() error {
	config := filepath.Join(g.home(), ".gitconfig")
	const text = "[safe]\n\tdirectory = *\n[protocol]\n\tallow = never\n[core]\n\tfsmonitor = false\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	g.remoteEnv = append(g.remoteEnv, "GIT_CONFIG_GLOBAL="+config)
	return nil
}

// pinAddresses checks the host of an address. It makes git connect to the
// checked IP addresses, or to the user's proxy. Git before 2.37 resolves the
// name again.
func (g *gitSession) pinAddresses(ctx context.Context, u *url.URL) error {
	host := hostName(u.Hostname())
	through, err := g.client.proxy(&http.Request{URL: u})
	if err != nil {
		return errors.New("invalid proxy URL in the environment")
	}
	if ca := os.Getenv("SSL_CERT_FILE"); ca != "" { // as Go does
		g.remoteOptions = append(g.remoteOptions, "-c", "http.sslCAInfo="+ca)
	}
	literal, notName := netip.ParseAddr(host)
	if through != nil {
		g.remoteEnv = append(g.remoteEnv, "http_proxy="+through.String(), "https_proxy="+through.String())
		if notName != nil {
			return nil
		}
		return g.client.checkAddress(ctx, host, literal)
	}
	addrs, err := g.client.allowedAddresses(ctx, host)
	if err != nil || notName == nil {
		return err
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	pinned := make([]string, len(addrs))
	for i, a := range addrs {
		if pinned[i] = a.String(); a.Is6() {
			pinned[i] = "[" + pinned[i] + "]"
		}
	}
	g.remoteOptions = append(g.remoteOptions, "-c", "http.curloptResolve="+host+":"+port+":"+strings.Join(pinned, ","))
	return nil
}

// gitCommand describes a git command to run.
type gitCommand struct {
	args   []string
	remote bool   // the command contacts the remote
	watch  string // directory whose size must not exceed Limits.Download
	// read reads the output until EOF. An error stops the command. If read is
	// nil, the output is discarded.
	read func(io.Reader) error
}

// command returns a git command that is ready to start. The command runs in its
// own session: it has no terminal, and its children are killed with it.
func (g *gitSession) command(ctx context.Context, r gitCommand) *exec.Cmd {
	args := append([]string{"--no-pager"}, g.options...)
	env := g.env
	if r.remote {
		args = append(args, g.remoteOptions...)
		env = append(env[:len(env):len(env)], g.remoteEnv...)
	}
	if r.args[0] != "init" && r.args[0] != "ls-remote" {
		args = append(args, "--git-dir="+g.repo())
	}
	cmd := exec.CommandContext(ctx, g.program, append(args, r.args...)...)
	cmd.Dir, cmd.Env = g.home(), env
	detach(cmd)
	cmd.WaitDelay = 5 * time.Second // for children that left the process group and hold the pipes open
	return cmd
}

// run runs a command and waits for it to finish. Its error contains the
// command's messages without secrets.
func (g *gitSession) run(ctx context.Context, r gitCommand) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := g.command(ctx, r)
	said := &gitOutput{progress: g.client.progress}
	cmd.Stderr = said
	var out io.ReadCloser
	if r.read != nil {
		var err error
		if out, err = cmd.StdoutPipe(); err != nil {
			return err
		}
	}
	p, err := startGit(cmd, g.memory)
	if err != nil {
		return fmt.Errorf("git %s: %w", r.args[0], err)
	}
	var watching sync.WaitGroup
	ended := make(chan struct{})
	if r.watch != "" {
		watching.Go(func() { g.watch(r.watch, cancel, ended) })
	}
	if r.read != nil {
		err := r.read(out)
		if err == nil {
			_, err = io.Copy(io.Discard, out) // otherwise the command would block on a full pipe
		}
		if err != nil {
			cancel(err)
		}
	}
	err = p.Wait()
	close(ended)
	watching.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return said.commandError(r.args[0], err)
	}
	if r.watch != "" {
		return g.checkSize(r.watch)
	}
	return nil
}

// watch stops a command when its directory exceeds the limit.
func (g *gitSession) watch(dir string, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if err := g.checkSize(dir); err != nil {
				cancel(err)
				return
			}
		}
	}
}

// checkSize returns an error if a directory exceeds Limits.Download.
func (g *gitSession) checkSize(dir string) error {
	if most := g.client.opts.Limits.Download; directorySize(dir) > most {
		return &TooLargeError{shownURL(g.url), most}
	}
	return nil
}

// directorySize returns the total size of the files in a directory.
func directorySize(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if i, err := d.Info(); err == nil {
				n += i.Size()
			}
		}
		return nil // ignore files that were removed
	})
	return n
}

// shownURL formats a repository's address for errors: on a single line and
// without user, password or query.
func shownURL(address string) string {
	scheme, _, ok := strings.Cut(address, "://")
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		return cleanAddress(u)
	} else if ok {
		return printable.OneLine(strings.ToValidUTF8(scheme, "�")) + "://…"
	}
	return fmt.Sprintf("%.500s", strings.Trim(strconv.Quote(address), `"`))
}
