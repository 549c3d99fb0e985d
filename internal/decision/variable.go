package decision

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/loadout-dev/loadout/policy"
)

// variablePrefix is the prefix of the name of a [policy.Need] for a platform
// value. No skill name starts with it, because skill names contain no colon.
const variablePrefix = "variable:"

// maxTarget is the maximum length in bytes of a target in the name of a
// [policy.Need].
const maxTarget = 800

// VariableNeed returns the [policy.Need] for sending a platform value to a
// target: the hosts or the command that receive it. The digest covers the whole
// target, even if the name contains only its start.
func VariableNeed(name, target string) policy.Need {
	sum := sha256.Sum256([]byte(name + "\x00" + target))
	if len(target) > maxTarget {
		target = strings.ToValidUTF8(target[:maxTarget], "") + "…"
	}
	return policy.Need{Name: variablePrefix + name + "@" + target, Digest: policy.Digest("sha256:" + hex.EncodeToString(sum[:]))}
}

// IsForPlatformValue reports whether n is the need to send a platform value; see
// [VariableNeed].
func IsForPlatformValue(n policy.Need) bool { return strings.HasPrefix(n.Name, variablePrefix) }

// DescribeNeed returns a need's name for display, such as "sending task_token to
// api.example.com".
func DescribeNeed(n policy.Need) string {
	name, target, ok := strings.Cut(strings.TrimPrefix(n.Name, variablePrefix), "@")
	if !ok || !IsForPlatformValue(n) {
		return n.Name
	}
	return "sending " + name + " to " + target
}
