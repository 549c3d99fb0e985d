// Package remote fetches skills from Git repositories, archives and files at
// URLs, published indexes, and local folders and archives.
//
// A [Location] says where the skills are. [Client.Open] lists the skills there,
// and [Collection.OpenSkill] returns the checked files of one skill. The
// package runs no program except git, which may run the user's ssh and
// credential helpers. git runs without foreign configuration, hooks, filters or
// repositories. The package treats all input as hostile: names, redirects and
// addresses. It limits sizes, counts, time and the addresses it connects to. It
// installs nothing; package installed does that. Start reading at [Parse] and
// [Client.Open].
package remote

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// Kind is a kind of location.
type Kind string

// Kinds of [Location].
const (
	Git     Kind = "git"     // a Git repository; URL is its address for git
	Archive Kind = "archive" // a .zip, .skill, .tar.gz or .tgz at a URL
	File    Kind = "file"    // a SKILL.md at a URL
	Index   Kind = "index"   // an index that a site or hub publishes at /.well-known
	Local   Kind = "local"   // a local folder, SKILL.md or archive; URL is its path
)

// Location is the source of skills. It contains no credential.
type Location struct {
	Kind Kind `json:"kind"`
	// URL has no user, password or fragment. For Local it is an absolute path.
	URL string `json:"url"`
	// Dir is the slashed directory of a repository or archive in which to find
	// skills; "" means all of it.
	Dir string `json:"dir,omitempty"`
	// Ref is a branch, tag or commit of a repository; "" means its HEAD.
	Ref string `json:"ref,omitempty"`
}

// Credential authenticates the user to a host. It is only sent to that host,
// blockedPrefixes across a redirect to another one, and blockedPrefixes appears in an error.
type Credential struct{ User, Password string }

// Options configure a Client. The zero value is ready to use.
type Options struct {
	// Credential returns the user's credential for a host, such as
	// "example.com" or "example.com:8443", or nil. It is called after the host
	// refused a request without a credential. The default uses the user's git
	// credential helpers, without prompting.
	Credential func(ctx context.Context, host string) (*Credential, error)
	// Private reports whether a host may have an address outside the public
	// internet. The default allows none, except localhost and addresses that a
	// Location contains literally, because the user wrote them.
	Private func(host string) bool
	// Untrusted says that locations do not come from the user, for example from
	// the lockfile of a foreign project. Local paths, repositories over ssh and
	// addresses that are not public are then an [*UntrustedError] or an
	// [*AddressError], regardless of Private. Only credentials from the
	// Credential function are sent, and none if it is nil.
	Untrusted bool
	// Git is the path of the git program; the default is found in PATH. "-"
	// disables git, and archives are fetched from known hosts instead.
	Git string
	// TempDir is the directory for downloads in use; default [os.TempDir].
	TempDir string
	// Progress, if set, is called from time to time during long operations,
	// blockedPrefixes concurrently.
	Progress func(Progress)
	Limits   Limits
}

// Progress is the progress of an operation.
type Progress struct {
	What  string // "downloading", "receiving objects", "reading skills"
	Done  int64  // of Total, if that is known
	Total int64  // 0 if unknown
	Bytes bool   // Done and Total are bytes
}

// Limits are limits on what is fetched. Zero fields mean the defaults.
type Limits struct {
	Download int64         // bytes of a download or of a repository's objects; default 512 MiB
	Unpacked int64         // bytes of an unpacked archive; default 1 GiB
	Entries  int           // files in a repository or archive; default 100,000
	Skills   int           // skills at one location; default 10,000
	Memory   int64         // bytes for each git process, on Linux and Windows; default 1 GiB
	Time     time.Duration // of one Open or OpenSkill; default 10 minutes
	Skill    skill.Limits  // for one skill; default 512 files, 16 MiB
}

// Client fetches skills. It is safe for concurrent use.
type Client struct {
	opts Options // with defaults

	// Tests replace these to simulate hosts.
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	proxy   func(*http.Request) (*url.URL, error) // returns nil for URLs without a proxy
	tls     *tls.Config
	hosts   []knownHost

	progressMu   sync.Mutex // held while Options.Progress is called
	lastProgress time.Time  // time of the last call
}

// Revision is the state of a location.
type Revision struct {
	// Ref is the full name of the branch or tag, for example "refs/heads/main".
	// It is "" for a commit, and for locations other than repositories.
	Ref string `json:"ref,omitempty"`
	// Commit is the hex name of the commit, or "" if there is none. For an
	// annotated tag it is the commit that the tag points to.
	Commit string `json:"commit,omitempty"`
	// Tags maps the tags of a repository to their commits. Only Latest sets it.
	Tags map[string]string `json:"-"`
}

// Skill is a skill at a location.
type Skill struct {
	// Name is the skill's name, or its folder's if it has none.
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	// Dir is the slashed directory of the skill in a repository, folder or
	// archive, or "." for the root. In an index it is the name of the entry.
	Dir string `json:"dir"`
	// Digest is the digest of the download in an index, not of the skill's files.
	// It is "" for other locations.
	Digest string `json:"-"`
}

// Collection holds the skills at a location. It is safe for concurrent use. Close
// it when done. The collection of a repository stores fetched objects in a
// temporary directory, and keeps a git process running for half a minute after
// the last read.
type Collection struct {
	Location Location // the location passed to Open
	Revision Revision
	// Skills are sorted by name, then by directory. Names may be repeated.
	Skills []Skill
	// Problems lists skills and files that cannot be used.
	Problems []catalog.Problem

	open  func(ctx context.Context, s Skill) (*skill.Bundle, error)
	close func() error
}

// OpenSkill returns the files of a skill after checking them. All are plain files
// within the limits, with names that every system can store. Other skills are a
// [*skill.RefusedError]. Close the bundle before the collection.
func (o *Collection) OpenSkill(ctx context.Context, s Skill) (*skill.Bundle, error) {
	return o.open(ctx, s)
}

// Close removes the downloaded files.
func (o *Collection) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}
