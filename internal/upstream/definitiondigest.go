package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// DefinitionDigest returns the hash of everything that a tool's definition
// says.
func DefinitionDigest(t *mcp.Tool) string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
