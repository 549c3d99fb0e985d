package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// knownHost is a host of repositories that gives each of them as an archive.
type knownHost struct {
	name string // of the host in the URL of a repository
	// archive is the URL of the archive of OWNER/REPO at REF.
	archive string
	head    string // what stands for the default branch there
}

var knownHosts = []knownHost{
	{"github.com", "https://codeload.github.com/OWNER/REPO/tar.gz/REF", "HEAD"},
	{"gitlab.com", "https://gitlab.com/OWNER/REPO/-/archive/REF/REPO.tar.gz", "HEAD"},
	{"codeberg.org", "https://codeberg.org/api/v1/repos/OWNER/REPO/archive/REF.tar.gz", "HEAD"},
	{"bitbucket.org", "https://bitbucket.org/OWNER/REPO/get/REF.tar.gz", "HEAD"},
}

// lookHosted looks at a repository without git, by the archive that a known host
// gives of it. The commit is what the archive says it is, "" where it does not. A
// .gitattributes of the repository can leave files out of such an archive, or fill
// something in, so the digest of a skill may differ from what git gives. The error
// wraps [ErrNoGit] where the host is not known.
func (c *Client) lookHosted(ctx context.Context, l Location) (*Offer, error) {
	u, err := url.Parse(l.URL)
	if err != nil {
		return nil, fmt.Errorf("look at a repository: its URL cannot be read: %w", ErrNoGit)
	}
	for _, h := range c.hosts {
		if u.Scheme == "https" && strings.EqualFold(u.Host, h.name) {
			return c.lookMirror(ctx, l, h.of(u, l.Ref))
		}
	}
	return nil, fmt.Errorf("look at %s: %w", place(u), ErrNoGit)
}

// of is the URL of the archive of the repository at u, at ref.
func (h knownHost) of(u *url.URL, ref string) string {
	owner, repo := path.Split(strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"))
	return strings.NewReplacer(
		"OWNER", escapeParts(strings.Trim(owner, "/")),
		"REPO", escapeParts(repo),
		"REF", escapeParts(cmp.Or(ref, h.head)),
	).Replace(h.archive)
}

func escapeParts(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// lookMirror looks at the archive of a repository.
func (c *Client) lookMirror(ctx context.Context, l Location, from string) (*Offer, error) {
	if t, ok := ctx.Value(tripKey{}).(*trip); ok {
		t.mirror = strings.ToLower(hostOf(from))
	}
	d, err := c.download(ctx, from)
	if err != nil {
		if missing, ok := errors.AsType[*NotFoundError](err); ok {
			missing.What = "repository " + l.where()
			if l.Ref != "" {
				missing.What += fmt.Sprintf(" with the branch, tag or commit %q", l.Ref)
			}
		}
		return nil, err
	}
	o, err := c.offerArchive(ctx, l, d, d.size, d.Close)
	if err != nil {
		return nil, err
	}
	if got := o.Revision.Commit; isCommit(l.Ref) && got != l.Ref {
		err := fmt.Errorf("look at %s: the commit %s was asked for, and what came says that it is %s", l.where(), l.Ref, cmp.Or(got, "none"))
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}
