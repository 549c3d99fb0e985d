package scan

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// originPatterns maps languages to patterns for the values that a statement
// reads.
var originPatterns = []struct {
	origin    origin
	languages language
	pattern   *lazyregexp.Regexp
}{
	{wholeEnvironment, python | javascript, lazyregexp.New(`\b(?:dict|str|repr|json\.dumps|list)\(\s*(?:dict\(\s*)?(?:os|__import__\(\s*\\?['"]os\\?['"]\s*\))\.environ\b|\bos\.environ\.(?:items|copy)\(\)|JSON\.stringify\(\s*process\.env\s*[,)]|\{\s*\.\.\.process\.env|[:,]\s*process\.env\s*[,})]|Object\.(?:entries|assign)\([^)]*process\.env\s*\)|=\s*os\.environ\s*$|=\s*process\.env\s*;?\s*$`)},
	{wholeEnvironment, shell, lazyregexp.New(`\$\(\s*(?:printenv|env|export\s+-p)\s*[|)]`)},
	{storedCredential, python | javascript | shell, lazyregexp.New(`(?i)["'/~](?:` + credentialFiles + `)|\btranscript_path\b`)},
	{storedCredential, python | javascript | shell, lazyregexp.New(`security\s+find-(?:generic|internet)-password|secret-tool\s+lookup|169\.254\.169\.254/\S*(?:iam/|credentials|identity)`)},
	{storedCredential, shell, lazyregexp.New(`\bin\s[^\n;]*\s?\.(?:ssh|gnupg|aws|docker|kube|azure)\b`)},
	{storedCredential, shell, lazyregexp.New(`\bfind\b[^\n]*(?:~|HOME)[^\n]*-name\s+["']?\.env|\b(?:cat|tar|zip|base64|gzip)\b[^\n|;]*(?:~|HOME\}?)"?/[^\s|;]*\.env\b`)},
	{storedCredential, python | javascript, lazyregexp.New(`(?:homedir\(\)|Path\.home\(\)|expanduser|["'/~](?:\.[\w-]+/)+)[^\n;]{0,60}\.env\b`)},
	{storedCredential, shell, lazyregexp.New(`\bread\s+-\w*s\w*[^\n;]*(?:password for|\[sudo\]|login password)`)},
	{fetchedData, python, lazyregexp.New(`\burlopen\(|\b(?:requests|httpx|session)\.(?:get|post|request)\(`)},
	{fetchedData, javascript, lazyregexp.New(`\bfetch\(|\baxios\b|\bhttps?\.get\(`)},
	{fetchedData, powershell, lazyregexp.New(`(?i)\binvoke-(?:webrequest|restmethod)\b|\biwr\b|\birm\b|\.download(?:string|data)\(`)},
	{decodedData, python, lazyregexp.New(`\b(?:b(?:16|32|64|85)decode|a85decode|fromhex|unhexlify|decompress)\(`)},
	{decodedData, javascript, lazyregexp.New(`\batob\(|Buffer\.from\([^)]*,\s*["'\s]*(?:base64|hex|\s*["'])|fromCharCode`)},
	{decodedData, powershell, lazyregexp.New(`(?i)frombase64string`)},
	{openConnection, python, lazyregexp.New(`\bsocket\.socket\(|\bcreate_connection\(`)},
	{openConnection, javascript, lazyregexp.New(`\bnet\.(?:connect|createConnection)\(|\bnew\s+(?:net\.)?Socket\(`)},
	{runningShell, python, lazyregexp.New(`\b\w+\.(?:call|run|Popen|check_\w+|getoutput)\(\s*\[?\s*["'](?:/bin/)?(?:ba|z)?sh["']`)},
	{runningShell, javascript, lazyregexp.New(`\b(?:spawn|exec|execFile)\(\s*["'](?:/bin/)?(?:(?:ba|z)?sh|cmd(?:\.exe)?|powershell(?:\.exe)?)["']`)},
	{codeRunner, python, lazyregexp.New(`\bgetattr\(\s*(?:__builtins__|builtins)\b|__builtins__\s*\[`)},
	{codeRunner, javascript, lazyregexp.New(`\b(?:globalThis|window|global)\[`)},
}

