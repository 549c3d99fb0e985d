package scan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// looksLikeCode matches words that are typical of decoded programs.
var looksLikeCode = lazyregexp.New(`(?i)\b(import\s+(os|sys|socket|subprocess|base64|requests|urllib)|exec\s*\(|eval\s*\(|subprocess\.|os\.system|curl\s+-?|wget\s+|/bin/(ba)?sh|bash\s+-[ic]|powershell|require\s*\(\s*['"](child_process|net|https?|fs)|invoke-expression|\biex\b|new-object|child_process|downloadstring|chmod\s+\+x|/dev/tcp/)`)

// looksLikeInstructions matches words that are typical of decoded instructions.
var looksLikeInstructions = lazyregexp.New(`(?i)\b(you (have|must|are|should)|do not (reveal|mention|tell|quote)|conversation|the user|system prompt|instructions?|credentials|send (it|them|the)|never (say|reveal)|ohne|не |nicht erwähn|ne pas|sin informar)|用户|對話|对话|指令|不要|ユーザー|사용자`)

// decodesToInstructions reports whether base64 text contains instructions.
func decodesToInstructions(s string) bool {
	out, ok := decode(strings.Join(strings.Fields(s), ""))
	return ok && len(out) > 40 && (looksLikeInstructions.Match(out) || looksLikeCode.Match(out))
}

// hiddenNames lists names of modules and functions that programs hide.
var hiddenNames = []string{"os", "fs", "subprocess", "socket", "requests", "urllib", "base64", "exec", "eval", "system", "popen", "post", "urlopen", "child_process", "http", "https", "net", "getattr", "__import__", "import", "environ", "compile", "marshal", "ctypes", "curl", "wget", "bash", "powershell", "function", "execsync", "spawn", "paramiko", "ftplib", "smtplib"}

// isHiddenName reports whether text is a name in hiddenNames that a program
// would not spell in pieces without reason.
func isHiddenName(s string) bool {
	return len(s) > 1 && slices.Contains(hiddenNames, strings.ToLower(s))
}

func reverse(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// decodesToCode reports whether base64 or hex text contains a program. It
// decodes up to three layers.
func decodesToCode(s string) bool {
	for range 3 {
		out, ok := decode(s)
		if !ok {
			return false
		}
		out = bytes.ReplaceAll(out, []byte{0}, nil) // UTF-16, as PowerShell decodes it
		if looksLikeCode.Match(out) {
			return true
		}
		s = strings.TrimSpace(string(out))
	}
	return false
}

func decode(s string) ([]byte, bool) {
	if out, err := hex.DecodeString(s); err == nil {
		return out, isText(out)
	}
	if out, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "=")); err == nil {
		return out, isText(out)
	}
	return nil, false
}

// isText reports whether b is text with one or two bytes per character.
func isText(b []byte) bool {
	odd := 0
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' && c != 0 {
			odd++
		}
	}
	return len(b) > 0 && odd == 0 && (utf8.Valid(b))
}

// isPublicAddress reports whether an IP address is public and not reserved for
// documentation.
func isPublicAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "100.64.0.0/10", "0.0.0.0/8", "198.18.0.0/15"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return false
		}
	}
	return s != "8.8.8.8" && s != "1.1.1.1" && s != "1.2.3.4"
}
