package scan

import (
	"strings"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// kept are files in which people and programs keep credentials.
const kept = `(\.ssh/|\.ssh\b|\.aws/|\.gnupg|\.netrc|\.kube/config|\.docker/config\.json|\.config/gcloud|\.git-credentials|\.npmrc|\.pypirc|\bid_rsa\b|\bid_ed25519\b|/etc/shadow|login\s?data\b|cookies\.sqlite|\.bash_history|\.zsh_history|wallet\.dat|\.env\b)`

// sends is a command that sends what it is given.
const sends = `\b(curl|wget|nc|ncat|netcat|socat|telnet|ftp|scp|rsync|http|openssl\s+s_client)\b`

// flowRules are about secrets on their way out. Those without a pattern follow
// values through the statements of a program (flow.go).
func flowRules() []Rule {
	return []Rule{
		{ID: "exfil-environment", Severity: High, Looks: Code, languages: commands, words: []string{"env", "printenv"},
			pattern: re(`\b(curl|wget|nc|ncat|http)\b[^\n]*(\$\(|` + "`" + `)\s*(env|printenv|set|export\s+-p)\s*(\||\)|` + "`" + `)|(^|[\s;&("'])(env|printenv|export\s+-p)\s*(\|\s*[^|\n]+)*\|\s*(xargs\s+)?` + sends),
			Message: "it sends the variables of the environment, where keys are", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-files", Severity: High, Looks: Code, languages: commands, words: []string{".ssh", ".aws", ".gnupg", ".netrc", ".kube", ".docker/config", "gcloud", ".git-credentials", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "/etc/shadow", "login data", "cookies.sqlite", "_history", "wallet.dat", ".env"},
			pattern: re(`(cat|tar|zip|base64|gzip|xxd|head|openssl|find|grep)\b[^\n;]*` + kept + `[^\n;]*\|\s*([^|\n;]+\|\s*)*(xargs\s+)?` + sends + `|\bcurl\b[^\n;]*(-d|--data\S*|-F|--form|-T|--upload-file)[\s=]*["']?[^\n;]*(@|-T\s*|--upload-file\s*)["']?[^\s;]*` + kept + `|\bcurl\b[^\n]*\$\(\s*(cat|base64)\s[^)]*` + kept + `|\b(nc|ncat)\b[^\n;]*<\s*\S*` + kept),
			Message: "it sends files in which people keep credentials", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-variable", Severity: High, Looks: Code, languages: shell | inline | powershell | otherCode | config, words: []string{"curl", "wget"},
			pattern: exact(`\b(?:curl|wget)\b[^\n;|]*?(?:\s(?:-d|--data[a-z-]*|-F|--form|--post-data|--body-data)[\s=]*["']?[^\n;|]*?(?:\$\(|\$\{?)(` + secretName + `)|https?://[^\s"']*[?&/][^\s"']*\$\{?(` + secretName + `))`),
			accept:  func(m []string) bool { return !ownSecret(m[0], m[1]+m[3]) },
			Message: "it sends a secret to a host that has no part in its name", Advice: "find out whose the host is"},
		{ID: "exfil-piped", Severity: High, Looks: Code, languages: commands, words: []string{"curl", "nc ", "ncat", "wget"},
			pattern: re(`\b(echo|printf)\b[^|\n]*(credential|secret|token|passw|api_?key|private_?key)[^|\n]*\$[^|\n]*\|\s*(base64[^|\n]*\|\s*)?(curl|nc|ncat|wget)\b[^\n]*(@-|--post-file|\s\d{2,5}\b)|\$[^|\n]*\|\s*base64\b[^|\n]*\|\s*(tr\b[^|\n]*\|\s*)?(xargs\s+)?(curl|nc|ncat|wget)\b[^\n]*(@-|-T\s*-|\s\d{2,5}\b|\s-)|\bbase64\s+(-w\s*0\s+)?["']?(/tmp/|~|\$home)[^|\n]*\|\s*(curl|nc|ncat|wget)\b`),
			Message: "it encodes or labels a value and pipes it to an address", Advice: "find out what the value is, and whose the address"},
		{ID: "exfil-dns", Severity: High, Looks: Code, languages: commands, words: []string{"dig ", "nslookup", "host ", "drill ", "gethostbyname", "resolver"},
			pattern: re(`\b(dig|nslookup|drill|host)\s+[^\n;|]*(\$\([^)]*(base64|xxd|cat|env|whoami|hostname|echo)[^)]*\)|` + "`" + `[^` + "`" + `]*(base64|xxd|cat\s)[^` + "`" + `]*` + "`" + `|\$\{?(data|secret|token|payload|encoded|chunk|key)\w*\}?|\{(data|secret|token|payload|encoded|chunk|key)\w*\})[\w-]*\.[\w.-]+|gethostbyname\s*\(\s*f?["'][^"']*\{(data|secret|token|payload|encoded|chunk|key)\w*\}`),
			Message: "it puts data into names that it looks up, past what filters see", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-flow", Severity: High, Looks: Code, languages: python | javascript,
			words:   []string{"environ", "process.env", ".ssh", ".aws/", "id_rsa", "id_ed25519", ".netrc", ".kube/config", ".git-credentials", ".npmrc", ".pypirc", "/etc/shadow", "login data", "cookies.sqlite", "wallet.dat", "getenv"},
			Message: "what it reads of keys, or of the whole environment, is sent", Advice: "do not run it outside a sandbox"},
		{ID: "credentials-gathered", Severity: High, Looks: Code, languages: python | javascript, words: []string{"environ", "process.env", "getenv"},
			Message: "it puts several keys of the environment together in one text", Advice: "find out where the text goes"},
	}
}

// ownSecret reports whether a secret goes to the service that gave it: the name
// of one is in that of the other.
func ownSecret(command, variable string) bool {
	command = strings.ToLower(command)
	if strings.Contains(command, "localhost") || strings.Contains(command, "127.0.0.1") {
		return true
	}
	for _, m := range address().FindAllStringSubmatch(command, 8) {
		for word := range strings.SplitSeq(strings.ToLower(variable), "_") {
			if len(word) > 2 && !generic[word] && strings.Contains(m[1], word) {
				return true
			}
		}
	}
	return !address().MatchString(command) // to a host that is a variable too
}

// generic are words of names of secrets that name no service.
var generic = map[string]bool{"key": true, "token": true, "secret": true, "password": true, "access": true, "api": true, "auth": true, "private": true, "account": true, "service": true, "session": true, "client": true, "credential": true, "credentials": true}

var address = pattern.New(`https?://([a-z0-9.-]+)`)

// What a statement does with values, by language.
var (
	wholeEnvironment = pattern.New(`\b(?:dict|str|repr|json\.dumps|list)\(\s*(?:dict\(\s*)?(?:os|__import__\(\s*\\?['"]os\\?['"]\s*\))\.environ\b|\bos\.environ\.(?:items|copy)\(\)|JSON\.stringify\(\s*process\.env\s*[,)]|\{\s*\.\.\.process\.env|Object\.(?:entries|assign)\([^)]*process\.env\s*\)|=\s*os\.environ\s*$|=\s*process\.env\s*;?\s*$`)
	oneSecret        = pattern.New(`(?:os\.environ(?:\.get)?|os\.getenv|getenv|process\.env)\s*(?:[\[(]\s*["']|\.)(` + secretName + `)`)
	keptFile         = pattern.New(`(?i)["'/~]` + strings.Replace(kept, `|\.env\b`, "", 1))
	encodes          = pattern.New(`b64encode|b32encode|hexlify|\.hex\(\)|\bbtoa\(|toString\(\s*["'](?:base64|hex)["']|encodebytes`)
	serialises       = pattern.New(`json\.dumps?\(|JSON\.stringify\(|urlencode\(|pickle\.dumps`)
	network          = pattern.New(`\brequests\.(?:post|put|patch|get|request)\(|\bhttpx\.\w+\(|\burlopen\(|\burllib\.request\.|\.sendall\(|\.sendto\(|\bfetch\(|\baxios\b|\bhttps?\.request\(|\.sendmail\(|\baiohttp\b|\bsession\.post\(|(?:os\.(?:popen|system)|subprocess\.\w+|exec|execSync|spawn)\([^\n]*\b(?:curl|dig|nslookup|wget|nc)\b`)
	assigns          = pattern.New(`^\s*(?:export\s+)?(?:const\s+|let\s+|var\s+)?([A-Za-z_$][\w$]*)\s*(?::\s*[\w\[\], .]+)?\s*\+?=[^=]|^\s*with\s+[^\n]*\bas\s+([A-Za-z_]\w*)\s*:|^\s*(?:async\s+)?for\s+(?:\w+\s*,\s*)?([A-Za-z_]\w*)\s+in\b`)
	identifier       = pattern.New(`[A-Za-z_$][\w$]*`)
	presented        = pattern.New(`(?i)(?:headers|auth|authorization)["']?\s*[=:]\s*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\([^()]*\)|[\w.$]+)|["'](?:authorization|x-api-key|api-key|x-goog-api-key)["']\s*:\s*[^,}]*`)
)
