// Package release reads the index of Loadout's releases, and finds the newest
// release. The release script writes the index. Start reading at [Parse].
package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

// Format is the version of the index format that this program reads and writes.
const Format = 1

// MaxSize is the maximum size of an index in bytes.
const MaxSize = 1 << 20

// maxReleases is the maximum number of releases in an index, and maxFiles that
// of files in a release.
const (
	maxReleases = 10_000
	maxFiles    = 100
)

// Index lists releases in any order.
type Index struct {
	Format   int       `json:"format"`
	Releases []Release `json:"releases"`
}

// Release is a published version of the program.
type Release struct {
	Version string    `json:"version"` // the Git tag, such as "v1.2.0"
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`            // when the commit was made
	Notes   string    `json:"notes,omitempty"` // URL of the release notes
	Files   []File    `json:"files"`
}

// File is an archive with the program for one system.
type File struct {
	Platform string `json:"platform"` // such as "linux/amd64"
	URL      string `json:"url"`      // may be relative to the index
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"` // 64 hexadecimal digits
}

// Parse reads an index. It fails for an index with a newer format, or if any
// release is invalid. URLs and notes are untrusted text.
func Parse(data []byte) (*Index, error) {
	if len(data) > MaxSize {
		return nil, fmt.Errorf("index too large (%d bytes, limit %d)", len(data), MaxSize)
	}
	var version struct{ Format int }
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, fmt.Errorf("invalid release index: %w", err)
	}
	switch {
	case version.Format > Format:
		return nil, fmt.Errorf("unsupported release index format %d (want %d); update loadout", version.Format, Format)
	case version.Format < Format:
		return nil, errors.New("not a release index: missing format")
	}
	var x Index
	if err := json.Unmarshal(data, &x); err != nil {
		return nil, fmt.Errorf("invalid release index: %w", err)
	}
	if len(x.Releases) > maxReleases {
		return nil, fmt.Errorf("too many releases in the index (%d, limit %d)", len(x.Releases), maxReleases)
	}
	for _, r := range x.Releases {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("invalid release index: %w", err)
		}
	}
	return &x, nil
}

func (r Release) check() error {
	switch {
	case !semver.IsValid(r.Version) || semver.Canonical(r.Version) != r.Version:
		return fmt.Errorf("%.100q is not a version such as v1.2.0", r.Version)
	case len(r.Files) > maxFiles:
		return fmt.Errorf("release %s has too many files (%d, limit %d)", r.Version, len(r.Files), maxFiles)
	}
	for _, f := range r.Files {
		if !skillfile.IsHash(f.SHA256) {
			return fmt.Errorf("release %s: %.100q is not a SHA-256 checksum", r.Version, f.SHA256)
		}
	}
	return nil
}

// Latest returns the newest release, or nil if there is none. It ignores
// prereleases unless current is one.
func (x *Index) Latest(current string) *Release {
	prereleases := semver.Prerelease(current) != "" && !module.IsPseudoVersion(strings.TrimSuffix(current, semver.Build(current)))
	var latest *Release
	for i, r := range x.Releases {
		if semver.Prerelease(r.Version) != "" && !prereleases {
			continue
		}
		if latest == nil || semver.Compare(r.Version, latest.Version) > 0 {
			latest = &x.Releases[i]
		}
	}
	return latest
}

// File returns the archive for a platform such as "linux/amd64", or nil.
func (r *Release) File(platform string) *File {
	for i, f := range r.Files {
		if f.Platform == platform {
			return &r.Files[i]
		}
	}
	return nil
}

// State describes how a version relates to the latest release.
type State string

const (
	Newer   State = "newer"   // a newer release is available
	Current State = "current" // no newer release is available
	Unknown State = "unknown" // the program has no version
)

// Compare compares the version of a program, such as "v1.2.0" or "devel", with a
// release.
func Compare(current string, latest *Release) State {
	switch {
	case !semver.IsValid(current):
		return Unknown
	case latest != nil && semver.Compare(latest.Version, current) > 0:
		return Newer
	}
	return Current
}
