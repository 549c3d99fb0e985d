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

// ToolsSubject returns the subject of the user's grant of the allowed-tools that a
// skill of an MCP server requests. It depends on the skill, its files and the tools,
// so the grant does not apply to another version.
func ToolsSubject(name, digest string, tools []string) policy.Digest {
	return hashParts(append([]string{"served skill tools 1", name, digest}, tools...)...)
}

// HiddenTextSubject returns the subject of the user's grant that lets models read the
// hidden characters in a file of a skill of an MCP server. sha256 is the hash of the
// file in hex.
func HiddenTextSubject(name, sha256 string) policy.Digest {
	return hashParts("served skill hidden text 1", name, sha256)
}
