package remote

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LocationError is returned for an invalid location. Its message says what to
// write instead.
type LocationError struct {
	Text   string // the text; "" if it contains a secret
	Reason string
}

func (e *LocationError) Error() string {
	if e.Text == "" {
		return "invalid location: " + e.Reason
	}
	return fmt.Sprintf("invalid location %q: %s", e.Text, e.Reason)
}

// maxLocation is the maximum length of a location in bytes.
const maxLocation = 4096

// Parse parses a location as users write it:
//
//	owner/repo                        a repository on GitHub
//	owner/repo/dir@ref                a directory of it, at a branch, tag or commit
//	github.com/owner/repo             the same; also gitlab.com, codeberg.org and bitbucket.org
//	https://github.com/o/r/tree/v1/d  a page of a repository, as in the browser
//	https://host/path                 a repository on any host
//	https://host/r.git//dir@ref       a directory of a repository and a ref
//	ssh://git@host/path, git@host:path, file:///path, git+https://host/path
//	https://host/x.zip                an archive: .zip, .skill, .tar.gz, .tgz
//	https://host/pdf/SKILL.md         a skill that is a single file
//	https://host                      the index of a site; index+https://host/path below a path
//	./folder, ../x, /abs, x.zip       a local folder or archive
//
// The ref starts at the first @ that is not at the beginning of a directory
// name, or at the last such @ if there is a directory. In URLs, %40 stands for
// an @ in a directory or ref. Relative paths are below workDir; "" means the
// current directory. Parse accesses neither the disk nor the network.
// owner/repo always means GitHub; write ./owner/repo for a folder.
//
// Parse rejects anything that git, a shell or a server could interpret
// differently, with a [*LocationError] that says what to write: options,
// passwords, control characters, paths with "..", http to other machines, and
// other schemes.
func Parse(text, workDir string) (Location, error) {
	text = strings.TrimSpace(text)
	l, err := parse(text, workDir)
	if err == nil {
		err = l.check()
	}
	if err != nil {
		if len(text) > maxLocation || errors.Is(err, errSecret) || mayContainSecret(text) {
			text = ""
		}
		return Location{}, &LocationError{Text: text, Reason: err.Error()}
	}
	return l, nil
}

// mayContainSecret reports whether an invalid location may contain a password
// or token. It looks for a colon after a user name, for a user name before a
// host that needs none, and for a query.
func mayContainSecret(text string) bool {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		scheme, rest = "", text
	}
	user, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndexByte(rest, '@')
	return at >= 0 && strings.Contains(rest[:at], ":") ||
		ok && !strings.HasSuffix(strings.ToLower(scheme), "ssh") && strings.Contains(user, "@") ||
		strings.Contains(rest, "?")
}

func parse(text, workDir string) (Location, error) {
	switch {
	case text == "":
		return Location{}, errors.New("empty location: want owner/repo, a URL, or ./folder")
	case len(text) > maxLocation:
		return Location{}, fmt.Errorf("location too long (limit %d bytes)", maxLocation)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Location{}, errors.New("location contains invisible characters; type it again")
	case text[0] == '-':
		return Location{}, errors.New("location starts with -; write ./ before the folder name")
	case text[0] == '~':
		return Location{}, errors.New("~ is only expanded by a shell; write the full path")
	case isLocal(text):
		return parseLocal(text, workDir)
	}
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return parseShort(text)
	}
	scheme = strings.ToLower(scheme)
	kind, prefixed := Kind(""), false
	if how, of, ok := strings.Cut(scheme, "+"); ok {
		switch Kind(how) {
		case Git, Index:
			kind, scheme, prefixed = Kind(how), of, true
		default:
			return Location{}, fmt.Errorf("unknown prefix %s+ (want git+ or index+)", how)
		}
	}
	switch scheme {
	case "https", "http":
		return parseWeb(scheme, rest, kind)
	case "ssh", "file":
		if prefixed && kind != Git {
			return Location{}, fmt.Errorf("index URL must use https, not %s", scheme)
		}
		return parseRepo(scheme+"://", rest)
	}
	return Location{}, fmt.Errorf("unsupported scheme %q; write https://, ssh:// or file://", scheme)
}

// isLocal reports whether the text looks like a local path.
func isLocal(text string) bool {
	if text[0] == '.' || text[0] == '/' || filepath.IsAbs(text) || strings.EqualFold(text, "SKILL.md") {
		return true
	}
	return !strings.Contains(text, ":") && isArchive(text) && !isHosted(text)
}

func parseLocal(text, workDir string) (Location, error) {
	p := filepath.FromSlash(text)
	if !filepath.IsAbs(p) {
		p = filepath.Join(workDir, p)
	}
	p, err := filepath.Abs(p)
	if err != nil {
		return Location{}, fmt.Errorf("get current directory: %w", err)
	}
	return Location{Kind: Local, URL: p}, nil
}

// isArchive reports whether a path ends with the extension of an archive.
func isArchive(p string) bool {
	p = strings.ToLower(p)
	for _, ext := range []string{".zip", ".skill", ".tar.gz", ".tgz"} {
		if strings.HasSuffix(p, ext) {
			return true
		}
	}
	return false
}

