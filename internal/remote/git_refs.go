package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/printable"
)

const (
	maxRefs     = 200_000  // branches and tags of a repository
	maxRefBytes = 32 << 20 // size of the list of refs, including those that are neither branches nor tags
)

// gitRefs holds the branches and tags of a repository.
type gitRefs struct {
	head    string            // full name of the branch of HEAD, or ""
	objects map[string]string // object by full ref name; for annotated tags also their commit by the name with ^{}
}

// resolvedRef holds the ref and commit to fetch for a location.
type resolvedRef struct {
	name   string // full name; "" for a HEAD or commit without a ref
	commit string
	also   string // full name of another ref with the same short name, or ""
}

// refs lists the branches and tags of the remote, following a redirect.
func (g *gitSession) refs(ctx context.Context) (*gitRefs, error) {
	if !isHTTP(g.url) {
		return g.listRefs(ctx)
	}
	refs, at, err := g.listAdvertised(ctx)
	if err != nil {
		return nil, err
	}
	if asked, err := url.Parse(g.serviceURL()); err != nil || at.String() == asked.String() {
		return refs, err
	}
	return refs, g.moveTo(ctx, at)
}

// listRefs lists the branches and tags with git ls-remote.
func (g *gitSession) listRefs(ctx context.Context) (*gitRefs, error) {
	args := []string{"ls-remote", "--symref"}
	if g.location.Ref != "" && !strings.HasPrefix(g.location.Ref, "refs/") {
		args = append(args, "--heads", "--tags") // the server does not send other refs
	}
	var out *gitRefs
	err := g.withRemote(ctx, func() error {
		return g.run(ctx, gitCommand{
			args:   append(slices.Clone(args), "--", g.url),
			remote: true,
			read:   func(r io.Reader) (err error) { out, err = parseRefs(r, g.location.Ref); return err },
		})
	})
	return out, err
}

// parseRefs parses the output of git ls-remote. Each line has an object, a tab
// and a name. The line for the target of HEAD comes before HEAD. Refs that are
// neither branches nor tags are dropped, except the one named by wanted.
func parseRefs(r io.Reader, wanted string) (*gitRefs, error) {
	limited := &io.LimitedReader{R: r, N: maxRefBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, 64<<10)
	out := &gitRefs{objects: map[string]string{}}
	for lines.Scan() {
		id, name, _ := strings.Cut(lines.Text(), "\t")
		if target, ok := strings.CutPrefix(id, "ref: "); ok && name == "HEAD" {
			out.setHead(target)
			continue
		}
		if err := out.add(id, name, wanted); err != nil {
			return nil, err
		}
	}
	if limited.N <= 0 {
		return nil, errRefBytes
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, errors.New("branch or tag name too long")
	}
	return out, lines.Err()
}

var errRefBytes = fmt.Errorf("list of branches and tags too large (limit %d bytes)", maxRefBytes)

func (r *gitRefs) setHead(target string) {
	if checkRef(target) == nil {
		r.head = target
	}
}

// add adds a ref. It drops names that git does not accept, because they cannot
// be requested.
func (r *gitRefs) add(id, name, wanted string) error {
	plain := strings.TrimSuffix(name, "^{}")
	if !isCommit(id) || checkRef(plain) != nil {
		return nil
	}
	if name != "HEAD" && (wanted == "" || plain != wanted) && !strings.HasPrefix(name, "refs/heads/") && !strings.HasPrefix(name, "refs/tags/") {
		return nil
	}
	if r.objects[name] = id; len(r.objects) > maxRefs {
		return fmt.Errorf("too many branches and tags (limit %d)", maxRefs)
	}
	return nil
}

// commit returns the commit of a ref. For an annotated tag, that is the commit
// the tag points to.
func (r *gitRefs) commit(name string) (string, bool) {
	if peeled, ok := r.objects[name+"^{}"]; ok {
		return peeled, true
	}
	id, ok := r.objects[name]
	return id, ok
}

// tags maps the names of all tags to their commits.
func (r *gitRefs) tags() map[string]string {
	out := map[string]string{}
	for full := range r.objects {
		if name, ok := strings.CutPrefix(full, "refs/tags/"); ok && !strings.HasSuffix(name, "^{}") {
			out[name], _ = r.commit(full)
		}
	}
	return out
}

