package scan

import (
	"slices"
	"strings"
)

// owners maps the first words of environment variables to the registered labels
// of the hosts of the service that issues them. The value of a variable belongs
// only there.
var owners = []struct{ variables, hosts string }{
	{"anthropic claude", "anthropic claude"},
	{"aws", "amazonaws amazon aws"},
	{"azure", "azure microsoft windows microsoftonline"},
	{"cloudflare cf", "cloudflare"},
	{"digitalocean do", "digitalocean"},
	{"discord", "discord discordapp"},
	{"dingtalk", "dingtalk"},
	{"feishu lark", "feishu larksuite"},
	{"github gh", "github githubusercontent ghcr"},
	{"gitlab", "gitlab"},
	{"google gemini gcp", "googleapis google"},
	{"huggingface hf", "huggingface hf"},
	{"npm", "npmjs"},
	{"notion", "notion"},
	{"openai", "openai azure"},
	{"openrouter", "openrouter"},
	{"pypi", "pypi"},
	{"sendgrid", "sendgrid"},
	{"slack", "slack"},
	{"stripe", "stripe"},
	{"telegram tg bot", "telegram"},
	{"twilio", "twilio"},
	{"vercel", "vercel"},
	{"wechat weixin wx", "qq"},
}

// ownerHosts returns the hosts that own a variable, and whether the table knows
// it.
func ownerHosts(variable string) ([]string, bool) {
	first, _, _ := strings.Cut(strings.ToLower(variable), "_")
	for _, o := range owners {
		if slices.Contains(strings.Fields(o.variables), first) {
			return strings.Fields(o.hosts), true
		}
	}
	return nil, false
}

// isOwner reports whether a host belongs to the service that issues a variable,
// by the table or because the variable's name contains that of the host.
func isOwner(variable, host string) bool {
	label := registeredLabel(host)
	hosts, _ := ownerHosts(variable)
	return slices.Contains(hosts, label) || host == "localhost" || host == "127.0.0.1" || isIdentifierHost(host) || namesService(strings.ToLower(variable), label)
}

// isSentElsewhere reports whether a statement has the address of a host, and a
// variable of a service of the table that does not own it.
func isSentElsewhere(statement []byte, variables map[string]bool) bool {
	for _, m := range urls.FindAllStringSubmatch(strings.ToLower(string(statement)), 8) {
		host, _, _ := strings.Cut(m[2], ":")
		for v := range variables {
			if _, known := ownerHosts(v); known && !isOwner(v, host) && !strings.ContainsAny(host, "{$%<") {
				return true
			}
		}
	}
	return false
}

// isSentToOwners reports whether a statement has only addresses of hosts that
// own all variables.
func isSentToOwners(statement []byte, variables map[string]bool) bool {
	found := urls.FindAllStringSubmatch(strings.ToLower(string(statement)), 8)
	for _, m := range found {
		host, _, _ := strings.Cut(m[2], ":")
		for v := range variables {
			if !isOwner(v, host) {
				return false
			}
		}
	}
	return len(found) > 0
}

// countServices counts the services to which variables belong, by their first
// words.
func countServices(variables map[string]bool) int {
	services := map[string]bool{}
	for v := range variables {
		first, _, _ := strings.Cut(v, "_")
		services[first] = true
	}
	return len(services)
}
