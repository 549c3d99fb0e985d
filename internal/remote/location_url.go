package remote

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// errSecret is returned for a location that must not be repeated in messages.
var errSecret = errors.New("location contains a password or token, which could leak into logs and the shell history; " +
	"remove it and use a git credential helper, GITHUB_TOKEN or GITLAB_TOKEN")

// repositoryDepth maps each known host to the number of path elements of a
// repository. 0 means two or more.
var repositoryDepth = map[string]int{"github.com": 2, "gitlab.com": 0, "codeberg.org": 2, "bitbucket.org": 2}

// isHosted reports whether a location without a scheme starts with a known
// host.
func isHosted(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	_, ok := repositoryDepth[strings.TrimPrefix(strings.ToLower(host), "www.")]
	return ok
}

// parseWeb parses a web address without its scheme. If kind is "", it is
// derived from the address.
func parseWeb(scheme, rest string, kind Kind) (Location, error) {
	if i := strings.IndexAny(rest, "?#"); i >= 0 && isHosted(rest) && !isArchive(rest[:i]) {
		rest = rest[:i] // display options and the position on the page
	}
	whole, err := cleanURL(scheme + "://" + rest)
	if err != nil {
		return Location{}, err
	}
	p, known := whole.EscapedPath(), isHosted(whole.Host)
	switch {
	case kind == Index:
		return fileLocation(Index, whole, "")
	case known && kind == Git:
		return hostedURL(whole)
	case kind == Git:
		return parseRepo(scheme+"://", rest)
	case p == "/" || strings.HasPrefix(p, "/.well-known/") || strings.Contains(p, "/.well-known/agent-skills") || strings.Contains(p, "/.well-known/skills"):
		if known && p == "/" {
			return Location{}, fmt.Errorf("missing repository; write https://%s/owner/repo", whole.Host)
		}
		return fileLocation(Index, whole, "")
	}
	if !isPage(whole) {
		at, dir, _ := strings.Cut(p, "//")
		if isArchive(at) {
			whole.Path, whole.RawPath = unescapedPath(at), at
			return fileLocation(Archive, whole, dir)
		}
		if strings.EqualFold(path.Base(p), "SKILL.md") {
			return fileLocation(File, whole, "")
		}
	}
	if known {
		return hostedURL(whole)
	}
	if l, ok, err := parsePage(whole); ok || err != nil {
		return l, err
	}
	return parseRepo(scheme+"://", rest)
}

// fileLocation returns a location for a URL that is fetched unchanged.
func fileLocation(kind Kind, u *url.URL, dir string) (Location, error) {
	if u.Fragment != "" {
		return Location{}, errors.New("file URL must not contain #")
	}
	if u.RawQuery != "" && kind == Index {
		return Location{}, errors.New("index URL must not contain ?")
	}
	return Location{Kind: kind, URL: u.String(), Dir: dir}.decode(url.PathUnescape)
}

// isPage reports whether an address is that of a web page that shows a file,
// not of the file itself.
func isPage(u *url.URL) bool {
	names := strings.Split(u.EscapedPath(), "/") // the first is empty
	if strings.Contains(u.EscapedPath(), "/-/tree/") || strings.Contains(u.EscapedPath(), "/-/blob/") {
		return true
	}
	switch u.Host {
	case "github.com":
		return len(names) > 3 && (names[3] == "tree" || names[3] == "blob")
	case "bitbucket.org":
		return len(names) > 3 && names[3] == "src"
	}
	return len(names) > 4 && names[3] == "src" && slices.Contains([]string{"branch", "tag", "commit"}, names[4])
}

// hostedURL parses the address of a repository on a known host.
func hostedURL(u *url.URL) (Location, error) {
	if l, ok, err := parsePage(u); ok || err != nil {
		return l, err
	}
	return parseHosted(u.Host, strings.TrimPrefix(u.EscapedPath(), "/"), url.PathUnescape)
}

