// Package remote gets skills from elsewhere: Git repositories, archives and
// files at URLs, published indexes, and folders and archives of this machine.
//
// A [Location] says where; [Client.Look] says what is there, without writing
// anything that a skill is read from; [Offer.Open] gives the files of one
// skill, checked. It runs no program but git (and by git the person's ssh, and their
// credential helpers where a host asks who is there), which gets no configuration,
// hook, filter or repository of anybody's. It takes every byte, name, redirect and
// address that it is told for hostile: sizes, counts, time and the addresses that
// are connected to are bounded. It installs nothing: package installed does.
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

// Kind is a kind of place that skills are got from.
type Kind string

// The kinds.
const (
	Git     Kind = "git"     // a repository; URL is what git reads
	Archive Kind = "archive" // a .zip, .skill, .tar.gz or .tgz at a URL
	File    Kind = "file"    // a SKILL.md at a URL
	Index   Kind = "index"   // what a site or a hub publishes at /.well-known
	Local   Kind = "local"   // a folder, SKILL.md or archive of this machine; URL is its path
)

// Location is where skills are. It holds no credential.
type Location struct {
	Kind Kind `json:"kind"`
	// URL has no user, password or fragment. Of Local it is an absolute path.
	URL string `json:"url"`
	// Dir is the slashed directory of a repository or archive below which
	// skills are looked for; "" for all of it.
	Dir string `json:"dir,omitempty"`
	// Ref is a branch, tag or commit of a repository; "" for what its HEAD
	// names.
	Ref string `json:"ref,omitempty"`
}

// Credential is what a host is shown where it asks who is there. It is sent to
// that host alone, never across a redirect to another, and is in no error.
type Credential struct{ User, Password string }

// Options are those of a Client. The zero value is useful.
type Options struct {
	// Credential returns what the person has for a host, as "example.com" or
	// "example.com:8443"; nil where there is nothing. It is called once the
	// host has refused a request without. Default: the person's own git
	// credential helpers are asked, which never ask the person.
	Credential func(ctx context.Context, host string) (*Credential, error)
	// Private reports whether a host may have an address that is not of the
	// public internet; default: none may, but what a Location names by its
	// address, or as localhost, which a person wrote down.
	Private func(host string) bool
	// Untrusted says that locations are the words of a stranger, as those in the lock
	// of a project that somebody else wrote: places of this machine, repositories by
	// ssh, and addresses that are not public are refused with an [*UntrustedError] or
	// an [*AddressError], whatever Private says, and of the person's credentials
	// only what Credential returns is shown, nothing where that is nil.
	Untrusted bool
	// Git is the path of the git program; default: looked up in PATH. With "-"
	// there is none, and known hosts are asked for archives.
	Git string
	// TempDir is where downloads are kept while they are in use; default:
	// [os.TempDir].
	TempDir string
	// Progress, where set, is called now and then on long work, from one
	// goroutine at a time.
	Progress func(Progress)
	Limits   Limits
}

// Progress is how far a download is.
type Progress struct {
	What  string // "downloading", "receiving objects", "reading skills"
	Done  int64  // of Total, or of what is not known
	Total int64  // 0 where it is not known
	Bytes bool   // Done and Total are bytes
}

// Limits bound what is got. Zero fields mean the defaults.
type Limits struct {
	Download int64         // bytes of one download or of a repository's objects; default 512 MiB
	Unpacked int64         // bytes of an archive unpacked; default 1 GiB
	Entries  int           // files of a repository or archive; default 100,000
	Skills   int           // skills in one place; default 10,000
	Memory   int64         // bytes of each process of git, on Linux and Windows; default 1 GiB
	Time     time.Duration // of one Look, or one Open; default 10 minutes
	Skill    skill.Limits  // of one skill; default 512 files, 16 MiB
}

// Client looks for skills elsewhere. It is safe for concurrent use.
type Client struct {
	opts Options // with defaults

	// What tests replace, to be any host at any address.
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	proxy   func(*http.Request) (*url.URL, error) // nil where a URL is asked directly
	tls     *tls.Config
	hosts   []knownHost

	telling sync.Mutex // held while Options.Progress is called
	told    time.Time  // when it last was
}

// Revision is one state of a place.
type Revision struct {
	// Ref is the full name of the branch or tag that was followed, as
	// "refs/heads/main"; "" where a commit was asked for, and for places
	// without.
	Ref string `json:"ref,omitempty"`
	// Commit is the hex name of the commit, "" for places without. Of an
	// annotated tag it is the commit that the tag names.
	Commit string `json:"commit,omitempty"`
	// Tags are the tags of a repository and their commits. Only Latest sets it.
	Tags map[string]string `json:"-"`
}

// Skill is one that a place offers.
type Skill struct {
	// Name is the skill's, or its folder's where it has none.
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	// Dir is the slashed directory of a repository, folder or archive that the
	// skill is, "." for the whole; of an index it is the name of its entry.
	Dir string `json:"dir"`
	// Digest is what an index promises for what is downloaded (not the digest of
	// the skill's files); "" elsewhere.
	Digest string `json:"-"`
}

// Offer is what there is at a location, until Close. It is safe for concurrent
// use. That of a repository keeps what was fetched in a directory of its own, and one
// git process for half a minute after a file was read last.
type Offer struct {
	Location Location // as it was asked for
	Revision Revision
	// Skills are sorted by name, then by directory. Two may have one name.
	Skills []Skill
	// Problems are skills and files that cannot be had, and why.
	Problems []catalog.Problem

	open  func(ctx context.Context, s Skill) (*skill.Bundle, error)
	close func() error
}

// Open returns the files of a skill of the offer, all of them checked: plain
// files whose names every system can store, within the limits, none a link.
// What does not hold to this is a [*skill.RefusedError]. Close the bundle before
// the offer.
func (o *Offer) Open(ctx context.Context, s Skill) (*skill.Bundle, error) {
	return o.open(ctx, s)
}

// Close removes what was downloaded.
func (o *Offer) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}
