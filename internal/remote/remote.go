// Package remote fetches skills from Git repositories, archives and files at
// URLs, published indexes, and local folders and archives.
//
// A [Location] says where the skills are. [Client.Open] lists the skills there,
// and [Collection.OpenSkill] returns the checked files of one skill. The
// package runs no program except git, which may run the user's ssh and
// credential helpers. It disables hooks, filters and the configuration of other
// users and repositories. The package treats names, redirects and addresses as
// hostile input. It limits sizes, counts, times and the addresses to connect
// to. It does not install skills; package installed does. Start reading at
// [Parse] and [Client.Open].
package remote

import (
	"context"
	"crypto/tls"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// Kind specifies what a [Location] refers to and how to fetch it.
type Kind string

// Kinds of [Location].
const (
	Git     Kind = "git"     // a Git repository; URL is its address for git
	Archive Kind = "archive" // a .zip, .skill, .tar.gz or .tgz at a URL
	File    Kind = "file"    // a SKILL.md at a URL
	Index   Kind = "index"   // an index that a site or hub publishes at /.well-known
	Local   Kind = "local"   // a local folder, SKILL.md or archive; URL is its path
)

// Location is a source of skills. It contains no credential.
type Location struct {
	Kind Kind `json:"kind"`
	// URL has no user, password or fragment. For Local it is an absolute path.
	URL string `json:"url"`
	// Dir is the slash-separated directory of a repository or archive that
	// contains the skills. "" means the whole repository or archive.
	Dir string `json:"dir,omitempty"`
	// Ref is a branch, tag or commit of a repository. "" means its HEAD.
	Ref string `json:"ref,omitempty"`
}

// Credential authenticates the user to a host. It is only sent to that host,
// never to another host after a redirect. It never appears in an error.
type Credential struct{ User, Password string }

// Options configures a [Client]. The zero value is ready to use.
type Options struct {
	// Credential returns the user's credential for a host, such as
	// "example.com" or "example.com:8443", or nil. It is called after the host
	// rejected a request without a credential. The default is [UserCredential].
	Credential func(ctx context.Context, host string) (*Credential, error)
	// IndexCredential, if set, is called before Credential for an [Index]. site is
	// the URL that was rejected. If the result is nil, Credential is called.
	IndexCredential func(ctx context.Context, site *url.URL) (*Credential, error)
	// Private reports whether a host may have an address outside the public
	// internet. By default, only localhost and addresses that appear literally
	// in a Location may.
	Private func(host string) bool
	// Untrusted must be set if locations do not come from the user, for example
	// if they come from the lockfile of a cloned project. Local paths and
	// repositories over ssh then return an [*UntrustedError], and addresses
	// that are not public an [*AddressError], regardless of Private. Only
	// credentials from the Credential function are sent, and none if it is nil.
	Untrusted bool
	// Git is the path of the git program. The default is git in PATH. If Git is
	// "-", git is not used, and known hosts serve archives instead.
	Git string
	// TempDir is the directory for temporary downloads. The default is
	// [os.TempDir].
	TempDir string
	// Progress is called repeatedly during long operations, but never
	// concurrently. It may be nil.
	Progress func(Progress)
	// KeepTop keeps the top folder of an archive that is common to all entries.
	KeepTop bool
	Limits  Limits
}

// Progress reports how far an operation has advanced.
type Progress struct {
	What  string // "downloading", "receiving objects", "reading skills"
	Done  int64  // amount done, of Total if that is known
	Total int64  // 0 if unknown
	Bytes bool   // whether Done and Total are bytes
}

// Limits holds the limits on the size, number and duration of fetches. Zero
// fields mean the default.
type Limits struct {
	Download int64         // bytes per download, or of the objects in a repository; default 512 MiB
	Unpacked int64         // bytes per unpacked archive; default 1 GiB
	Entries  int           // files in a repository or archive; default 100,000
	Skills   int           // skills per location; default 10,000
	Memory   int64         // bytes for each git process, on Linux and Windows; default 1 GiB
	Time     time.Duration // duration of an Open or OpenSkill call; default 10 minutes
	Skill    skill.Limits  // per skill; default 512 files, 16 MiB
}

// Client fetches skills from locations. It is safe for concurrent use.
type Client struct {
	opts Options // options with defaults filled in

	// Tests replace these to simulate hosts.
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	proxy   func(*http.Request) (*url.URL, error) // returns nil for URLs without a proxy
	tls     *tls.Config
	hosts   []knownHost

	progressMu   sync.Mutex // held while Options.Progress is called
	lastProgress time.Time  // time of the last call
}

// Revision identifies the fetched version of a repository.
type Revision struct {
	// Ref is the full name of the branch or tag, for example "refs/heads/main".
	// It is "" for a commit, and for locations other than repositories.
	Ref string `json:"ref,omitempty"`
	// Commit is the hex name of the commit, or "" if there is none. For an
	// annotated tag it is the commit that the tag points to.
	Commit string `json:"commit,omitempty"`
	// Digest is the hash of the downloaded archive or SKILL.md, as sha256: and
	// hexadecimal digits. It is "" for other locations.
	Digest string `json:"-"`
	// Tags maps the tags of a repository to their commits. Only Latest sets it.
	Tags map[string]string `json:"-"`
}

// Skill describes a skill found at a location.
type Skill struct {
	// Name is the name of the skill, or of its folder if SKILL.md has no name.
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	// Dir is the slash-separated directory of the skill in a repository, folder
	// or archive, or "." for the root. In an index it is the name of the entry.
	Dir string `json:"dir"`
	// Digest is the digest of an index entry's download, not of the skill's
	// files. It is "" for other locations.
	Digest string `json:"-"`
}

// Collection holds the skills at a location. The caller must close it. It is
// safe for concurrent use. The collection of a repository stores fetched
// objects in a temporary directory, and keeps a git process running for half a
// minute after the last read.
type Collection struct {
	Location Location // the location passed to Open
	Revision Revision
	// Skills are sorted by name, then by directory. Names need not be unique.
	Skills []Skill
	// Problems lists skills and files that cannot be used.
	Problems []catalog.Problem

	files fs.FS
	open  func(ctx context.Context, s Skill) (*skill.Bundle, error)
	close func() error
}

// Files returns all files at the location, whether or not they belong to
// skills, or nil for an [Index]. Only plain files can be opened; their content
// is unchecked, and only the limits of the location apply to their sizes. The
// files cannot be read after the collection is closed.
func (o *Collection) Files() fs.FS { return o.files }

// OpenSkill checks the files of a skill and returns them. All files are plain
// files within the limits, and their names are valid on every system. If a
// skill has any other files, the error is a [*skill.RefusedError]. The caller
// must close the bundle before the collection.
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