// Patterns for other properties of a statement.
var (
	oneSecret        = lazyregexp.New(`(?:os\.environ(?:\.get)?|os\.getenv|getenv|process\.env)\s*(?:[\[(]\s*["']|\.)(` + secretName + `)`)
	publicKey        = lazyregexp.New(`\b(?:id_\w+|\*)\.pub\b`)
	encodingCall     = lazyregexp.New(`b64encode|b32encode|hexlify|\.hex\(\)|\bbtoa\(|toString\(\s*["'](?:base64|hex)["']|encodebytes`)
	serializingCall  = lazyregexp.New(`json\.dumps?\(|JSON\.stringify\(|urlencode\(|pickle\.dumps`)
	networkCall      = lazyregexp.New(`\brequests\.(?:post|put|patch|get|request)\(|\bhttpx\.\w+\(|\burlopen\(|\burllib\.request\.|\.sendall\(|\.sendto\(|\bfetch\(|\baxios\b|\bhttps?\.request\(|\.sendmail\(|\.end\(|\.request\(|\bgethostbyname\(|\baiohttp\b|\bsession\.post\(|(?:os\.(?:popen|system)|subprocess\.\w+|exec|execSync|spawn)\([^\n]*\b(?:curl|dig|nslookup|wget|nc)\b`)
	shellSendCommand = lazyregexp.New(`\bcurl\b[^\n]*\s(?:-d|--data[a-z-]*|--json|-F|--form|-T|--upload-file)\b|\bcurl\b[^\n]*https?://[^\s"']*[?=/]\$|\bwget\b[^\n]*--post|\b(?:nc|ncat|nslookup|dig|drill)\s[^\n]*\$|\|\s*(?:nc|ncat)\s`)
	executingCall    = lazyregexp.New(`(?:^|[^\w.$])(?:exec|eval)\s*\(|\bnew\s+Function\s*\(|\bvm\.run\w*\(|(?i:\[scriptblock\]::create\s*\(|(?:^|[\s|;(&])(?:iex|invoke-expression)\b)`)
	unpicklingCall   = lazyregexp.New(`\b(?:pickle|cPickle|dill|cloudpickle|marshal|joblib)\.loads?\s*\(`)

	functionDefinition = lazyregexp.New(`^\s*(?:(?:async\s+)?def|(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?)\s+(\w+)\s*\(([^)]*)\)|^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\s*=\s*(?:async\s*)?(?:function\s*\w*\s*)?\(?([^()=]*)\)?\s*(?:=>|\{)|^\s*(?:module\.)?exports(?:\.\w+)?\s*=\s*(?:async\s*)?(?:function\s+)?(\w*)\s*(?:\(([^)]*)\)|(\w+)\s*=>)`)
	shellFunction      = lazyregexp.New(`^\s*(?:function\s+)?([\w-]+)\s*\(\)\s*\{?`)
	shellCall          = lazyregexp.New(`(?:^|[;&|({` + "`" + `]|\bdo\b|\bthen\b|\$\()\s*([A-Za-z_][\w-]*)`)
	substitution       = lazyregexp.New(`(?:\$\(|` + "`" + `)\s*([A-Za-z_][\w-]*)`)
	exportedValue      = lazyregexp.New(`^\s*(?:module\.)?exports\.(\w+)\s*=`)
	partAssignment     = lazyregexp.New(`(?:^|[\s;{(:])([A-Za-z_$][\w$]*)(?:\[[^\]\n]{0,80}\]|\.\w+)+\s*=[^=>]|\b([A-Za-z_$][\w$]*)(?:\.(?:append|push|extend|update|add|write|set|setdefault|unshift|concat)\(|\s*\+=)`)
	assignment         = lazyregexp.New(`^\s*(?:export\s+)?(?:const\s+|let\s+|var\s+)?([A-Za-z_$][\w$]*)\s*(?::\s*[\w\[\], .]+)?\s*\+?=[^=]|^\s*with\s+[^\n]*\bas\s+([A-Za-z_]\w*)\s*:|^\s*(?:(?:async\s+)?for\s+|for\s*(?:await\s*)?\(\s*(?:const|let|var)\s+)([^\n]{1,80}?)\s+(?:in|of)\b|^\s*(?:const\s+|let\s+|var\s+)?[\[({]?\s*([\w$]+(?:\s*[,:]\s*[\w$*]+)+)\s*[\])}]?\s*=[^=]`)
	callbackParameter  = lazyregexp.New(`\(?\b(\w+)\b\)?\s*=>|\bfunction\s*\(\s*(\w+)`)
	wholeCall          = lazyregexp.New(`^\s*=\s*(?:await\s+)?([A-Za-z_]\w*)\([^()]*\)\s*;?\s*$`)
	requestObject      = lazyregexp.New(`\bRequest\(|(?:headers|data|body|payload|params|url)\s*=`)
	functionCall       = lazyregexp.New(`(?:^|[^\w.$])([A-Za-z_]\w*)\s*\(`)
	writeTarget        = lazyregexp.New(`\b(\w+)\+=\(|>>?\s*["']?\$\{?(\w+)|\bcp\s[^\n;|]*\s["']?\$\{?(\w+)[^\s"']*["']?\s*$`)
	identifier         = lazyregexp.New(`([A-Za-z_$][\w$]*)`)
	expansion          = lazyregexp.New(`\$\{?([A-Za-z_]\w*)|\$\{?([@*1-9])`)
	requestHeader      = lazyregexp.New(`(?i)[,(]\s*env\s*[=:]\s*(?:\{[^{}]*\}|[\w.]+(?:\([^()]*\))?)|(?:headers|auth|authorization)["']?\s*[=:]\s*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\([^()]*\)|[\w.$]+)|["'](?:authorization|x-api-key|api-key|x-goog-api-key)["']\s*:\s*[^,}]*`)
	headerFlag         = lazyregexp.New(`\s(?:-H|--header|-u|--user|--oauth2-bearer)[\s=]*(?:"[^"]*"|'[^']*'|[^\s"']+)`)
)

