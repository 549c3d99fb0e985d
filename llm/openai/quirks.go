package openai

import (
	"net/url"
	"strings"
)

// Quirks describe how a server differs from other servers with the same
// protocol.
type Quirks struct {
	// Vendor is the part of [Model.Name] before the colon. Thinking is returned
	// only to the vendor that produced it.
	Vendor string
	// System is the position of instructions and notices.
	System Placement
	// MaxTokens is the name of the parameter that limits an answer; "" means
	// max_tokens.
	MaxTokens string
	// Replay returns thinking as reasoning_content, which is empty if the model
	// did not think. Servers require it with every message of a turn with calls
	// (anomalyco/opencode#24722) and ignore it elsewhere.
	Replay bool
	// Effort sends the amount of thinking as reasoning_effort if thinking is
	// enabled.
	Effort bool
	// Switch enables or disables thinking with the parameter "thinking".
	Switch bool
	// NoUsage omits stream_options, which some old servers refuse. The usage is
	// unknown then.
	NoUsage bool
	// NoDone accepts the end of a stream without [DONE] as the end of the
	// answer, if a finish reason has arrived.
	NoDone bool
}

// Placement is a position of system messages.
type Placement string

const (
	// SystemInline keeps notices at their position in the conversation, so that
	// each request begins with the bytes of the one before.
	SystemInline Placement = ""
	// SystemFirst merges the instructions and all notices into the first
	// message, for servers that refuse any other system message. A notice then
	// changes the beginning of the request, and no cache matches it.
	SystemFirst Placement = "first"
)

const maxCompletionTokens = "max_completion_tokens"

// hosts lists the known servers by the end of their host name, or by host and
// port for local servers. Servers with only a vendor have no known differences.
var hosts = []struct {
	host   string
	local  bool // the server may run any model with that model's own chat template
	quirks Quirks
}{
	// Its newer models refuse max_tokens (see anomalyco/opencode#37964 for
	// Azure), and compatible servers refuse max_completion_tokens
	// (yazinsai/OpenOats#319).
	{host: "api.openai.com", quirks: Quirks{Vendor: "openai", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "openai.azure.com", quirks: Quirks{Vendor: "azure", MaxTokens: maxCompletionTokens, Effort: true}},
	// It thinks unless thinking is disabled.
	{host: "api.deepseek.com", quirks: Quirks{Vendor: "deepseek", Replay: true, Switch: true}},
	{host: "openrouter.ai", quirks: Quirks{Vendor: "openrouter", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "aliyuncs.com", quirks: Quirks{Vendor: "dashscope"}},
	{host: "api.groq.com", quirks: Quirks{Vendor: "groq"}},
	{host: "api.together.xyz", quirks: Quirks{Vendor: "together"}},
	{host: "api.mistral.ai", quirks: Quirks{Vendor: "mistral"}},
	{host: "localhost:11434", local: true, quirks: Quirks{Vendor: "ollama", Effort: true}},
	{host: "localhost:1234", local: true, quirks: Quirks{Vendor: "lmstudio"}},
}

// QuirksOf returns the quirks for the URL of a server and the name of a model.
// The vendor of an unknown server is its host.
func QuirksOf(baseURL, model string) Quirks {
	host := hostOf(baseURL)
	q, local := Quirks{Vendor: strings.ReplaceAll(host, ":", "-")}, true
	for _, h := range hosts {
		if host == h.host || strings.HasSuffix(host, "."+h.host) {
			q, local = h.quirks, h.local
		}
	}
	model = strings.ToLower(model)
	// DeepSeek's thinking models need their thinking back from other servers
	// too (anomalyco/opencode#24569).
	q.Replay = q.Replay || (local || q.Vendor == "openrouter") && strings.Contains(model, "deepseek")
	// The template of Qwen 3.5 and later refuses system messages after the
	// first under vLLM (vllm-project/vllm#41114), llama.cpp and Ollama
	// (QwenLM/Qwen3.8#244).
	if local && strings.Contains(model, "qwen") {
		q.System = SystemFirst
	}
	return q
}

// hostOf returns the host of a URL, with its port unless that is the default.
// Loopback addresses become localhost.
func hostOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if host == "127.0.0.1" || host == "::1" {
		host = "localhost"
	}
	if port == "" || port == "443" && u.Scheme == "https" || port == "80" && u.Scheme == "http" {
		return host
	}
	return host + ":" + port
}
