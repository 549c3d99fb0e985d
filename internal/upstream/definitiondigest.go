package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// DefinitionDigest returns the hex-encoded SHA-256 hash of a tool's complete
// definition.
func DefinitionDigest(t *mcp.Tool) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
