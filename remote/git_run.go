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
	"github.com/loadout-dev/loadout/skill"
)

// gitTrip is git at work for one Look or Latest: a directory of its own, and what
// it is told wherever it is started. Its methods are for one goroutine; the objects
// are safe for concurrent use.
type gitTrip struct {
	client   *Client
	program  string
	dir      *gitDir  // of ours alone: home, repository, and the current directory
	memory   int64    // bytes that each process may have
	asked    Location // what the person named
	url      string   // where the repository is, which a redirect changes
	options  []string // before every command
	env      []string
	asking   []string // options before commands that ask the remote, after the others
	askEnv   []string // and what their environment has more; a password may be in it
	tried    bool     // the credential of the host was asked for, or must not be
	cred     *Credential
	moved    bool // a redirect was followed
	problems []catalog.Problem
	objects  *gitObjects
}

// hardened is what git is told always. It reads no configuration but this: none of
// the system, none of a person.
var hardened = []string{
	"protocol.allow=never",      // but what newGit allows
	"core.hooksPath=" + nowhere, // there are none, and stay none
	"core.fsmonitor=false",
	"core.symlinks=false", // nothing is checked out; if it were, no link
	"core.askPass=",
	"core.bigFileThreshold=8m", // larger ones are not unpacked into memory, deltas apart
	"pack.threads=1",           // each holds what it unfolds
	"credential.helper=",
	"credential.interactive=false",
	"fetch.unpackLimit=1", // one pack, however small
	"fetch.recurseSubmodules=false",
	"fetch.writeCommitGraph=false",
	"submodule.recurse=false",
	"gc.auto=0",
	"maintenance.auto=false",
	"http.followRedirects=false", // each new address is checked, by follow
	"http.lowSpeedLimit=1",
	"http.lowSpeedTime=60",
	"http.maxRequests=2",
	// Objects are held to the rules of git, but for what old programs wrote into
	// commits and trees that is harmless.
	"transfer.fsckObjects=true",
	"fetch.fsck.zeroPaddedFilemode=ignore",
	"fetch.fsck.badTimezone=ignore",
	"fetch.fsck.missingSpaceBeforeDate=ignore",
	"fetch.fsck.missingEmail=ignore",
	"fetch.fsck.missingNameBeforeEmail=ignore",
	"fetch.fsck.missingSpaceBeforeEmail=ignore",
	"fetch.fsck.badEmail=ignore",
}

// nowhere is a file that is empty, and a directory that is none.
const nowhere = os.DevNull

// newGit makes the directory that git works in, and removes those that others have
// left.
func (c *Client) newGit(ctx context.Context, program string, l Location) (*gitTrip, error) {
	sweep(c.opts.TempDir)
	dir, err := newGitDir(ctx, c.opts.TempDir)
	if err != nil {
		return nil, err
	}
	g := &gitTrip{client: c, program: program, dir: dir, memory: c.opts.Limits.Memory, asked: l}
	for _, o := range hardened {
		g.options = append(g.options, "-c", o)
	}
	g.env = g.environment()
	g.objects = newGitObjects(g)
	err = os.Mkdir(g.home(), 0o700)
	if err == nil {
		err = g.goTo(ctx, l.URL)
	}
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	return g, nil
}

func (g *gitTrip) home() string { return filepath.Join(g.dir.path, "home") }
func (g *gitTrip) repo() string { return filepath.Join(g.dir.path, "repo") }

// environment is all that git sees of ours. Nothing that begins with GIT_ comes
// from the caller's.
func (g *gitTrip) environment() []string {
	env := []string{
		"LANG=C", "LC_ALL=C",
		"HOME=" + g.home(), "XDG_CONFIG_HOME=" + g.home(), "TMPDIR=" + g.home(), "TEMP=" + g.home(), "TMP=" + g.home(),
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + nowhere, "GIT_ATTR_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(g.dir.path), // no repository around ours
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never",
		"GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_PROTOCOL_FROM_USER=0",
	}
	return append(env, inherited("PATH", "SYSTEMROOT", "COMSPEC", "PATHEXT", "WINDIR")...)
}

