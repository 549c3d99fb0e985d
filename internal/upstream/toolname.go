package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxToolName is the maximum length in bytes of a name returned by [ToolName].
// Clients add a prefix, and models accept 64 bytes.
const MaxToolName = 48

// separator separates the server name from the tool name.
const separator = "__"

// ToolName returns the name by which clients call a server's tool:
// SERVER__TOOL, with letters, digits, _ and -, of at most [MaxToolName] bytes.
// It depends only on the two names and is unique: if ToolName has to change
// them, it appends a hash of both.
func ToolName(server, tool string) string {
	s, t := sanitizeName(server), sanitizeName(tool)
	name := s + separator + t
	// An unchanged name splits at its first separator, so no other server and
	// tool can have the same name.
	if s == server && t == tool && s != "" && t != "" && !strings.Contains(s, separator) && !strings.HasSuffix(s, "_") && len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	hash := "_" + hex.EncodeToString(sum[:4])
	if room := MaxToolName - len(hash); len(name) > room {
		// The tool name matters more, so it gets up to 28 bytes.
		keep := min(len(t), 28)
		s = strings.TrimRight(s[:min(len(s), room-len(separator)-keep)], "_-")
		t = t[:min(len(t), room-len(separator)-len(s))]
		name = s + separator + t
	}
	return name + hash
}

// sanitizeName replaces characters that some clients do not accept.
func sanitizeName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// MatchesServer reports whether a name returned by [ToolName] may be for a
// server whose name starts with prefix.
func MatchesServer(prefix, name string) bool {
	const sure = MaxToolName - len("_01234567") - len(separator) - 28 // bytes of the server name that ToolName never cuts
	p := sanitizeName(prefix)
	p = strings.TrimRight(p[:min(len(p), sure)], "_-")
	return strings.HasPrefix(name, p)
}