// parsePage parses the browser address of a repository page. ok reports whether
// u is such a page. The ref ends at the next slash, because a ref with slashes
// cannot be distinguished from a directory.
func parsePage(u *url.URL) (l Location, ok bool, err error) {
	if !isPage(u) {
		return Location{}, false, nil
	}
	p := strings.TrimPrefix(u.EscapedPath(), "/")
	repo, rest := "", ""
	for _, word := range []string{"/-/tree/", "/-/blob/"} {
		if before, after, found := strings.Cut(p, word); found && repo == "" {
			repo, rest = before, after
		}
	}
	if repo == "" {
		names := strings.SplitN(p, "/", 4)
		if len(names) < 4 {
			return Location{}, false, errors.New("missing branch, tag or commit after the repository")
		}
		repo, rest = names[0]+"/"+names[1], names[3]
		if u.Host != "github.com" && u.Host != "bitbucket.org" {
			_, rest, _ = strings.Cut(rest, "/") // branch, tag or commit
		}
	}
	if isArchive(p) {
		return Location{}, false, errors.New("URL is a web page for an archive; use the URL of the Raw or Download button")
	}
	l = Location{Kind: Git, URL: u.Scheme + "://" + u.Host + "/" + strings.TrimSuffix(repo, ".git") + ".git"}
	if isHosted(u.Host) {
		if l.URL, err = hostedRepo(u.Host, repo); err != nil {
			return Location{}, false, err
		}
	}
	l.Ref, l.Dir, _ = strings.Cut(rest, "/")
	if l.Ref == "" {
		return Location{}, false, errors.New("missing branch, tag or commit after the repository")
	}
	l, err = l.decode(url.PathUnescape)
	return l, err == nil, err
}

// parseHosted parses owner/repo, owner/repo@ref and owner/repo/dir@ref on a
// known host. On hosts with longer repository paths, a directory follows a
// double slash.
func parseHosted(host, p string, unescape func(string) (string, error)) (Location, error) {
	host = strings.TrimPrefix(host, "www.")
	l := Location{Kind: Git}
	repo, tail, double := strings.Cut(p, "//")
	switch names := strings.SplitN(repo, "/", 3); {
	case double:
		l.Dir, l.Ref = cutRef(tail, true)
	case repositoryDepth[host] == 2 && len(names) == 3 && names[2] != "" && !strings.Contains(names[1], "@"):
		repo = names[0] + "/" + names[1]
		l.Dir, l.Ref = cutRef(names[2], true)
	default:
		repo, l.Ref = cutRef(repo, false)
	}
	var err error
	if l.URL, err = hostedRepo(host, repo); err != nil {
		return Location{}, err
	}
	return l.decode(unescape)
}

// hostedRepo returns the address of repository owner/repo on a known host.
func hostedRepo(host, repo string) (string, error) {
	repo = strings.TrimSuffix(strings.TrimSuffix(repo, "/"), ".git")
	names := strings.Split(repo, "/")
	if len(names) < 2 || repositoryDepth[host] == 2 && len(names) != 2 {
		return "", fmt.Errorf("missing repository; write https://%s/owner/repo", host)
	}
	for _, name := range names {
		if !hostedName.MatchString(name) || strings.Trim(name, ".") == "" {
			return "", fmt.Errorf("%q is not a user or repository name on %s; write ./ before a folder", name, host)
		}
	}
	return "https://" + host + "/" + repo + ".git", nil
}

// hostedName matches names of users and repositories on known hosts.
var hostedName = lazyregexp.New(`^[A-Za-z0-9._][A-Za-z0-9._-]{0,127}$`)

// cleanURL parses and normalizes an absolute URL: scheme and host in lower
// case, no default port, no empty query. It applies the checks of checkURL that
// are independent of the kind.
func cleanURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("invalid URL") // the error of url.Parse would contain a password
	}
	if _, has := u.User.Password(); has || u.User != nil && u.Scheme != "ssh" {
		return nil, errSecret
	}
	if u.Opaque != "" {
		return nil, errors.New("invalid URL: missing // after the scheme")
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if a, err := netip.ParseAddr(host); err == nil {
		if host = a.Unmap().String(); a.Unmap().Is6() {
			host = "[" + host + "]"
		}
	}
	if port != "" && !(u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" || u.Scheme == "ssh" && port == "22") {
		host += ":" + port
	}
	u.Host, u.ForceQuery = host, false
	if u.Scheme == "https" && isHosted(host) {
		u.Host = strings.TrimPrefix(host, "www.")
	}
	if u.Scheme == "file" && host == "localhost" {
		u.Host = ""
	}
	if u.Path == "" && u.Scheme != "ssh" && u.Scheme != "file" {
		u.Path = "/"
	}
	if u.RawFragment != "" || u.Fragment != "" {
		if !isPage(u) {
			return nil, errors.New("repository URL must not contain #; write @ before a branch, tag or commit")
		}
		u.Fragment, u.RawFragment = "", "" // position on a page
	}
	// The path stays as written: decoding and encoding it could change it.
	u.RawPath = u.EscapedPath()
	return u, nil
}

func unescapedPath(p string) string {
	out, err := url.PathUnescape(p)
	if err != nil {
		return p
	}
	return out
}