// parseShort parses a location without a scheme: a repository on a known host,
// or an ssh address in git's format.
func parseShort(text string) (Location, error) {
	if strings.Contains(text, "::") {
		return Location{}, errors.New("git remote helpers are not supported; use https://, ssh:// or file://")
	}
	if isHosted(text) {
		return parseWeb("https", text, "")
	}
	slash := strings.IndexByte(text, '/')
	if colon := strings.IndexByte(text, ':'); colon >= 0 && (slash < 0 || colon < slash) {
		host := text[:colon+1]
		if !strings.Contains(host, "@") {
			return Location{}, errors.New("unsupported address; write ssh://host/path or an https:// URL")
		}
		return parseRepo(host, text[colon+1:])
	}
	if slash < 0 {
		return Location{}, fmt.Errorf("want owner/repo for GitHub, ./%s for a folder, or a URL", text)
	}
	owner, rest := text[:slash], text[slash+1:]
	if strings.Contains(owner, ".") {
		return Location{}, fmt.Errorf("want https://%s for another host, or ./ before a folder", text)
	}
	return parseHosted("github.com", owner+"/"+rest, func(s string) (string, error) { return s, nil })
}

// cutRef splits s at an @, ignoring any @ at the beginning of a path element.
// It uses the last @ if last is set, and the first one otherwise.
func cutRef(s string, last bool) (before, ref string) {
	at := -1
	for i := 1; i < len(s); i++ {
		if s[i] == '@' && s[i-1] != '/' {
			if at = i; !last {
				break
			}
		}
	}
	if at < 0 {
		return s, ""
	}
	return s[:at], s[at+1:]
}

// parseRepo parses a repository address on an unknown host. rest is path,
// path@ref or path//dir@ref. before is the preceding text.
func parseRepo(before, rest string) (Location, error) {
	authority := ""
	if strings.HasSuffix(before, "://") {
		slash := strings.IndexByte(rest, '/')
		if slash < 0 {
			return Location{}, errors.New("missing repository path after the host")
		}
		authority, rest = rest[:slash], rest[slash:]
	}
	if strings.ContainsAny(rest, "?#") {
		return Location{}, errors.New("repository URL must not contain ? or #; write @ before a branch, tag or commit")
	}
	l := Location{Kind: Git}
	if i := strings.Index(rest, "//"); i > 0 {
		l.Dir, l.Ref = cutRef(rest[i+2:], true)
		rest = rest[:i]
	} else {
		rest, l.Ref = cutRef(rest, false)
	}
	l.URL = before + authority + rest
	if !strings.HasSuffix(before, ":") { // git does not decode a path after host:
		u, err := cleanURL(l.URL)
		if err != nil {
			return Location{}, err
		}
		l.URL = u.String()
	}
	return l.decode(url.PathUnescape)
}

// decode unescapes the directory and the ref of a location, and normalizes the
// directory.
func (l Location) decode(unescape func(string) (string, error)) (Location, error) {
	var err error
	if l.Ref, err = unescape(l.Ref); err != nil {
		return l, errors.New("ref contains an invalid % escape; write %25 for a percent sign")
	}
	if l.Dir, err = unescape(l.Dir); err != nil {
		return l, errors.New("directory contains an invalid % escape; write %25 for a percent sign")
	}
	if l.Ref == "HEAD" {
		l.Ref = "" // the same, and a way to write a directory that contains an @
	}
	if l.Dir = strings.Trim(l.Dir, "/"); l.Dir != "" {
		l.Dir = strings.TrimSuffix("/"+l.Dir, "/SKILL.md")
		if l.Dir = strings.Trim(l.Dir, "/"); l.Dir == "." {
			l.Dir = ""
		}
	}
	return l, nil
}

// String returns the shortest text that [Parse] parses to the same location. If
// there is no such text, the result is suitable only for display.
func (l Location) String() string {
	switch l.Kind {
	case Local:
		if strings.HasSuffix(l.URL, " ") {
			return l.URL + "/" // Parse trims spaces
		}
	case Archive:
		if l.Dir != "" {
			return l.URL + "//" + escapePath(l.Dir)
		}
	case Index:
		if got, err := Parse(l.URL, ""); err != nil || got != l {
			return "index+" + l.URL
		}
	case Git:
		return l.repository()
	}
	return l.URL
}

func (l Location) repository() string {
	long := l.URL
	if l.Dir != "" {
		long += "//" + escapePath(l.Dir)
	}
	if l.Ref != "" {
		long += "@" + escapePath(l.Ref)
	}
	if short, ok := strings.CutPrefix(l.URL, "https://"); ok {
		short = strings.TrimSuffix(strings.TrimPrefix(short, "github.com/"), ".git")
		if l.Dir != "" {
			host, _, _ := strings.Cut(short, "/")
			if names, known := repositoryDepth[host]; known && names == 0 {
				short += "/"
			}
			short += "/" + l.Dir
		}
		ref := l.Ref
		if ref == "" && strings.Contains(l.Dir, "@") {
			ref = "HEAD"
		}
		if ref != "" {
			short += "@" + ref
		}
		if got, err := Parse(short, ""); err == nil && got == l {
			return short
		}
	}
	if got, err := Parse(long, ""); err == nil && got == l || !strings.Contains(l.URL, "://") {
		return long
	}
	return "git+" + long
}

