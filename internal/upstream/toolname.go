package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxToolName is the maximal length in bytes of names from [ToolName]. Clients
// add a prefix, and models accept 64.
const MaxToolName = 48

// separator separates the names of a server and its tool.
const separator = "__"

// ToolName returns the name that clients use for a tool of a server:
// SERVER__TOOL, with letters, digits, _ and -, of at most [MaxToolName] bytes.
// It depends only on the two names, so it is stable, and it is unique: a
// changed name ends in a hash of both.
func ToolName(server, tool string) string {
	s, t := clean(server), clean(tool)
	name := s + separator + t
	// An unchanged name is split at the first separator, so it cannot belong to
	// another server and tool.
	if s == server && t == tool && s != "" && t != "" && !strings.Contains(s, separator) && !strings.HasSuffix(s, "_") && len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	hash := "_" + hex.EncodeToString(sum[:4])
	if room := MaxToolName - len(hash); len(name) > room {
		// The tool's name is more important and gets up to 28 bytes.
		keep := min(len(t), 28)
		s = strings.TrimRight(s[:min(len(s), room-len(separator)-keep)], "_-")
		t = t[:min(len(t), room-len(separator)-len(s))]
		name = s + separator + t
	}
	return name + hash
}

// clean replaces characters that some clients do not accept.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// MatchesServer reports whether a name from [ToolName] may belong to a server
// whose name starts with prefix.
func MatchesServer(prefix, name string) bool {
	const sure = MaxToolName - len("_01234567") - len(separator) - 28 // minimal length of a server's name that is always kept
	p := clean(prefix)
	p = strings.TrimRight(p[:min(len(p), sure)], "_-")
	return strings.HasPrefix(name, p)
}
