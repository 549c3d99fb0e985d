package openai

import (
	"net/url"
	"strings"
)

// Quirks describes how a server differs from other servers with the same
// protocol. All fields except Vendor may be zero.
type Quirks struct {
	// Vendor is the part of the model's name before the colon. It must not be empty
	// or contain a colon. Thinking is sent back only to the vendor that
	// produced it.
	Vendor string
	// SystemFirst merges the instructions and all notices into the first
	// message, for servers that reject later system messages. A new notice then
	// changes the start of the request, so that no cached prefix matches.
	// Otherwise notices keep their position in the conversation, so that each
	// request starts with the bytes of the previous one.
	SystemFirst bool
	// MaxTokens is the name of the parameter that limits a response: max_tokens
	// or max_completion_tokens; "" means max_tokens.
	MaxTokens string
	// Replay sends thinking back as reasoning_content, which is empty if the
	// model did not think. Some servers require the field in every message of
	// a turn with calls (anomalyco/opencode#24722); others ignore it.
	Replay bool
	// Effort sends [llm.Request.Thinking] as reasoning_effort if it is not 0:
	// low up to 2,048 tokens, medium up to 16,384, high above.
	Effort bool
	// Switch enables or disables thinking with the parameter "thinking",
	// whose type is "enabled" or "disabled".
	Switch bool
	// NoUsage omits stream_options, which some older servers reject. The token
	// usage is then unknown.
	NoUsage bool
	// NoDone accepts a stream that ends without [DONE] if a finish reason was
	// received.
	NoDone bool
}

const maxCompletionTokens = "max_completion_tokens"

// hosts lists the known servers by host name suffix, or by host and port for
// local servers. Entries with only a vendor have no known differences.
var hosts = []struct {
	host   string
	local  bool // whether the server may run any model with that model's chat template
	quirks Quirks
}{
	// Newer models reject max_tokens (see anomalyco/opencode#37964 for Azure),
	// and compatible servers reject max_completion_tokens
	// (yazinsai/OpenOats#319).
	{host: "api.openai.com", quirks: Quirks{Vendor: "openai", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "openai.azure.com", quirks: Quirks{Vendor: "azure", MaxTokens: maxCompletionTokens, Effort: true}},
	// This server enables thinking unless the request disables it.
	{host: "api.deepseek.com", quirks: Quirks{Vendor: "deepseek", Replay: true, Switch: true}},
	{host: "openrouter.ai", quirks: Quirks{Vendor: "openrouter", MaxTokens: maxCompletionTokens, Effort: true}},
	{host: "aliyuncs.com", quirks: Quirks{Vendor: "dashscope"}},
	{host: "api.groq.com", quirks: Quirks{Vendor: "groq"}},
	{host: "api.together.xyz", quirks: Quirks{Vendor: "together"}},
	{host: "api.mistral.ai", quirks: Quirks{Vendor: "mistral"}},
	{host: "localhost:11434", local: true, quirks: Quirks{Vendor: "ollama", Effort: true}},
	{host: "localhost:1234", local: true, quirks: Quirks{Vendor: "lmstudio"}},
}

// quirksOf returns the quirks of a server and a model. It identifies servers by
// host name and does not connect. The vendor of an unknown server is its host
// name, followed by "-PORT" unless the port is the default. It is "" if the URL
// has no host.
func quirksOf(baseURL, model string) Quirks {
	host := hostOf(baseURL)
	q, local := Quirks{Vendor: strings.ReplaceAll(host, ":", "-")}, true
	for _, h := range hosts {
		if host == h.host || strings.HasSuffix(host, "."+h.host) {
			q, local = h.quirks, h.local
		}
	}
	model = strings.ToLower(model)
	// DeepSeek's thinking models also require their thinking on other servers
	// (anomalyco/opencode#24569).
	q.Replay = q.Replay || (local || q.Vendor == "openrouter") && strings.Contains(model, "deepseek")
	// The template of Qwen 3.5 and later rejects system messages after the
	// first one under vLLM (vllm-project/vllm#41114), llama.cpp and Ollama
	// (QwenLM/Qwen3.8#244).
	if local && strings.Contains(model, "qwen") {
		q.SystemFirst = true
	}
	return q
}

// hostOf returns the host of a URL, with the port unless it is the default
// port. Loopback addresses are returned as localhost.
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
