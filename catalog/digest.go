package catalog

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/loadout-dev/loadout/internal/skillfile"
)

// Digest returns "sha256:" and the hex SHA-256 of the skill's current SKILL.md.
// It reads a file only if it may have changed since the last call, judging by
// its size, modification time and identity. A change that keeps all of them is
// not noticed. For a custom source, it reads the skill in each call, unless the
// source has a method ListsVersions() bool that returns true. Such a source
// must list a new entry for a skill after each change to it. For a skill of an
// MCP server, Digest returns the digest of its manifest instead, and reads no
// file. Digest returns the errors of [Catalog.Read].
func (c *Catalog) Digest(ctx context.Context, e *Entry) (string, error) {
	if e.Server != "" {
		m, err := c.CompleteManifest(ctx, e)
		return m.Digest(), err
	}
	now := c.fileStamp(e)
	c.mu.Lock()
	known, ok := c.digests[e]
	c.mu.Unlock()
	if ok && now.trusted && known.stamp == now.stamp {
		return known.digest, nil
	}
	_, src, err := c.Read(ctx, e)
	if err != nil {
		return "", err
	}
	known = knownDigest{now.stamp, "sha256:" + skillfile.Hash(src)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.trusted && c.current.Load().byKey(e.Key()) == e { // otherwise, publish does not remove it
		c.digests[e] = known
	}
	return known.digest, nil
}

// knownDigest is the digest of a SKILL.md with the stamp that the file had
// before it was read.
type knownDigest struct {
	stamp  stamp
	digest string
}

// fileStamp is the stamp of a skill's file. It is trusted if the file cannot
// change without changing the stamp.
type fileStamp struct {
	stamp   stamp
	trusted bool
}

// versioned is implemented by sources that list a new entry after each change
// to a skill's files, so that the entry identifies the content.
type versioned interface{ ListsVersions() bool }

// fileStamp returns the current stamp of the SKILL.md of a skill, or of the
// archive that contains it.
func (c *Catalog) fileStamp(e *Entry) fileStamp {
	if s, err := c.source(e); err == nil {
		if v, ok := s.(versioned); ok && v.ListsVersions() {
			return fileStamp{trusted: true}
		}
	}
	seen := time.Now().UnixNano()
	st, err := c.statFile(e)
	return fileStamp{st, err == nil && !st.racy(seen)}
}

// errNoStamp is returned for a skill that is not in a directory or archive of
// this package's sources.
var errNoStamp = errors.New("no file to stat")

func (c *Catalog) statFile(e *Entry) (stamp, error) {
	if e.archive {
		fi, err := os.Stat(e.Path)
		if err != nil {
			return stamp{}, err
		}
		return stampOfInfo(fi), nil
	}
	d, closeDir := c.openDirect(e)
	if d == nil {
		return stamp{}, errNoStamp
	}
	defer closeDir()
	st, _, err := d.stat(e.file)
	return st, err
}