// checkURL returns an error if the address of a location is invalid.
func checkURL(text string, kind Kind) error {
	if !strings.Contains(text, "://") {
		return checkSCP(text)
	}
	u, err := cleanURL(text)
	if err != nil {
		return err
	}
	if u.String() != text {
		return errors.New("address is not in canonical form; write " + u.Redacted())
	}
	p := unescapedPath(u.EscapedPath())
	switch {
	case u.Scheme != "https" && u.Scheme != "http" && kind != Git:
		return errors.New("invalid URL; write https:// before the host")
	case u.Scheme == "file" && u.Host != "":
		return errors.New("file URL must not contain a host; write file:///path")
	case u.Scheme == "http" && !isLocalhost(u.Hostname()):
		return errors.New("data sent over http can be modified in transit; write https://")
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "file":
		return fmt.Errorf("unsupported scheme %q; write https://, ssh:// or file://", u.Scheme)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("path contains invisible characters")
	case strings.Contains(p, "/../") || strings.HasSuffix(p, "/..") || strings.Contains(p, "/./") || strings.HasSuffix(p, "/."):
		return errors.New("path contains . or ..; write the resolved path")
	case strings.HasPrefix(p, "/-"):
		return errors.New("path starts with -")
	case kind == Git && p == "/", kind == Git && p == "":
		return errors.New("missing repository path after the host")
	case kind == Git && u.RawQuery != "":
		return errors.New("repository URL must not contain ?; write @ before a branch, tag or commit")
	case strings.Contains(u.EscapedPath(), "//"):
		return errors.New("path contains //, which is only allowed before a directory in a repository")
	case kind == Git && containsRef(u.EscapedPath()):
		return errors.New("path contains @, which starts a branch, tag or commit; write %40 instead")
	}
	if u.Scheme != "file" {
		if err := checkHost(u.Hostname(), u.Port()); err != nil {
			return err
		}
	}
	if name := u.User.Username(); u.User != nil && !userName.MatchString(name) {
		return errors.New("invalid user name before @")
	}
	for key := range u.Query() {
		if secretKey.MatchString(key) {
			return fmt.Errorf("%w; or download the file and use its path", errSecret)
		}
	}
	return nil
}

// containsRef reports whether parsing would cut a ref from the path p.
func containsRef(p string) bool { before, _ := cutRef(p, false); return before != p }

// checkSCP returns an error if an ssh address of the form user@host:path is
// invalid.
func checkSCP(text string) error {
	before, p, ok := strings.Cut(text, ":")
	user, host, named := strings.Cut(before, "@")
	switch {
	case !ok || !named:
		return errors.New("invalid ssh address; write ssh://host/path or user@host:path")
	case !userName.MatchString(user):
		return errors.New("invalid user name before @")
	case p == "" || p[0] == '-' || p[0] == ':' || strings.HasPrefix(p, "/-"):
		return errors.New("missing repository path after the host")
	case containsRef(p) || strings.Contains(p, "//"):
		return errors.New("repository path contains @ or //; write an ssh:// URL with %40 instead of @")
	case strings.Contains("/"+p+"/", "/../") || strings.Contains("/"+p+"/", "/./"):
		return errors.New("path contains . or ..; write the resolved path")
	case strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("path contains invisible characters")
	}
	return checkHost(host, "")
}

// userName matches the user name before a host. It excludes colons, which
// separate a password.
var userName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// dnsName matches an ASCII DNS name.
var dnsName = lazyregexp.New(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// numberName matches a host whose last label is a number, because some programs
// interpret such a host as an IPv4 address.
var numberName = lazyregexp.New(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)

// secretKey matches query parameters that usually contain a secret.
var secretKey = lazyregexp.New(`(?i)token|sign|^sig$|secret|passw|^pwd$|auth|^key$|api.?key|credential`)

// checkHost returns an error if a host or port is invalid.
func checkHost(host, port string) error {
	if len(port) > 5 {
		return errors.New("invalid port")
	}
	if _, err := netip.ParseAddr(host); err == nil && !strings.Contains(host, "%") {
		return nil
	}
	switch {
	case host == "":
		return errors.New("missing host")
	case host[0] == '-':
		return errors.New("host starts with -")
	case len(host) > 253 || !dnsName.MatchString(host):
		return errors.New("invalid host name; write an international name in the form xn--NAME")
	case numberName.MatchString(host):
		return errors.New("ambiguous numeric host; write an IPv4 address with four numbers, or a host name")
	}
	return nil
}
