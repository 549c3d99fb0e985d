package scan

// credentialFiles matches files in which users and programs store credentials.
// projectCredentialFiles also matches those in a project.
const (
	credentialFiles        = `exodus\.wallet|Ledger Live|\.pgpass\b|\.config/gh/hosts|\.azure/|\.kaggle\b|\.openclaw\b|\.clawdbot\b|\.config/openai|\.credentials\.json|Library/Keychains|Local Storage/leveldb|\.ssh/|\.ssh\b|\.aws/|\.gnupg|\.netrc|\.kube/config|\.docker/config\.json|\.config/gcloud|\.git-credentials|\.npmrc|\.pypirc|\bid_rsa\b|\bid_ed25519\b|/etc/shadow|login\s?data\b|cookies\.sqlite|\.bash_history|\.zsh_history|wallet\.dat|\.config/solana|\.ethereum/keystore|\.electrum/wallets`
	projectCredentialFiles = `(` + credentialFiles + `|\.env\b)`
)

// sendCommands matches commands that send data over the network.
const sendCommands = `\b(curl|wget|nc|ncat|netcat|socat|telnet|ftp|scp|rsync|http|openssl\s+s_client)\b`

// flowRules returns the rules about sending secrets. Rules without a pattern
// track tainted values through a program's statements (flow.go).
func flowRules() []Rule {
	return []Rule{
		{ID: "exfil-environment", Severity: High, Target: Code, languages: commandLanguages, words: []string{"env", "printenv"},
			pattern: ignoreCase(`\b(curl|wget|nc|ncat|http)\b[^\n]*(\$\(|` + "`" + `)\s*(env|printenv|set|export\s+-p)\s*(\||\)|` + "`" + `)|(^|[\s;&("'])(env|printenv|export\s+-p)\s*(\|\s*[^|\n]+)*\|\s*(xargs\s+)?` + sendCommands),
			Message: "sends environment variables, which may contain keys", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-files", Severity: High, Target: Code, languages: commandLanguages, words: []string{".ssh", ".aws", ".gnupg", ".netrc", ".kube", ".docker/config", "gcloud", ".git-credentials", ".npmrc", ".pypirc", "id_rsa", "id_ed25519", "/etc/shadow", "login data", "cookies.sqlite", "_history", "wallet.dat", ".env"},
			pattern: ignoreCase(`(cat|tar|zip|base64|gzip|xxd|head|openssl|find|grep)\b[^\n;]*` + projectCredentialFiles + `[^\n;]*\|\s*([^|\n;]+\|\s*)*(xargs\s+)?` + sendCommands + `|\bcurl\b[^\n;]*(-d|--data\S*|-F|--form|-T|--upload-file)[\s=]*["']?[^\n;]*(@|-T\s*|--upload-file\s*)["']?[^\s;]*` + projectCredentialFiles + `|\bcurl\b[^\n]*\$\(\s*(cat|base64)\s[^)]*` + projectCredentialFiles + `|\b(nc|ncat)\b[^\n;]*<\s*\S*` + projectCredentialFiles),
			Message: "sends files with credentials", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-variable", Severity: High, Target: Code, languages: shell | inline | powershell | otherCode | config, words: []string{"curl", "wget"},
			pattern: caseSensitive(`\b(?:curl|wget)\b[^\n;|]*?(?:\s(?:-d|--data[a-z-]*|-F|--form|--post-data|--body-data)[\s=]*["']?[^\n;|]*?(?:\$\(|\$\{?)(` + secretName + `)|https?://[^\s"']*[?&/][^\s"']*\$\{?(` + secretName + `))[^\n;|]*`),
			accept:  func(m []string) bool { return !isSentToIssuer(m[0], m[1]+m[3]) },
			Message: "sends a secret to an unrelated host", Advice: "find out who owns the host"},
		{ID: "exfil-piped", Severity: High, Target: Code, languages: commandLanguages, words: []string{"curl", "nc ", "ncat", "wget"},
			pattern: ignoreCase(`\b(echo|printf)\b[^|\n]*(credential|secret|token|passw|api_?key|private_?key)[^|\n]*\$[^|\n]*\|\s*(base64[^|\n]*\|\s*)?(curl|nc|ncat|wget)\b[^\n]*(@-|--post-file|\s\d{2,5}\b)|\$[^|\n]*\|\s*base64\b[^|\n]*\|\s*(tr\b[^|\n]*\|\s*)?(xargs\s+)?(curl|nc|ncat|wget)\b[^\n]*(@-|-T\s*-|\s\d{2,5}\b|\s-)|\bbase64\s+(-w\s*0\s+)?["']?(/tmp/|~|\$home)[^|\n]*\|\s*(curl|nc|ncat|wget)\b`),
			Message: "encodes a value and sends it to an address", Advice: "find out what the value is and who owns the address"},
		{ID: "exfil-dns", Severity: High, Target: Code, languages: commandLanguages, words: []string{"dig ", "nslookup", "host ", "drill ", "gethostbyname", "resolver"},
			pattern: ignoreCase(`\b(dig|nslookup|drill|host)\s+[^\n;|]*(\$\([^)]*(base64|xxd|cat|env|whoami|hostname|echo)[^)]*\)|` + "`" + `[^` + "`" + `]*(base64|xxd|cat\s)[^` + "`" + `]*` + "`" + `|\$\{?(data|secret|token|payload|encoded|chunk|key)\w*\}?|\{(data|secret|token|payload|encoded|chunk|key)\w*\})[\w-]*\.[\w.-]+|gethostbyname\s*\(\s*f?["'][^"']*\{(data|secret|token|payload|encoded|chunk|key)\w*\}`),
			Message: "hides data in DNS lookups", Advice: "do not run it outside a sandbox"},
		{ID: "exfil-flow", Severity: High, Target: Code, flows: true, languages: python | javascript | shell,
			words:   []string{"find-generic-password", "find-internet-password", "169.254.169.254", ".config/solana", ".ethereum", ".electrum", "environ", "process.env", ".ssh", ".aws/", "id_rsa", "id_ed25519", ".netrc", ".kube/config", ".git-credentials", ".npmrc", ".pypirc", "/etc/shadow", "login data", "cookies.sqlite", "wallet.dat", "exodus.wallet", ".pgpass", "hosts.yml", ".docker", ".gnupg", "getenv", ".kaggle", ".openclaw", ".clawdbot", ".config/openai", ".credentials.json", "transcript_path", "[sudo]", "password for", "keychains", "leveldb", ".env"},
			Message: "sends keys or the whole environment", Advice: "do not run it outside a sandbox"},
		{ID: "credentials-gathered", Severity: High, Target: Code, flows: true, languages: python | javascript, words: []string{"environ", "process.env", "getenv"},
			Message: "collects several keys of the environment in one string", Advice: "find out where the string goes"},
	}
}