// find returns the ref and commit to fetch for a location. A branch takes
// precedence over a tag with the same name.
func (r *gitRefs) find(l Location) (resolvedRef, error) {
	if l.Ref == "" {
		return r.findHead(l)
	}
	var found []resolvedRef
	names := []string{"refs/heads/" + l.Ref, "refs/tags/" + l.Ref, "refs/" + l.Ref}
	if strings.HasPrefix(l.Ref, "refs/") {
		names = []string{l.Ref}
	}
	for _, name := range names {
		if commit, ok := r.commit(name); ok {
			found = append(found, resolvedRef{name: name, commit: commit})
		}
	}
	switch {
	case len(found) > 1:
		found[0].also = found[1].name
		return found[0], nil
	case len(found) == 1:
		return found[0], nil
	case shortCommit.MatchString(l.Ref):
		return r.findShort(l)
	}
	return resolvedRef{}, r.notFound(l)
}

func (r *gitRefs) findHead(l Location) (resolvedRef, error) {
	if commit, ok := r.commit(r.head); ok {
		return resolvedRef{name: r.head, commit: commit}, nil
	}
	if commit, ok := r.objects["HEAD"]; ok {
		return resolvedRef{commit: commit}, nil
	}
	hint := "the repository is empty"
	if len(r.objects) > 0 {
		hint = "write @ and a branch"
	}
	return resolvedRef{}, &NotFoundError{What: "default branch in " + shownURL(l.URL), Hint: hint}
}

// findShort finds a commit by abbreviated name among the commits that refs
// point to.
func (r *gitRefs) findShort(l Location) (resolvedRef, error) {
	commit := ""
	for name := range r.objects {
		id, _ := r.commit(strings.TrimSuffix(name, "^{}"))
		if !strings.HasPrefix(id, l.Ref) {
			continue
		}
		if commit != "" && id != commit {
			return resolvedRef{}, fmt.Errorf("ambiguous commit %s: use the full hash", l.Ref)
		}
		commit = id
	}
	if commit == "" {
		e := r.notFound(l)
		e.Hint = "if it is a commit, write its full name from git rev-parse"
		return resolvedRef{}, e
	}
	return resolvedRef{commit: commit}, nil
}

// notFound returns an error for an unknown ref and suggests similar names.
func (r *gitRefs) notFound(l Location) *NotFoundError {
	e := &NotFoundError{What: fmt.Sprintf("branch or tag %q in %s", l.Ref, shownURL(l.URL))}
	if len(r.objects) > 20_000 {
		return e // comparing so many names would take too long
	}
	most := max(2, len(l.Ref)/3)
	far := map[string]int{}
	for full := range r.objects {
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(full, "^{}"), "refs/heads/"), "refs/tags/")
		if l.Dir != "" && strings.HasPrefix(l.Ref+"/"+l.Dir+"/", name+"/") {
			rest := strings.Trim(strings.TrimPrefix(l.Ref+"/"+l.Dir, name), "/")
			e.Hint = "for a branch or tag with slashes in its name write " + Location{Kind: Git, URL: l.URL, Dir: rest, Ref: name}.String()
		}
		if d := editdistance.Distance(editdistance.Normalize(l.Ref), editdistance.Normalize(name), most); d <= most && name != "HEAD" {
			far[name] = d
		}
	}
	for name := range far {
		e.Suggestions = append(e.Suggestions, printable.OneLine(name))
	}
	slices.SortFunc(e.Suggestions, func(a, b string) int {
		if far[a] != far[b] {
			return far[a] - far[b]
		}
		return strings.Compare(a, b)
	})
	e.Suggestions = e.Suggestions[:min(3, len(e.Suggestions))]
	return e
}

// isCommit reports whether a ref is the full name of a git object.
func isCommit(ref string) bool {
	return (len(ref) == 40 || len(ref) == 64) && hexName.MatchString(ref)
}

var (
	hexName     = lazyregexp.New(`^[0-9a-f]+$`)
	shortCommit = lazyregexp.New(`^[0-9a-f]{4,63}$`)
)
