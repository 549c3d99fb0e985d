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

// knownHost is a Git hosting service that serves its repositories as archives.
type knownHost struct {
	name string // host name in the URL of a repository
	// archive is the URL of an archive, with the placeholders OWNER, REPO and
	// REF.
	archive string
	head    string // ref of the default branch
}

var knownHosts = []knownHost{
	{"github.com", "https://codeload.github.com/OWNER/REPO/tar.gz/REF", "HEAD"},
	{"gitlab.com", "https://gitlab.com/OWNER/REPO/-/archive/REF/REPO.tar.gz", "HEAD"},
	{"codeberg.org", "https://codeberg.org/api/v1/repos/OWNER/REPO/archive/REF.tar.gz", "HEAD"},
	{"bitbucket.org", "https://bitbucket.org/OWNER/REPO/get/REF.tar.gz", "HEAD"},
}

// openHosted opens a repository without git, from an archive served by a known
// host. The commit is the one recorded in the archive, or "". A .gitattributes
// file can omit or change files in such an archive, so the digest of a skill
// may differ from a fetch with git. If the host is unknown, the error wraps
// [ErrNoGit].
func (c *Client) openHosted(ctx context.Context, l Location) (*Collection, error) {
	u, err := url.Parse(l.URL)
	if err != nil {
		return nil, fmt.Errorf("open repository: invalid URL: %w", ErrNoGit)
	}
	for _, h := range c.hosts {
		if u.Scheme == "https" && strings.EqualFold(u.Host, h.name) {
			return c.openMirror(ctx, l, h.archiveURL(u, l.Ref))
		}
	}
	return nil, fmt.Errorf("open %s: %w", cleanAddress(u), ErrNoGit)
}

// archiveURL returns the URL of the archive of the repository u at ref.
func (h knownHost) archiveURL(u *url.URL, ref string) string {
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

// openMirror opens a repository from the archive at a URL.
func (c *Client) openMirror(ctx context.Context, l Location, archive string) (*Collection, error) {
	if t, ok := ctx.Value(sessionKey{}).(*httpSession); ok {
		t.mirror = strings.ToLower(urlHost(archive))
	}
	d, err := c.download(ctx, archive)
	if err != nil {
		if missing, ok := errors.AsType[*NotFoundError](err); ok {
			missing.What = "repository " + l.displayURL()
			if l.Ref != "" {
				missing.What += fmt.Sprintf(" with the branch, tag or commit %q", l.Ref)
			}
		}
		return nil, err
	}
	o, err := c.collectArchive(ctx, l, d, d.size, d.Close)
	if err != nil {
		return nil, err
	}
	if got := o.Revision.Commit; isCommit(l.Ref) && got != l.Ref {
		err := fmt.Errorf("open %s: commit mismatch: want %s, got %s", l.displayURL(), l.Ref, cmp.Or(got, "none"))
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}
