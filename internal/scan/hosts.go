package scan

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// installerAddresses lists the addresses from which users are told to download
// and run the installers of well-known tools. An address is listed only if
// nobody except the tool's publisher can upload there: the publisher's own
// host, or a path on a shared host. A path matches exactly, or as a prefix if
// it ends in a slash. GitHub paths include a branch, because commits of any
// fork can be fetched from the repository by hash.
var installerAddresses = []string{
	"astral.sh", "sh.rustup.rs", "rustup.rs", "win.rustup.rs", "static.rust-lang.org", "get.docker.com", "download.docker.com", "get.pnpm.io",
	"install.python-poetry.org", "bootstrap.pypa.io", "pyenv.run", "get.helm.sh", "get.k3s.io", "install.determinate.systems",
	"get.sdkman.io", "deb.nodesource.com", "rpm.nodesource.com", "mise.run", "mise.jdx.dev", "sdk.cloud.google.com", "get.scoop.sh", "get.volta.sh",
	"install.duckdb.org", "foundry.paradigm.xyz", "cli.github.com",
	"deno.land/install.sh", "deno.land/install.ps1", "deno.land/x/install/install.sh", "bun.sh/install", "bun.sh/install.ps1", "bun.com/install", "fnm.vercel.app/install",
	"nixos.org/nix/install", "fly.io/install.sh", "fly.io/install.ps1", "starship.rs/install.sh", "ollama.com/install.sh", "ollama.ai/install.sh",
	"claude.ai/install.sh", "claude.ai/install.ps1", "taskfile.dev/install.sh", "chocolatey.org/install.ps1", "community.chocolatey.org/install.ps1",
	"dot.net/v1/dotnet-install.sh", "dot.net/v1/dotnet-install.ps1", "aspire.dev/install.sh", "aspire.dev/install.ps1", "gh.io/copilot-install",
	"aka.ms/installazurecliwindows", "aka.ms/installazureclideb", "aka.ms/install-azd.sh", "aka.ms/install-azd.ps1",
	"raw.githubusercontent.com/homebrew/install/head/install.sh", "raw.githubusercontent.com/homebrew/install/master/install.sh", "raw.githubusercontent.com/homebrew/install/main/install.sh",
	"raw.githubusercontent.com/nvm-sh/nvm/master/install.sh", "raw.githubusercontent.com/nvm-sh/nvm/v*/install.sh",
	"raw.githubusercontent.com/helm/helm/main/scripts/", "raw.githubusercontent.com/helm/helm/master/scripts/",
}

// isInstaller reports whether a command downloads only from addresses in
// installerAddresses. A listed host inside another address does not count.
func isInstaller(match string) bool {
	found := downloadAddresses(match)
	for _, address := range found {
		if !isInstallerAddress(address) {
			return false
		}
	}
	return len(found) > 0
}

// downloadAddresses returns the words of a command that may be download
// addresses, in lower case.
func downloadAddresses(match string) []string {
	var out []string
	words := strings.FieldsFunc(strings.ToLower(match), func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`=()<>|;,", r) })
	for _, word := range words {
		host, _, _ := strings.Cut(word, "/")
		if strings.Contains(word, "://") || unicode.IsLetter(rune(word[0])) && strings.Contains(host, ".") {
			out = append(out, word)
		}
	}
	return out
}

// isInstallerAddress reports whether an address is listed in
// installerAddresses. It rejects unencrypted addresses and paths with "..".
func isInstallerAddress(address string) bool {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		scheme, rest = "https", address
	}
	if scheme != "https" || strings.Contains(rest, "/..") {
		return false
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = strings.TrimSuffix(strings.TrimPrefix(rest, "www."), "/")
	host, _, _ := strings.Cut(rest, "/")
	return slices.ContainsFunc(installerAddresses, func(entry string) bool {
		if before, after, any := strings.Cut(entry, "*"); any {
			version, begins := strings.CutPrefix(rest, before)
			version, ends := strings.CutSuffix(version, after)
			return begins && ends && strings.Trim(version, "0123456789.") == ""
		}
		return host == entry || rest == entry || strings.HasSuffix(entry, "/") && strings.HasPrefix(rest, entry)
	})
}

// knownRegistries lists package registries and full mirrors of them. Anyone can
// publish there, so the package name, not the address, determines what is
// installed.
var knownRegistries = []string{"pypi.org", "test.pypi.org", "pypi.nvidia.com", "download.pytorch.org", "registry.npmjs.org", "registry.yarnpkg.com", "npm.pkg.github.com",
	"registry.npmmirror.com", "pypi.tuna.tsinghua.edu.cn", "mirrors.aliyun.com", "localhost", "127.0.0.1"}

var urls = lazyregexp.New(`(?i)(https?)://([^\s"'/?#]+)`)

// usesKnownRegistries reports whether all registries in a command are known.
func usesKnownRegistries(command string) bool {
	found := urls.FindAllStringSubmatch(command, 16)
	for _, m := range found {
		host, _, _ := strings.Cut(strings.ToLower(m[2]), ":")
		if !slices.Contains(knownRegistries, host) {
			return false
		}
	}
	return len(found) > 0
}

// isSentToIssuer reports whether every host in a command appears to have issued the
// secret in the variable, because the variable name contains the host's registered
// name. It returns true if the command contains no address, because the destination
// is then unknown.
func isSentToIssuer(command, variable string) bool {
	found := urls.FindAllStringSubmatch(strings.ToLower(command), 8)
	for _, m := range found {
		host, _, _ := strings.Cut(m[2], ":")
		if !isOwner(variable, host) {
			return false
		}
	}
	return true
}

// registeredLabel returns the registered label of a host, for example github
// for api.github.com.
func registeredLabel(host string) string {
	labels := strings.Split(host, ".")
	n := len(labels) - 2
	if n > 0 && slices.Contains([]string{"co", "com", "net", "org", "gov", "ac", "edu"}, labels[n]) {
		n-- // for example example.co.uk
	}
	if n < 0 {
		return host
	}
	return labels[n]
}

// genericWords lists words in secret names that do not identify a service.
var genericWords = []string{"key", "token", "secret", "password", "access", "api", "auth", "private", "account", "service", "session", "client", "credential", "credentials", "app", "bot", "user", "database", "public"}

// namesService reports whether adjacent words of a variable name form the label
// and identify a service. For example, GOOGLE_API_KEY matches googleapis.
func namesService(variable, label string) bool {
	words := strings.Split(variable, "_")
	label = strings.ReplaceAll(label, "-", "")
	for i := range words {
		joined := ""
		for _, word := range words[i:min(len(words), i+4)] {
			if joined += word; len(joined) > 2 && !slices.Contains(genericWords, joined) && (joined == label || joined+"apis" == label) {
				return true
			}
		}
	}
	return false
}

// isPrivateHost reports whether a host is the local machine or in a private
// network.
func isPrivateHost(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsPrivate() || a.IsLoopback()
	}
	return host == "localhost" || !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || isIdentifierHost(host)
}

// isHiddenCommand reports whether removing the empty quotes from word yields
// the name of a command.
func isHiddenCommand(word string) bool {
	word = strings.ToLower(strings.NewReplacer("''", "", `""`, "").Replace(word))
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "curl", "wget", "eval", "exec", "base64", "python", "python3", "perl", "node", "nc", "ncat", "netcat", "sudo", "cat", "rm", "chmod", "crontab", "ssh"}, word)
}
