package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/skill"
)

const (
	// fetchedRef is the local ref that points to the fetched commit.
	fetchedRef = "refs/loadout/got"
	// maxDepth is the maximum number of commits to fetch per branch if a server
	// does not serve commits by name.
	maxDepth = 1000
)

// openGit fetches a single commit into an empty repository and reads files from
// there. Nothing is checked out, so filters, attributes and symlinks of the
// repository have no effect.
func (c *Client) openGit(ctx context.Context, l Location) (*Collection, error) {
	if err := l.check(); err != nil {
		return nil, &LocationError{Text: shownURL(l.URL), Reason: err.Error()}
	}
	program, err := c.gitProgram()
	if err != nil {
		return c.openHosted(ctx, l)
	}
	g, err := c.newGit(ctx, program, l)
	if err != nil {
		return nil, openError(l, err)
	}
	o, err := g.collect(ctx)
	if err != nil {
		return nil, openError(l, errors.Join(contextError(ctx, err), g.close()))
	}
	return o, nil
}

func openError(l Location, err error) error {
	return fmt.Errorf("open %s: %w", shownURL(l.URL), err)
}

func (g *gitSession) collect(ctx context.Context) (*Collection, error) {
	rev, problems, err := g.fetch(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := g.list(ctx, rev.Commit)
	if err != nil {
		return nil, err
	}
	t, err := newTree(entries)
	if err != nil {
		return nil, err
	}
	o, err := g.client.collect(ctx, g.location, rev, t, g.close)
	if err != nil {
		return nil, err
	}
	o.Problems = append(problems, o.Problems...)
	return o, nil
}

// Latest returns the commit that l's ref currently points to, and the tags of
// its repository. It fetches no files. If l is not a repository, the revision
// is empty. Without the git program, only repositories with https URLs are
// supported; for other repositories Latest returns [ErrNoGit]. Other errors are
// those of [Client.Open].
func (c *Client) Latest(ctx context.Context, l Location) (*Revision, error) {
	if l.Kind != Git {
		return &Revision{}, nil
	}
	if err := c.checkTrusted(l); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, &LocationError{Text: shownURL(l.URL), Reason: err.Error()}
	}
	ctx, cancel := c.startSession(ctx, l)
	defer cancel()
	refs, err := c.refs(ctx, l)
	if err != nil {
		return nil, openError(l, contextError(ctx, err))
	}
	rev := &Revision{Tags: refs.tags()}
	if isCommit(l.Ref) {
		rev.Commit = l.Ref
		return rev, nil
	}
	want, err := refs.find(l)
	if err != nil {
		return nil, openError(l, err)
	}
	rev.Ref, rev.Commit = want.name, want.commit
	return rev, nil
}

// refs lists the branches and tags of a repository. It runs git only if the URL
// is not http or https.
func (c *Client) refs(ctx context.Context, l Location) (*gitRefs, error) {
	if isHTTP(l.URL) {
		refs, _, err := (&gitSession{client: c, location: l, url: l.URL}).listAdvertised(ctx)
		return refs, err
	}
	program, err := c.gitProgram()
	if err != nil {
		return nil, err
	}
	g, err := c.newGit(ctx, program, l)
	if err != nil {
		return nil, err
	}
	refs, err := g.refs(ctx)
	return refs, errors.Join(err, g.close())
}

// fetch fetches the requested commit without its history.
func (g *gitSession) fetch(ctx context.Context) (Revision, []catalog.Problem, error) {
	if commit := g.location.Ref; isCommit(commit) {
		rev, err := g.fetchCommit(ctx, commit)
		return rev, g.problems, err
	}
	refs, err := g.refs(ctx)
	if err != nil {
		return Revision{}, nil, err
	}
	want, err := refs.find(g.location)
	if err != nil {
		return Revision{}, nil, err
	}
	if want.also != "" {
		g.addProblem("ref-twice", fmt.Sprintf("%s is a branch and a tag; the branch is used", printable.OneLine(g.location.Ref)), "write @"+want.also+" for the tag")
	}
	if want.name == "" { // a commit that some ref has, or a HEAD without a branch
		rev, err := g.fetchCommit(ctx, want.commit)
		return rev, g.problems, err
	}
	if err := g.init(ctx, want.commit); err != nil {
		return Revision{}, nil, err
	}
	if err := g.fetchRef(ctx, "--depth=1", "+"+want.name+":"+fetchedRef); err != nil {
		return Revision{}, nil, err
	}
	commit, err := g.commit(ctx, fetchedRef)
	return Revision{Ref: want.name, Commit: commit}, g.problems, err
}

// fetchCommit fetches a commit by its full name. If the server does not serve
// commits by name, it fetches the branches and tags with up to maxDepth commits
// of history.
func (g *gitSession) fetchCommit(ctx context.Context, commit string) (Revision, error) {
	if err := g.init(ctx, commit); err != nil {
		return Revision{}, err
	}
	err := g.fetchRef(ctx, "--depth=1", "+"+commit+":"+fetchedRef)
	if gitFailureReason(err) == notAdvertised {
		err = g.fetchRef(ctx, "--depth="+strconv.Itoa(maxDepth), "+refs/heads/*:refs/loadout/heads/*", "+refs/tags/*:refs/loadout/tags/*")
	}
	if err != nil && gitFailureReason(err) != notAdvertised && gitFailureReason(err) != missingRef {
		return Revision{}, err
	}
	found, err := g.commit(ctx, commit)
	if err != nil {
		return Revision{}, &NotFoundError{
			What: "commit " + commit + " in " + shownURL(g.url),
			Hint: fmt.Sprintf("the commit must belong to a branch or tag; if the server does not serve commits by name, only the last %d commits are searched", maxDepth),
		}
	}
	return Revision{Commit: found}, nil
}

