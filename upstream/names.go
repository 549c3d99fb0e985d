package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MaxToolName is the most bytes of a name that [ToolName] makes. Clients put a
// prefix of their own before it, and models take 64.
const MaxToolName = 48

// separator is between the names of a server and of its tool.
const separator = "__"

// ToolName is the name by which clients know a tool of a server: SERVER__TOOL of
// letters, digits, _ and -, at most [MaxToolName] of them. It depends on nothing
// but the two names, so that it stays when other servers come and go, and no two
// tools have the same: a name that had to be changed ends in a hash of both.
func ToolName(server, tool string) string {
	s, t := clean(server), clean(tool)
	name := s + separator + t
	// The first separator divides a name that was not changed, so that it is of
	// no other server and tool.
	if s == server && t == tool && s != "" && t != "" && !strings.Contains(s, separator) && !strings.HasSuffix(s, "_") && len(name) <= MaxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	hash := "_" + hex.EncodeToString(sum[:4])
	if room := MaxToolName - len(hash); len(name) > room {
		// The tool says more than the server: it keeps what it needs, up to 28.
		keep := min(len(t), 28)
		s = strings.TrimRight(s[:min(len(s), room-len(separator)-keep)], "_-")
		t = t[:min(len(t), room-len(separator)-len(s))]
		name = s + separator + t
	}
	return name + hash
}

// clean replaces what not all clients take.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// MayHave reports whether a tool of that name, as [ToolName] makes them, may be
// of a server whose name begins with prefix.
func MayHave(prefix, name string) bool {
	const sure = MaxToolName - len("_01234567") - len(separator) - 28 // what is kept of a server's name at least
	p := clean(prefix)
	p = strings.TrimRight(p[:min(len(p), sure)], "_-")
	return strings.HasPrefix(name, p)
}
