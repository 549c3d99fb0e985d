package openai

import (
	"net/url"
	"strings"
)

// Quirks are how a server differs from others that speak the same protocol.
type Quirks struct {
	// Vendor is the part of [Model.Name] before the colon. Thinking goes back to
	// the vendor that it came from alone.
	Vendor string
	// System is where instructions and notices are put.
	System Placement
	// MaxTokens is the parameter that bounds an answer; "" is max_tokens.
	MaxTokens string
	// Replay sends thinking back as reasoning_content, and an empty one where there
	// was none: of a turn with calls it is demanded with every message
	// (anomalyco/opencode#24722), and of others it is not read.
	Replay bool
	// Effort tells how much to think as reasoning_effort, where thinking is wanted.
	Effort bool
	// Switch tells whether to think at all, by the parameter "thinking".
	Switch bool
	// NoUsage leaves out stream_options, which some old servers refuse. No usage is
	// known then.
	NoUsage bool
	// NoDone takes the end of a stream for the end of the answer, where its reason
	// has come: the server is known to send no [DONE].
	NoDone bool
}

// Placement is where system messages may be.
type Placement string

const (
	// SystemInline puts notices where they were said, so that what was sent before
	// is the beginning of what is sent next.
	SystemInline Placement = ""
	// SystemFirst merges instructions and all notices into the first message, for
	// servers that refuse any other. A notice then changes the beginning of all
	// that was sent before, and nothing of it is found in a cache.
	SystemFirst Placement = "first"
)

const maxCompletionTokens = "max_completion_tokens"

// hosts are the servers that are known, by the end of their host name, or by host
// and port for those on this machine. Where nothing but the name is there, no
// difference is known.
var hosts = []struct {
	host   string
	local  bool // serves models with the templates that these bring along
	quirks Quirks
}{
	// Its newer models refuse max_tokens (anomalyco/opencode#37964 has it for
	// Azure), and compatible servers refuse max_completion_tokens
	// (yazinsai/OpenOats#319).
	{host: "api.openai.com", quirks: Quirks{Vendor: "openai", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "openai.azure.com", quirks: Quirks{Vendor: "azure", MaxTokens: maxCompletionTokens, Effort: true}},
	// It thinks unless it is told not to.
	{host: "api.deepseek.com", quirks: Quirks{Vendor: "deepseek", Replay: true, Switch: true}},
	{host: "openrouter.ai", quirks: Quirks{Vendor: "openrouter", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "aliyuncs.com", quirks: Quirks{Vendor: "dashscope"}},
	{host: "api.groq.com", quirks: Quirks{Vendor: "groq"}},
	{host: "api.together.xyz", quirks: Quirks{Vendor: "together"}},
	{host: "api.mistral.ai", quirks: Quirks{Vendor: "mistral"}},
	{host: "localhost:11434", local: true, quirks: Quirks{Vendor: "ollama", Effort: true}},
	{host: "localhost:1234", local: true, quirks: Quirks{Vendor: "lmstudio"}},
}

// QuirksOf are the quirks of a server by its address, and of a model by its name.
// A server that is not known has its host for a vendor.
func QuirksOf(baseURL, model string) Quirks {
	host := hostOf(baseURL)
	q, local := Quirks{Vendor: strings.ReplaceAll(host, ":", "-")}, true
	for _, h := range hosts {
		if host == h.host || strings.HasSuffix(host, "."+h.host) {
			q, local = h.quirks, h.local
		}
	}
	model = strings.ToLower(model)
	// Thinking models of DeepSeek demand what they thought from those who pass
	// requests on, too (anomalyco/opencode#24569).
	q.Replay = q.Replay || (local || q.Vendor == "openrouter") && strings.Contains(model, "deepseek")
	// The template of Qwen 3.5 and later refuses system messages further down under
	// vLLM (vllm-project/vllm#41114), llama.cpp and Ollama (QwenLM/Qwen3.8#244).
	if local && strings.Contains(model, "qwen") {
		q.System = SystemFirst
	}
	return q
}

// hostOf is the host of an address, with its port unless that is the usual one,
// and one name for this machine.
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