// fetchRef fetches the given refspecs from the remote.
func (g *gitSession) fetchRef(ctx context.Context, depth string, specs ...string) error {
	return g.withRemote(ctx, func() error {
		args := []string{"fetch", depth, "--no-tags", "--no-recurse-submodules", "--no-auto-gc", "--no-write-fetch-head", "--progress", "--", g.url}
		return g.run(ctx, gitCommand{args: append(args, specs...), remote: true, watch: g.repo()})
	})
}

// init creates the empty repository. Its object format is SHA-1 or SHA-256,
// depending on the length of the object name sample.
func (g *gitSession) init(ctx context.Context, sample string) error {
	format := "sha1"
	if len(sample) == 64 {
		format = "sha256"
	}
	return g.run(ctx, gitCommand{args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format, "--", g.repo()}})
}

// commit returns the full name of the commit that name refers to in the local
// repository.
func (g *gitSession) commit(ctx context.Context, name string) (string, error) {
	var out []byte
	err := g.run(ctx, gitCommand{
		args: []string{"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"},
		read: func(r io.Reader) (err error) { out, err = io.ReadAll(io.LimitReader(r, 200)); return err },
	})
	if err != nil {
		return "", fmt.Errorf("fetched object is not a commit: %w", err)
	}
	commit := string(bytes.TrimSpace(out))
	if !isCommit(commit) {
		return "", fmt.Errorf("invalid commit name from git: %q", commit)
	}
	return commit, nil
}

// list returns the files in a commit.
func (g *gitSession) list(ctx context.Context, commit string) ([]entry, error) {
	var out []entry
	err := g.run(ctx, gitCommand{
		// With -t, git also lists directories. Without it, a small repository
		// could hide a billion paths of an empty directory.
		args: []string{"ls-tree", "-r", "-t", "-z", "-l", "--full-tree", commit},
		read: func(r io.Reader) (err error) { out, err = g.parseTree(r); return err },
	})
	return out, err
}

func (g *gitSession) parseTree(r io.Reader) ([]entry, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxTreePath+1<<10)
	lines.Split(splitNUL)
	var out []entry
	dirs, length := 0, 0
	for lines.Scan() {
		e, dir, err := g.parseEntry(lines.Text())
		if err != nil {
			return nil, err
		}
		if length += len(e.path); length > maxTreePaths {
			return nil, fmt.Errorf("paths too long (limit %d bytes in total)", maxTreePaths)
		}
		if dir {
			if dirs++; dirs > maxTreeDirs {
				return nil, fmt.Errorf("too many directories (limit %d)", maxTreeDirs)
			}
			continue
		}
		if out = append(out, e); len(out) > g.client.opts.Limits.Entries {
			return nil, fmt.Errorf("too many files (limit %d)", g.client.opts.Limits.Entries)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("path too long (limit %d bytes)", maxTreePath)
	}
	return out, lines.Err()
}

// parseEntry parses a line of git ls-tree: "100644 blob ID SIZE\tPATH".
func (g *gitSession) parseEntry(line string) (e entry, dir bool, err error) {
	about, name, ok := strings.Cut(line, "\t")
	fields := strings.Fields(about)
	if !ok || len(fields) != 4 {
		return entry{}, false, fmt.Errorf("invalid entry in file list from git: %q", line)
	}
	mode, kind, id := fields[0], fields[1], fields[2]
	e.path = name
	switch {
	case kind == "tree":
		return e, true, nil
	case kind == "commit":
		e.kind = submoduleEntry
		return e, false, nil
	case mode == "120000":
		e.kind = linkEntry
	case strings.HasPrefix(mode, "100"):
		e.executable = strings.HasSuffix(mode, "755")
	default:
		e.kind, e.note = specialEntry, "unknown git file mode "+mode
	}
	if e.size, err = strconv.ParseInt(fields[3], 10, 64); err != nil || e.size < 0 {
		return entry{}, false, fmt.Errorf("invalid entry in file list from git: %q", line)
	}
	e.open = func() (io.ReadCloser, error) { return g.objects.open(id, e.size) }
	return e, false, nil
}

func splitNUL(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}

// gitProgram returns the path of the git program.
func (c *Client) gitProgram() (string, error) {
	switch c.opts.Git {
	case "-":
		return "", ErrNoGit
	case "":
		p, err := exec.LookPath("git")
		if err != nil {
			return "", ErrNoGit
		}
		return filepath.Abs(p)
	}
	return c.opts.Git, nil
}

// close stops the process that reads objects, and removes the repository. It
// may be called more than once.
func (g *gitSession) close() error {
	g.objects.close()
	return g.dir.remove()
}

func (g *gitSession) addProblem(code, message, fix string) {
	g.problems = append(g.problems, catalog.Problem{
		Path:       shownURL(g.location.URL),
		Diagnostic: skill.Diagnostic{Severity: skill.Warning, Code: code, Message: message, Fix: fix},
	})
}