// inherited are the variables of our environment with these names.
func inherited(names ...string) []string {
	var out []string
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// goTo is where the remote is from now on; git is allowed the one protocol of it,
// and the addresses of its host that were checked.
func (g *gitTrip) goTo(ctx context.Context, address string) error {
	g.url, g.asking, g.askEnv = address, nil, nil
	protocol := "ssh"
	u, err := url.Parse(address)
	if err == nil && u.Scheme != "" && strings.Contains(address, "://") {
		protocol = u.Scheme
	}
	g.asking = append(g.asking, "-c", "protocol."+protocol+".allow=always")
	g.askEnv = append(g.askEnv, "GIT_ALLOW_PROTOCOL="+protocol)
	switch protocol {
	case "https", "http":
		return g.pin(ctx, u)
	case "file":
		return g.goToFile()
	}
	// The person's ssh has the person's home, keys, agent and known hosts, git
	// has not. (Where ssh finds its home by the account alone it makes no
	// difference.) It asks nothing, and takes nothing of ours to the other side.
	g.askEnv = append(g.askEnv, inherited("SSH_AUTH_SOCK")...)
	if home, err := os.UserHomeDir(); err == nil {
		g.askEnv = append(g.askEnv, "LOADOUT_SSH_HOME="+home)
	}
	g.askEnv = append(g.askEnv, "GIT_SSH_VARIANT=ssh",
		`GIT_SSH_COMMAND=HOME="$LOADOUT_SSH_HOME" ssh -oBatchMode=yes -oConnectTimeout=30 -oForwardAgent=no -oClearAllForwardings=yes`)
	return nil
}

// goToFile lets git read a repository of this machine that another user owns: the
// person named it, and to read is all that happens. The other side of the fetch
// runs in that repository, and reads its configuration; it takes no options of
// ours, so what it may do is in the file that stands for the person's.
func (g *gitTrip) goToFile() error {
	config := filepath.Join(g.home(), ".gitconfig")
	const text = "[safe]\n\tdirectory = *\n[protocol]\n\tallow = never\n[core]\n\tfsmonitor = false\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	g.askEnv = append(g.askEnv, "GIT_CONFIG_GLOBAL="+config)
	return nil
}

// pin checks the host of an address, and has git connect to the addresses of it that
// were found, or to the proxy that the person has. (Git before 2.37 looks the name
// up again.)
func (g *gitTrip) pin(ctx context.Context, u *url.URL) error {
	host := hostName(u.Hostname())
	through, err := g.client.proxy(&http.Request{URL: u})
	if err != nil {
		return errors.New("the address of the proxy in the environment cannot be read")
	}
	if ca := os.Getenv("SSL_CERT_FILE"); ca != "" { // as Go does
		g.asking = append(g.asking, "-c", "http.sslCAInfo="+ca)
	}
	literal, notName := netip.ParseAddr(host)
	if through != nil {
		g.askEnv = append(g.askEnv, "http_proxy="+through.String(), "https_proxy="+through.String())
		if notName != nil {
			return nil
		}
		return g.client.reachable(ctx, host, literal)
	}
	addrs, err := g.client.allowed(ctx, host)
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
	g.asking = append(g.asking, "-c", "http.curloptResolve="+host+":"+port+":"+strings.Join(pinned, ","))
	return nil
}

// gitRun is one command of git.
type gitRun struct {
	args   []string
	remote bool   // it asks the remote
	watch  string // a directory that must not grow above Limits.Download
	// read reads what it prints, all or up to an error, which ends the command;
	// without, that is dropped.
	read func(io.Reader) error
}

// command is git with its arguments, in a session of its own: no terminal, and all
// that it starts ends with it.
func (g *gitTrip) command(ctx context.Context, r gitRun) *exec.Cmd {
	args := append([]string{"--no-pager"}, g.options...)
	env := g.env
	if r.remote {
		args = append(args, g.asking...)
		env = append(env[:len(env):len(env)], g.askEnv...)
	}
	if r.args[0] != "init" && r.args[0] != "ls-remote" {
		args = append(args, "--git-dir="+g.repo())
	}
	cmd := exec.CommandContext(ctx, g.program, append(args, r.args...)...)
	cmd.Dir, cmd.Env = g.home(), env
	apart(cmd)
	cmd.WaitDelay = 5 * time.Second // for what has left the group, and holds our pipes
	return cmd
}

// run runs a command to its end. What it prints for people is in the error, cleaned.
func (g *gitTrip) run(ctx context.Context, r gitRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := g.command(ctx, r)
	said := &gitSaid{tell: g.client.progress}
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
			_, err = io.Copy(io.Discard, out) // or it would wait for us as we for it
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
		return said.failed(r.args[0], err)
	}
	if r.watch != "" {
		return g.tooLarge(r.watch)
	}
	return nil
}

// watch ends a command whose directory grows above the limit.
func (g *gitTrip) watch(dir string, cancel context.CancelCauseFunc, ended <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if err := g.tooLarge(dir); err != nil {
				cancel(err)
				return
			}
		}
	}
}

// tooLarge is an error where a directory is above the limit.
func (g *gitTrip) tooLarge(dir string) error {
	if most := g.client.opts.Limits.Download; sizeOf(dir) > most {
		return &TooLargeError{shownURL(g.url), most}
	}
	return nil
}

// sizeOf is how many bytes the files of a directory have.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if i, err := d.Info(); err == nil {
				n += i.Size()
			}
		}
		return nil // what is gone again does not count
	})
	return n
}

// shownURL is the address of a repository as errors have it: without user, password
// and query, on one line.
func shownURL(address string) string {
	scheme, _, ok := strings.Cut(address, "://")
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		return place(u)
	} else if ok {
		return skill.OneLine(strings.ToValidUTF8(scheme, "�")) + "://…"
	}
	return fmt.Sprintf("%.500s", strings.Trim(strconv.Quote(address), `"`))
}
