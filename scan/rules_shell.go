package scan

import (
	"strings"
	"unicode"
)

// commands is where command lines stand: in scripts, in strings of programs,
// and in configuration.
const commands = anyCode | config

// fetches is a command that fetches, up to what follows it.
const (
	fetches = `\b(curl|wget|aria2c|fetch|http)\b(?:[^|;&\n]|\\\n)*(https?://|\$\{?\w|ftp://|[\w-]+\.[a-z]{2,})(?:[^|;\n\\]|\\\n|\\.)*`
	runs    = `(sudo\s+(-\w+\s+)*)?(env\s+(\w+=\S+\s+)*)?(\S*/)?(((ba|z|k|da|a|fi)?sh|iex|powershell|pwsh)\b|(python[\d.]*|node|perl|ruby|php|osascript)\s*(-\s*)?($|[\n;&|"')` + "`" + `]))`
)

// installers are where well-known tools tell people to fetch and run from.
var installers = []string{"astral.sh", "sh.rustup.rs", "rustup.rs", "get.docker.com", "deno.land", "bun.sh", "get.pnpm.io", "fnm.vercel.app", "raw.githubusercontent.com/nvm-sh/", "raw.githubusercontent.com/homebrew/",
	"install.python-poetry.org", "get.helm.sh", "raw.githubusercontent.com/helm/", "aka.ms/", "foundry.paradigm.xyz", "l2.io", "install.determinate.systems", "nixos.org", "cli.github.com", "fly.io/install", "get.sdkman.io", "starship.rs", "ollama.com/install", "ollama.ai/install",
	"claude.ai/install", "deb.nodesource.com", "rpm.nodesource.com", "bootstrap.pypa.io", "pyenv.run", "mise.run", "mise.jdx.dev", "get.k3s.io", "taskfile.dev", "sdk.cloud.google.com", "cli.run.pre", "chocolatey.org/install", "community.chocolatey.org/install", "get.scoop.sh", "win.rustup.rs",
	"raw.githubusercontent.com/github/", "gh.io/", "install.duckdb.org", "dot.net/", "download.docker.com", "get.volta.sh", "vercel.com", "supabase.com", "aspire.dev", "raw.githubusercontent.com/cli/"}

// installer reports whether all that a command names to fetch from is a listed one: a
// listed host beside another, or as a part of another, is none.
func installer(match string) bool {
	found := addresses(match)
	for _, address := range found {
		if !listed(address) {
			return false
		}
	}
	return len(found) > 0
}

