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

// errSecret is returned for texts that must not be repeated in messages.
var errSecret = errors.New("contains a password or token, which would end up in histories and logs; " +
	"remove it: git's credential helpers, GITHUB_TOKEN and GITLAB_TOKEN are used")

// repositoryDepth lists known repositoryDepth with the number of names in a repository path, or 0
// for two or more.
var repositoryDepth = map[string]int{"github.com": 2, "gitlab.com": 0, "codeberg.org": 2, "bitbucket.org": 2}

// isHosted reports whether a text without a scheme starts with a known host.
func isHosted(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	_, ok := repositoryDepth[strings.TrimPrefix(strings.ToLower(host), "www.")]
	return ok
}

// parseWeb parses a web address without its scheme. kind is "" if the address
// determines it.
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
			return Location{}, fmt.Errorf("no repository; write https://%s/owner/repo", whole.Host)
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

// fileLocation returns a location that is fetched as it is.
func fileLocation(kind Kind, u *url.URL, dir string) (Location, error) {
	if u.Fragment != "" {
		return Location{}, errors.New("# in the URL of a file; remove it")
	}
	if u.RawQuery != "" && kind == Index {
		return Location{}, errors.New("? in the address of an index; remove it")
	}
	return Location{Kind: kind, URL: u.String(), Dir: dir}.decode(url.PathUnescape)
}

// isPage reports whether an address is a page that shows a file, rather than
// the file itself.
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

// parsePage parses the address of a repository parsePage in a browser. ok reports whether
// it is one. A ref ends at the next slash, because a ref with slashes cannot be
// told from a directory.
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
			return Location{}, false, errors.New("no branch, tag or commit after the repository")
		}
		repo, rest = names[0]+"/"+names[1], names[3]
		if u.Host != "github.com" && u.Host != "bitbucket.org" {
			_, rest, _ = strings.Cut(rest, "/") // branch, tag or commit
		}
	}
	if isArchive(p) {
		return Location{}, false, errors.New("page about an archive; use the address of its Raw or Download button")
	}
	l = Location{Kind: Git, URL: u.Scheme + "://" + u.Host + "/" + strings.TrimSuffix(repo, ".git") + ".git"}
	if isHosted(u.Host) {
		if l.URL, err = hostedRepo(u.Host, repo); err != nil {
			return Location{}, false, err
		}
	}
	l.Ref, l.Dir, _ = strings.Cut(rest, "/")
	if l.Ref == "" {
		return Location{}, false, errors.New("no branch, tag or commit after the repository")
	}
	l, err = l.decode(url.PathUnescape)
	return l, err == nil, err
}

// parseHosted parses owner/repo, owner/repo@ref and owner/repo/dir@ref on a known
// host. On hosts with longer paths, a directory follows a double slash.
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

// hostedRepo returns the address of the repository owner/repo on a known host.
func hostedRepo(host, repo string) (string, error) {
	repo = strings.TrimSuffix(strings.TrimSuffix(repo, "/"), ".git")
	names := strings.Split(repo, "/")
	if len(names) < 2 || repositoryDepth[host] == 2 && len(names) != 2 {
		return "", fmt.Errorf("no repository; write https://%s/owner/repo", host)
	}
	for _, name := range names {
		if !hostedName().MatchString(name) || strings.Trim(name, ".") == "" {
			return "", fmt.Errorf("%q is not a user or repository name on %s; write ./ before a folder", name, host)
		}
	}
	return "https://" + host + "/" + repo + ".git", nil
}

// hostedName matches names of users and repositories on known hosts.
var hostedName = lazyregexp.New(`^[A-Za-z0-9._][A-Za-z0-9._-]{0,127}$`)

// cleanURL parses an address with a host and normalises it: scheme and host in
// lower case, no default port, no empty query. It rejects what checkURL rejects
// for all kinds.
func cleanURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("not a valid URL") // the error of url.Parse would contain a password
	}
	if _, has := u.User.Password(); has || u.User != nil && u.Scheme != "ssh" {
		return nil, errSecret
	}
	if u.Opaque != "" {
		return nil, errors.New("not a valid URL; write // after the scheme")
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
			return nil, errors.New("contains a #; write @ before a branch, tag or commit")
		}
		u.Fragment, u.RawFragment = "", "" // the position on a page
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

