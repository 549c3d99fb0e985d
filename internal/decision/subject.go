package decision

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/policy"
)

// SubjectOf returns the subject of the grants for a skill whose manifest has the
// given digest. It is the digest, but for a skill of an MCP server it depends on
// its name, too: such a skill is identified by its server and path, so an approval
// of the same files from elsewhere does not count, and does not replace this one.
func SubjectOf(name, origin, digest string) policy.Digest {
	if !skillname.IsServed(name, origin) {
		return policy.Digest(digest)
	}
	sum := sha256.Sum256([]byte("loadout served skill 1\x00" + name + "\x00" + digest))
	return policy.Digest("sha256:" + hex.EncodeToString(sum[:]))
}