// addresses are the words of a command that it may fetch from, without their schemes.
func addresses(match string) []string {
	var out []string
	words := strings.FieldsFunc(strings.ToLower(match), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`=()<>|;,", r) })
	for _, word := range words {
		_, rest, schemed := strings.Cut(word, "://")
		if !schemed {
			rest = word
		}
		host, _, _ := strings.Cut(rest, "/")
		if schemed || unicode.IsLetter(rune(word[0])) && strings.Contains(host, ".") {
			out = append(out, rest)
		}
	}
	return out
}

// listed reports whether an address without its scheme begins with a listed one.
func listed(address string) bool {
	host, _, _ := strings.Cut(address, "/")
	for _, entry := range installers {
		if host == entry || host == "www."+entry || strings.Contains(entry, "/") && strings.HasPrefix(address, entry) {
			return true
		}
	}
	return false
}

// shellRules are about commands.
func shellRules() []Rule {
	return []Rule{
		{ID: "fetch-run", Severity: High, Looks: Code, languages: commands, words: []string{"curl", "wget", "aria2c"},
			pattern: re(fetches + `\|\s*(base64\s+(-d|-D|--decode)\s*\|\s*|gunzip[^|]*\|\s*|tee\s[^|]*\|\s*)*` + runs + `|\b((ba|z|da)?sh|source|eval|\.)\s+(-c\s+)?["']?(<\(|\$\(|` + "`" + `)\s*(curl|wget)\b[^)]*`),
			accept:  func(m []string) bool { return !installer(m[0]) },
			Message: "it runs what it fetches, without anybody having seen it",
			Advice:  "fetch it, read it, and bring it along with the skill or pin its hash"},
		{ID: "fetch-run-installer", Severity: Low, Looks: Code, languages: commands, words: []string{"curl", "wget"},
			pattern: re(fetches + `\|\s*` + runs),
			accept:  func(m []string) bool { return installer(m[0]) },
			Message: "it runs the installer of a well-known tool as it is fetched",
			Advice:  "install the tool yourself, by your package manager"},
		{ID: "fetch-then-run", Severity: High, Looks: Code, languages: commands, words: []string{"curl", "wget"},
			pattern: re(`\b(curl|wget)\b[^|;&]*?(-o|-O|--output|--output-document|>)\s*["']?(/tmp/[^\s;&"']+|/var/tmp/[^\s;&"']+|/dev/shm/[^\s;&"']+|\.[\w-][^\s;&"']*)["']?[^;&|\n]*(&&|;|\n)+\s*((sudo\s+)?chmod\s+(\+x|[0-7]*[157][0-7]*|u\+x|a\+x)\s+[^;&\n]+(&&|;|\n)\s*)(sudo\s+)?(\./|/tmp/|/var/tmp/|/dev/shm/|(ba)?sh\s)`),
			Message: "it fetches a program into a temporary place, makes it executable, and runs it",
			Advice:  "find out what the program is; bring it along, or install it from a registry"},
		{ID: "fetch-run-powershell", Severity: High, Looks: Code, languages: commands | powershell, words: []string{"iex", "invoke-expression", "downloadstring", "-encodedcommand", "-enc "},
			pattern: re(`(\b(irm|iwr|invoke-webrequest|invoke-restmethod|downloadstring)\b[^|;\n]*\|\s*(iex|invoke-expression)\b|\b(iex|invoke-expression)\b\s*[\s(]*(\(?new-object\s+[\w.]*webclient|\(?\s*(irm|iwr|invoke-webrequest|invoke-restmethod)\b)[^\n]*|powershell[^\n]*\s-(enc|encodedcommand|e)\s+[A-Za-z0-9+/=]{20,})`),
			accept:  func(m []string) bool { return !installer(m[0]) },
			Message: "it runs what it fetches or decodes, without anybody having seen it",
			Advice:  "fetch it, read it, and bring it along with the skill"},
		{ID: "fetch-run-code", Severity: High, Looks: Code, languages: commands, words: []string{"urlopen", "requests.get", "urllib", "fetch(", "axios", "httpx.get", "net/http"},
			pattern: re(`\b(exec|eval)\s*\(\s*(compile\s*\(\s*)?(await\s+)?\(?\s*(await\s+)?(urllib\.request\.urlopen|urlopen|requests\.get|httpx\.get|fetch|axios\.get)\s*\(|\beval\s*\(\s*await\s*\(\s*await\s+fetch|python[\d.]*\s+-c\s+[^\n]*(urlopen|requests\.get)[^\n]*\b(exec|eval)\b|python[\d.]*\s+-c\s+[^\n]*\b(exec|eval)\b[^\n]*(urlopen|requests\.get)`),
			Message: "it runs code that it fetches",
			Advice:  "bring the code along with the skill, where it can be read"},
		{ID: "decode-run", Severity: High, Looks: Code, languages: commands, words: []string{"base64", "b64decode", "xxd", "frombase64string", "fromhex", "unhexlify", "atob", "openssl enc", "zlib.decompress", "marshal.loads", "codecs.decode", "rot13", "rot_13"},
			pattern: re(`\b(base64\s+(-d|-D|--decode|-di)\b|xxd\s+-r|openssl\s+(enc\s+)?(-base64\s+-d|base64\s+-d|enc\s+-d))[^|;&\n]*(\|\s*(gunzip|zcat|gzip\s+-d\S*|xz\s+-d)[^|;&\n]*)?\|\s*` + runs +
				`|\b(eval|bash\s+-c|sh\s+-c|source)\s+["']?\$\([^)]*\b(base64\s+(-d|-D|--decode)|xxd\s+-r)` +
				`|\b(exec|eval|os\.system|subprocess\.\w+|compile|__import__\(\s*['"]os['"]\s*\)\.\w+)\s*\(\s*(compile\s*\(\s*)?(\w+\.)*(__import__\(\s*['"]\w+['"]\s*\)\.)?(b64decode|b32decode|b85decode|a85decode|fromhex|unhexlify|decompress|loads|decode|atob)\s*\(` +
				`|\b(exec|eval)\s*\(\s*(zlib|marshal|codecs|base64|bytes|binascii|gzip|lzma|bz2)\.` +
				`|\b(eval|Function|new\s+Function)\s*\(\s*(atob|Buffer\.from|unescape|decodeURIComponent)\s*\(` +
				`|\b(iex|invoke-expression)\b[^\n]*frombase64string`),
			Message: "it runs what it decodes, so that nobody can read it",
			Advice:  "decode it yourself and read it before anything is run"},
		{ID: "run-file-text", Severity: High, Looks: Code, languages: python | inline | config | shell, words: []string{"open("},
			pattern: re(`\b(exec|eval)\s*\(\s*(compile\s*\(\s*)?open\s*\(\s*["'](/tmp|/var/tmp|/dev/shm|~|[^"']*/\.)[^"']*["']`),
			Message: "it runs the text of a hidden or temporary file",
			Advice:  "find out who writes the file"},
		{ID: "temporary-run", Severity: High, Looks: Code, languages: commands, words: []string{"/tmp/.", "/dev/shm/", "/var/tmp/."},
			pattern: re(`((/tmp/\.|/var/tmp/\.|/dev/shm/)[\w.-]+["']?\s*\|\s*((ba|z)?sh|python\d?|perl|curl|nc)\b|(^|[;&|]\s*|\b(ba|z)?sh\s+|\bsource\s+|\bpython\d?\s+|nohup\s+|chmod\s+\S*[x7]\S*\s+)["']?(/tmp/\.[\w-]|/var/tmp/\.[\w-]|/dev/shm/)[\w./-]*)`),
			Message: "it runs or sends a file that lies hidden in a temporary place",
			Advice:  "find out what the file is; programs do not hide their own"},
		{ID: "reverse-shell", Severity: High, Looks: Code, languages: commands, words: []string{"/dev/tcp/", "/dev/udp/", "nc ", "ncat", "netcat", "socat", "pty.spawn", "os.dup2", "tcpclient", "mkfifo", "fsockopen", "child_process"},
			pattern: re(`(\b(ba|z|k)?sh\s+-i\s*[>&<]+\s*/dev/(tcp|udp)/|[<>]&?\s*/dev/(tcp|udp)/[^\s/]+/\d+\s*(0>&1|2>&1|<&1)|exec\s+\d+<>\s*/dev/(tcp|udp)/|\b(nc|ncat|netcat)\b[^\n;]*\s(-\w*[ec]\w*|--exec|--sh-exec)\s+["']?(/\w+)*/?((ba|z)?sh|cmd(\.exe)?|powershell)\b|\b(nc|ncat|netcat)\b[^|\n;]*\|\s*(/\w+)*/?(ba|z)?sh\b|mkfifo[^\n]*\|\s*(nc|ncat|netcat|openssl|telnet)\b|\bsocat\b[^\n]*\bexec:|os\.dup2\s*\([^\n]*fileno\(\)|pty\.spawn\s*\(\s*["']/bin|new-object\s+(system\.)?net\.sockets\.tcpclient|fsockopen\s*\([^\n]*\bproc_open)`),
			unless:  re(`pty\.spawn\(\s*["']/bin/(ba)?sh["']\s*\)\s*#\s*terminal`),
			Message: "it gives somebody at the other end of a connection a shell",
			Advice:  "do not run it"},
		{ID: "listener-decode", Severity: High, Looks: Code, languages: commands, words: []string{"nc ", "ncat", "netcat"},
			pattern: re(`\b(nc|ncat|netcat)\s+(-\w+\s+)*-\w*l\w*[^|\n;]*\|\s*(base64|xxd|openssl|gunzip|tar|python\d?|perl)\b`),
			Message: "it waits for somebody to send what it unpacks",
			Advice:  "find out who sends, and why not by a file"},
		{ID: "crypto-miner", Severity: High, Looks: Code, languages: commands, words: []string{"stratum+", "xmrig", "minerd", "cpuminer", "--donate-level"},
			pattern: re(`stratum\+(tcp|ssl|tls)://|\b(xmrig|minerd|cpuminer|nbminer|t-rex)\b\s+-|--donate-level`),
			Message: "it mines a currency with your machine",
			Advice:  "do not run it"},
		{ID: "destructive", Severity: High, Looks: Code, languages: commands, words: []string{"rm ", "mkfs", "dd ", "shutil.rmtree", ":(){", "format ", "remove-item", "rmsync", "wipefs", "shred"},
			pattern: re(`(\brm\s+(-[a-z-]+\s+)*-[a-z]*(r[a-z]*f|f[a-z]*r)[a-z]*\s+(-[a-z-]+\s+)*["']?(/|/\*|~|~/|~/\*|\$home|\$\{home\}|/(etc|usr|var|boot|home|root|bin|lib|opt|library|users)/?\*?)["']?(\s|$|;|&|"|')|--no-preserve-root|\bmkfs(\.\w+)?\s+(-\w+\s+)*/dev/|\bdd\s[^\n]*\bof=/dev/(sd|nvme|hd|disk|mmcblk)|shutil\.rmtree\s*\(\s*(["'](/|~|/home|/etc|/usr|/var)["']|os\.path\.expanduser\(\s*["']~/?["']\s*\)|Path\.home\(\))\s*[,)]|:\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}|\bwipefs\s+-a|\bshred\s[^\n]*/dev/|remove-item\s[^\n]*-recurse[^\n]*\s(c:\\|\$env:userprofile|~)\s*(["']|$))`),
			Message: "it deletes or overwrites more than its own files",
			Advice:  "do not run it outside a sandbox"},
		{ID: "log-wiping", Severity: High, Looks: Code, languages: commands, words: []string{"/var/log", "history -c", "histfile", ".bash_history", "wevtutil", "clear-eventlog"},
			pattern: re(`\b(rm|shred|truncate|unlink)\s[^\n;|]*/var/log/|>\s*/var/log/\S+|\bhistory\s+-c\b|\bunset\s+histfile|histfile=/dev/null|(rm|shred|truncate)\s[^\n;|]*\.(bash|zsh)_history|wevtutil\s+cl\b|clear-eventlog`),
			unless:  re(`>\s*/var/log/[\w./-]+\s+2>&1`),
			Message: "it removes traces of what was done on the machine",
			Advice:  "find out why; logs are rotated, not deleted"},
		{ID: "home-deletion", Severity: Medium, Looks: Code, languages: commands, words: []string{"rm "},
			pattern: re(`\brm\s+(-[a-z-]+\s+)*-[a-z]*(r[a-z]*f|f[a-z]*r)[a-z]*\s+[^\n;|]*(~|\$home|\$\{home\})/\.(config|ssh|aws|gnupg|local|kube|docker)\b`),
			Message: "it deletes configuration of the person's",
			Advice:  "see what is in the directory before it is run"},
		{ID: "permissions-open", Severity: Medium, Looks: Code, languages: commands, words: []string{"chmod", "icacls"},
			pattern: re(`\bchmod\s+(-R\s+)?(0?777|a\+rwx|ugo\+rwx|o\+w|a\+w)\b|icacls\s[^\n]*/grant\s+everyone`),
			Message: "it lets everybody on the machine change files",
			Advice:  "give the right to the one user who needs it"},
		{ID: "permissions-system", Severity: High, Looks: Code, languages: commands, words: []string{"chmod", "setcap", "sudoers", "nopasswd", "visudo", "chown"},
			pattern: re(`\bchmod\s+(-R\s+)?(0?777|a\+rwx|ugo\+rwx)\s+["']?/(etc|opt|usr|var|bin|lib|root|home|srv|run)\b|\bchmod\s+(-R\s+)?777\s+/(\s|$)|\bchmod\s+([ug]\+s|[2467][0-7]{3})\s+|\bsetcap\s+cap_|nopasswd\s*:\s*all|(tee|>>?)\s+(-a\s+)?/etc/(sudoers|passwd|shadow)|usermod\s[^\n]*-aG\s+(sudo|wheel|root)`),
			Message: "it weakens the protection of the system",
			Advice:  "do not run it outside a sandbox"},
		{ID: "privilege", Severity: Low, Looks: Code, languages: commands, words: []string{"sudo ", "runas", "doas "},
			pattern: re(`(^|[\s;&|("'])(sudo|doas)\s+(-\w+\s+)*[\w./-]+`),
			Message: "it acts as another user, mostly as root",
			Advice:  "see whether that is needed; in the sandbox it does not work"},
		{ID: "persistence", Severity: High, Looks: Code, languages: commands, words: []string{"crontab", "/etc/cron", ".bashrc", ".zshrc", ".bash_profile", ".profile", ".zprofile", "launchagents", "launchdaemons", "systemd/", "schtasks", "currentversion\\run", "authorized_keys", "/etc/rc.local", ".zshenv", "/etc/ld.so.preload"},
			pattern: re(`((echo|printf|cat|tee)\b[^\n]*(>>?|tee\s+(-a\s+)?)\s*["']?(~|\$home|\$\{home\}|/root|/home/\w+)/\.ssh/authorized_keys|(curl|wget|nc|base64|/dev/tcp|python\d?\s+-c|bash\s+-c|sh\s+-c)[^\n]*(>>|tee\s+-a)\s*["']?(~|\$home|\$\{home\})/\.(bashrc|zshrc|bash_profile|profile|zprofile|zshenv)|(curl|wget|/tmp/|/dev/shm|nc\s|base64|@reboot)[^\n]*\|\s*crontab\b|>>?\s*/etc/(cron\w*[./]\S*|rc\.local|ld\.so\.preload)|schtasks\s[^\n]*/create[^\n]*(powershell|http|\.ps1|cmd\s)|currentversion\\run["']?\s[^\n]*|open\s*\([^\n]{0,120}(\.bashrc|\.zshrc|\.bash_profile|authorized_keys)["'][^\n]{0,20}["'][aw]\+?["']\s*\))`),
			Message: "it makes something start again by itself, or lets somebody in",
			Advice:  "do not run it outside a sandbox; in one it does not last"},
		{ID: "startup-file", Severity: Low, Looks: Code, languages: commands, words: []string{".bashrc", ".zshrc", ".bash_profile", ".profile", ".zprofile", "crontab", "launchagents", "systemctl enable", "core.hookspath", ".git/hooks/"},
			pattern: re(`(>>|tee\s+-a)\s*["']?(~|\$home|\$\{home\})/\.(bashrc|zshrc|bash_profile|profile|zprofile)|\bcrontab\s+(-e|-\s|[\w./])|library/launchagents/|systemctl\s+(--user\s+)?enable|core\.hookspath|(>|cp\s[^\n]*|ln\s[^\n]*)\s*["']?(\S*/)?\.git/hooks/`),
			Message: "it changes what runs when you log in, by the clock, or with Git",
			Advice:  "see what it adds, and whether you want it for good"},
	}
}