// checkURL returns the fault of the address of a location.
func checkURL(text string, kind Kind) error {
	if !strings.Contains(text, "://") {
		return checkSCP(text)
	}
	u, err := cleanURL(text)
	if err != nil {
		return err
	}
	if u.String() != text {
		return errors.New("address should be written as " + u.Redacted())
	}
	p := unescapedPath(u.EscapedPath())
	switch {
	case u.Scheme != "https" && u.Scheme != "http" && kind != Git:
		return errors.New("write https:// before the host")
	case u.Scheme == "file" && u.Host != "":
		return errors.New("expected three slashes before the path of a file: address")
	case u.Scheme == "http" && !isLocalhost(u.Hostname()):
		return errors.New("http can be changed by anyone on the way; write https://")
	case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "file":
		return fmt.Errorf("unsupported scheme %q; write https://, ssh:// or file://", u.Scheme)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the path contains invisible characters")
	case strings.Contains(p, "/../") || strings.HasSuffix(p, "/..") || strings.Contains(p, "/./") || strings.HasSuffix(p, "/."):
		return errors.New(". or .. in the path; write the resolved path")
	case strings.HasPrefix(p, "/-"):
		return errors.New("path starts like an option")
	case kind == Git && p == "/", kind == Git && p == "":
		return errors.New("no repository; write its path after the host")
	case kind == Git && u.RawQuery != "":
		return errors.New("? in the address of a repository; write @ before a branch, tag or commit")
	case strings.Contains(u.EscapedPath(), "//"):
		return errors.New("empty name in the path; // is only allowed before a directory of a repository")
	case kind == Git && containsRef(u.EscapedPath()):
		return errors.New("an @ begins the branch, tag or commit; write %40 for one in an address")
	}
	if u.Scheme != "file" {
		if err := checkHost(u.Hostname(), u.Port()); err != nil {
			return err
		}
	}
	if name := u.User.Username(); u.User != nil && !userName().MatchString(name) {
		return errors.New("invalid user name before the @")
	}
	for key := range u.Query() {
		if secretKey().MatchString(key) {
			return fmt.Errorf("%w; or download the file and write its path", errSecret)
		}
	}
	return nil
}

// containsRef reports whether an @ of a path would be taken for the begin of a ref.
func containsRef(p string) bool { before, _ := cutRef(p, false); return before != p }

// checkSCP says what is wrong with user@host:path.
func checkSCP(text string) error {
	before, p, ok := strings.Cut(text, ":")
	user, host, named := strings.Cut(before, "@")
	switch {
	case !ok || !named:
		return errors.New("write ssh://host/path or user@host:path for a repository over ssh")
	case !userName().MatchString(user):
		return errors.New("invalid user name before the @")
	case p == "" || p[0] == '-' || p[0] == ':' || strings.HasPrefix(p, "/-"):
		return errors.New("no repository; write its path after the host")
	case containsRef(p) || strings.Contains(p, "//"):
		return errors.New("@ or // in the path of the repository; write ssh://, and %40 for the @")
	case strings.Contains("/"+p+"/", "/../") || strings.Contains("/"+p+"/", "/./"):
		return errors.New(". or .. in the path; write the resolved path")
	case strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the path contains invisible characters")
	}
	return checkHost(host, "")
}

// userName matches what may stand before the @ of a host. A colon would start a password.
var userName = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// dnsName is a name of the DNS, which is written in ASCII.
var dnsName = lazyregexp.New(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// numberName is a last label that programs may read as a part of an address,
// each in its own way.
var numberName = lazyregexp.New(`(^|\.)(0x[0-9a-f]*|[0-9]+)$`)

// secretKey is a parameter of a query that opens doors.
var secretKey = lazyregexp.New(`(?i)token|sign|^sig$|secret|passw|^pwd$|auth|^key$|api.?key|credential`)

// checkHost says what is wrong with a host and port.
func checkHost(host, port string) error {
	if len(port) > 5 {
		return errors.New("invalid port")
	}
	if _, err := netip.ParseAddr(host); err == nil && !strings.Contains(host, "%") {
		return nil
	}
	switch {
	case host == "":
		return errors.New("no host")
	case host[0] == '-':
		return errors.New("host starts like an option")
	case len(host) > 253 || !dnsName().MatchString(host):
		return errors.New("invalid host name; international names start with xn--")
	case numberName().MatchString(host):
		return errors.New("ambiguous numeric host; write the address with four numbers, or the name")
	}
	return nil
}
