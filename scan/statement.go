package scan

import (
	"bytes"
	"regexp"
	"sync"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// origins are what a statement reads, by language.
var origins = []struct {
	origin    origin
	languages language
	pattern   func() *regexp.Regexp
}{
	{environment, python | javascript, pattern.New(`\b(?:dict|str|repr|json\.dumps|list)\(\s*(?:dict\(\s*)?(?:os|__import__\(\s*\\?['"]os\\?['"]\s*\))\.environ\b|\bos\.environ\.(?:items|copy)\(\)|JSON\.stringify\(\s*process\.env\s*[,)]|\{\s*\.\.\.process\.env|Object\.(?:entries|assign)\([^)]*process\.env\s*\)|=\s*os\.environ\s*$|=\s*process\.env\s*;?\s*$`)},
	{environment, shell, pattern.New(`\$\(\s*(?:printenv|env|export\s+-p)\s*[|)]`)},
	{kept, python | javascript | shell, pattern.New(`(?i)["'/~](?:` + keptFiles + `)`)},
	{kept, python | javascript | shell, pattern.New(`security\s+find-(?:generic|internet)-password|secret-tool\s+lookup|169\.254\.169\.254/\S*(?:iam/|credentials|identity)`)},
	{fetched, python, pattern.New(`\burlopen\(|\b(?:requests|httpx|session)\.(?:get|post|request)\(`)},
	{fetched, javascript, pattern.New(`\bfetch\(|\baxios\b|\bhttps?\.get\(`)},
	{fetched, powershell, pattern.New(`(?i)\binvoke-(?:webrequest|restmethod)\b|\biwr\b|\birm\b|\.download(?:string|data)\(`)},
	{decoded, python, pattern.New(`\b(?:b(?:16|32|64|85)decode|a85decode|fromhex|unhexlify|decompress)\(`)},
	{decoded, javascript, pattern.New(`\batob\(|Buffer\.from\([^)]*,\s*["'\s]*(?:base64|hex|\s*["'])|fromCharCode`)},
	{decoded, powershell, pattern.New(`(?i)frombase64string`)},
	{connected, python, pattern.New(`\bsocket\.socket\(|\bcreate_connection\(`)},
	{connected, javascript, pattern.New(`\bnet\.(?:connect|createConnection)\(|\bnew\s+(?:net\.)?Socket\(`)},
	{started, python, pattern.New(`\bsubprocess\.\w+\(\s*\[?\s*["'](?:/bin/)?(?:ba|z)?sh["']`)},
	{started, javascript, pattern.New(`\b(?:spawn|exec|execFile)\(\s*["'](?:/bin/)?(?:(?:ba|z)?sh|cmd(?:\.exe)?|powershell(?:\.exe)?)["']`)},
	{runner, python, pattern.New(`\bgetattr\(\s*(?:__builtins__|builtins)\b|__builtins__\s*\[`)},
	{runner, javascript, pattern.New(`\b(?:globalThis|window|global)\[`)},
}

// What else of a statement counts.
var (
	oneSecret  = pattern.New(`(?:os\.environ(?:\.get)?|os\.getenv|getenv|process\.env)\s*(?:[\[(]\s*["']|\.)(` + secretName + `)`)
	publicKey  = pattern.New(`\b(?:id_\w+|\*)\.pub\b`)
	encodes    = pattern.New(`b64encode|b32encode|hexlify|\.hex\(\)|\bbtoa\(|toString\(\s*["'](?:base64|hex)["']|encodebytes`)
	serialises = pattern.New(`json\.dumps?\(|JSON\.stringify\(|urlencode\(|pickle\.dumps`)
	network    = pattern.New(`\brequests\.(?:post|put|patch|get|request)\(|\bhttpx\.\w+\(|\burlopen\(|\burllib\.request\.|\.sendall\(|\.sendto\(|\bfetch\(|\baxios\b|\bhttps?\.request\(|\.sendmail\(|\baiohttp\b|\bsession\.post\(|(?:os\.(?:popen|system)|subprocess\.\w+|exec|execSync|spawn)\([^\n]*\b(?:curl|dig|nslookup|wget|nc)\b`)
	shellSends = pattern.New(`\bcurl\b[^\n]*\s(?:-d|--data[a-z-]*|--json|-F|--form|-T|--upload-file)\b|\bcurl\b[^\n]*https?://[^\s"']*[?=/]\$|\bwget\b[^\n]*--post|\b(?:nc|ncat|nslookup|dig|drill)\s[^\n]*\$`)
	executes   = pattern.New(`(?:^|[^\w.$])(?:exec|eval)\s*\(|\bnew\s+Function\s*\(|\bvm\.run\w*\(|(?i:\[scriptblock\]::create\s*\(|(?:^|[\s|;(&])(?:iex|invoke-expression)\b)`)
	unpickles  = pattern.New(`\b(?:pickle|cPickle|dill|cloudpickle|marshal|joblib)\.loads?\s*\(`)

	defines    = pattern.New(`^\s*(?:(?:async\s+)?def|(?:export\s+)?(?:default\s+)?(?:async\s+)?function)\s+(\w+)\s*\(([^)]*)\)|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?\(([^)]*)\)\s*=>`)
	assigns    = pattern.New(`^\s*(?:export\s+)?(?:const\s+|let\s+|var\s+)?([A-Za-z_$][\w$]*)\s*(?::\s*[\w\[\], .]+)?\s*\+?=[^=]|^\s*with\s+[^\n]*\bas\s+([A-Za-z_]\w*)\s*:|^\s*(?:async\s+)?for\s+(?:\w+\s*,\s*)?([A-Za-z_]\w*)\s+in\b`)
	callbacks  = pattern.New(`\(?\b(\w+)\b\)?\s*=>|\bfunction\s*\(\s*(\w+)`)
	grows      = pattern.New(`\b(\w+)\s*\+=`)
	returns    = pattern.New(`^\s*return\b`)
	calls      = pattern.New(`(?:^|[^\w.$])([A-Za-z_]\w*)\s*\(`)
	writesTo   = pattern.New(`>>?\s*["']?\$\{?(\w+)|\bcp\s[^\n;|]*\s["']?\$\{?(\w+)[^\s"']*["']?\s*$`)
	identifier = pattern.New(`([A-Za-z_$][\w$]*)`)
	expansion  = pattern.New(`\$\{?([A-Za-z_]\w*)`)
	presented  = pattern.New(`(?i)(?:headers|auth|authorization)["']?\s*[=:]\s*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\([^()]*\)|[\w.$]+)|["'](?:authorization|x-api-key|api-key|x-goog-api-key)["']\s*:\s*[^,}]*`)
	flags      = pattern.New(`\s(?:-H|--header|-u|--user|--oauth2-bearer)[\s=]*(?:"[^"]*"|'[^']*'|[^\s"']+)`)
)

// matters reports whether a statement may read what is followed. It is cheap.
func matters(statement []byte) bool {
	for _, word := range sourceWords() {
		if bytes.Contains(statement, word) {
			return true
		}
	}
	return false
}

var sourceWords = sync.OnceValue(func() [][]byte {
	return bytes.Fields([]byte("environ process.env getenv .ssh .aws .gnupg id_ netrc .kube .docker gcloud .git-cred .npmrc .pypirc /etc/shadow ogin cookies _history wallet.dat " +
		".config/solana .ethereum keystore .electrum Exodus find-generic-password find-internet-password 169.254.169.254 urlopen urlretrieve requests. httpx. fetch( axios http.get https.get net. socket " +
		"b64decode b85decode fromhex unhexlify decompress atob( Buffer.from fromCharCode Invoke- nvoke- iwr irm DownloadString FromBase64String spawn Popen getattr( env"))
})