// CanonicalURL returns the address in a normalized form for comparisons, see
// [Identity].
func (l Location) CanonicalURL() string {
	if l.Kind == Local {
		return trimAddress(l.URL)
	}
	return Identity(l.URL)
}

// Identity returns the normalized form of an address. It is the same for the
// https and ssh addresses of a repository, regardless of user, ssh port, letter
// case and extension. Two repositories whose names differ only in case are
// treated as one: data stored about one also applies to the other.
func Identity(address string) string {
	text := address
	if before, p, ok := strings.Cut(address, ":"); ok && !strings.HasPrefix(p, "//") && strings.Contains(before, "@") {
		text = "ssh://" + before + "/" + strings.TrimPrefix(p, "/")
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return trimAddress(address)
	}
	scheme, host := u.Scheme, strings.ToLower(u.Host)
	if scheme == "ssh" {
		scheme, host = "https", strings.TrimSuffix(host, ":"+u.Port())
		if known, ok := sshHosts[host]; ok {
			host = known
		}
	}
	host = strings.TrimSuffix(host, map[string]string{"https": ":443", "http": ":80"}[scheme])
	where := strings.ToLower(strings.TrimRight(u.EscapedPath(), "/"))
	out := scheme + "://" + host + strings.TrimSuffix(where, ".git")
	if u.RawQuery != "" {
		out += "?" + u.RawQuery
	}
	return out
}

// sshHosts maps each host that accepts SSH on port 443 to the provider's web
// host.
var sshHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}

func trimAddress(address string) string {
	return strings.TrimSuffix(strings.TrimSuffix(address, "/"), ".git")
}

// escapePath escapes a directory or ref for use in the path of an absolute URL.
func escapePath(s string) string {
	return strings.ReplaceAll((&url.URL{Path: s}).EscapedPath(), "@", "%40")
}

// check returns an error if the location is invalid. Locations may come from
// untrusted files.
func (l Location) check() error {
	switch l.Kind {
	case Local:
		if l.Dir != "" || l.Ref != "" || !filepath.IsAbs(l.URL) || strings.ContainsFunc(l.URL, unicode.IsControl) {
			return errors.New("local location must be an absolute path without a ref or directory")
		}
		return nil
	case Git:
		if l.URL == "" {
			return errors.New("missing repository")
		}
	case Archive, File, Index:
		if !strings.HasPrefix(l.URL, "https://") && !strings.HasPrefix(l.URL, "http://") {
			return errors.New("invalid URL; write https:// before the host")
		}
		if l.Ref != "" {
			return errors.New("only repositories accept a branch, tag or commit after @")
		}
		if l.Dir != "" && l.Kind != Archive {
			return errors.New("only repositories and archives accept a directory after //")
		}
	default:
		return fmt.Errorf("unknown location kind %q", l.Kind)
	}
	if err := checkURL(l.URL, l.Kind); err != nil {
		return err
	}
	if err := checkDir(l.Dir); err != nil {
		return err
	}
	return checkRef(l.Ref)
}

// checkDir returns an error if dir is not a valid directory in a repository.
func checkDir(dir string) error {
	switch {
	case dir == "":
		return nil
	case dir[0] == '-':
		return errors.New("directory name starts with -")
	case !utf8.ValidString(dir) || strings.ContainsFunc(dir, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("directory name contains invisible characters")
	case strings.Contains(dir, `\`):
		return errors.New(`directory contains \; write / between names`)
	case dir == ".." || strings.HasPrefix(dir, "../") || strings.HasSuffix(dir, "/..") || strings.Contains(dir, "/../"):
		return errors.New("directory path contains ..; want a path relative to the repository root")
	case dir[0] == '/' || path.Clean(dir) != dir:
		return errors.New("directory path contains . or an empty name; want a path relative to the repository root")
	}
	return nil
}

// checkRef returns an error if a branch, tag or commit violates git's naming
// rules. These exclude ranges, expressions, patterns and options.
func checkRef(ref string) error {
	bad := ref != "" && (ref[0] == '-' || ref == "@" || len(ref) > 1000 || ref[len(ref)-1] == '.' ||
		!utf8.ValidString(ref) || strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.ContainsAny(ref, " ~^:?*[\\") ||
		strings.ContainsFunc(ref, func(r rune) bool { return !unicode.IsPrint(r) }))
	if ref != "" && !bad {
		for name := range strings.SplitSeq(ref, "/") {
			bad = bad || name == "" || name[0] == '.' || strings.HasSuffix(name, ".lock")
		}
	}
	if bad {
		return errors.New("invalid branch, tag or commit after @")
	}
	return nil
}