// findSources returns the ends of the words of sources in code, in order.
func findSources(code []byte) []int {
	var out []int
	sourceWords.get(func() *wordMatcher { return newWordMatcher(listSourceWords()) }).findAll(code, func(_ uint16, end int) {
		if n := len(out); n == 0 || out[n-1] != end {
			out = append(out, end)
		}
	})
	return out
}

var sourceWords lazy[*wordMatcher]

// listSourceWords returns words of which each match of originPatterns and
// oneSecret contains one.
func listSourceWords() []string {
	return strings.Fields(strings.ToLower("transcript_path .call( .run( .check_ environ process.env getenv [sudo] password env printenv .ssh .aws .gnupg id_ netrc .kube .docker gcloud .git-cred .npmrc .pypirc /etc/shadow ogin cookies _history wallet.dat " +
		".config/solana .ethereum keystore .electrum Exodus find-generic-password find-internet-password 169.254.169.254 urlopen urlretrieve requests. httpx. fetch( axios http.get https.get net. socket " +
		"exodus Ledger .pgpass hosts.yml .azure .gnupg .docker .kaggle .openclaw .clawdbot auth.json .credentials.json keychains local\\state .env leveldb " +
		"b64decode b85decode fromhex unhexlify decompress atob( Buffer.from fromCharCode Invoke- nvoke- iwr irm DownloadString FromBase64String spawn Popen getattr( env"))
}
