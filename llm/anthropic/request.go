package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/loadout-dev/loadout/llm"
)

// render encodes the JSON body of a request. The same conversation is always
// encoded to the same bytes, except for the cache breakpoints.
func (m *model) render(r *llm.Request) ([]byte, error) {
	tools, err := renderTools(r.Tools)
	if err != nil {
		return nil, err
	}
	messages := m.renderMessages(r.Messages)
	if len(messages) == 0 {
		return nil, errors.New("anthropic: conversation contains no text")
	}
	p := &sdk.MessageNewParams{Model: m.name, MaxTokens: int64(m.maxTokens), Tools: tools, Messages: messages}
	if r.MaxTokens > 0 {
		p.MaxTokens = int64(r.MaxTokens)
	}
	if !isBlank(r.Instructions) {
		p.System = []sdk.TextBlockParam{{Text: r.Instructions}}
	}
	m.setThinking(p, r.Thinking)
	setBreakpoints(p)
	return json.Marshal(p)
}

func renderTools(tools []llm.Tool) ([]sdk.ToolUnionParam, error) {
	var out []sdk.ToolUnionParam
	for _, t := range tools {
		if t.Name == "" || len(t.Name) > 128 || sanitizeCallID(t.Name) != t.Name {
			return nil, fmt.Errorf("anthropic: invalid tool name %.140q: use 1 to 128 of a-z, A-Z, 0-9, _ and -", t.Name)
		}
		schema, err := renderSchema(t.InputSchema)
		if err != nil {
			return nil, fmt.Errorf("anthropic: tool %s: %w", t.Name, err)
		}
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	return out, nil
}

// renderSchema returns the schema with "type" added if it is missing, because
// the vendor rejects schemas without it.
func renderSchema(schema json.RawMessage) (json.RawMessage, error) {
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil || members == nil {
		return nil, errors.New("input schema is not a JSON object")
	}
	if _, ok := members["type"]; ok {
		return schema, nil
	}
	inner := bytes.TrimSpace(bytes.TrimSpace(schema)[1:])
	if len(members) > 0 {
		inner = append([]byte(","), inner...)
	}
	return append([]byte(`{"type":"object"`), inner...), nil
}

// setThinking enables thinking. Because the response limit includes thinking, a
// quarter of it is reserved for text.
func (m *model) setThinking(p *sdk.MessageNewParams, tokens int) {
	const least = 1024 // the vendor's minimum
	budget := min(max(int64(tokens), least), p.MaxTokens*3/4)
	switch {
	case tokens <= 0 || !m.adaptive && budget < least:
	case m.adaptive:
		// Newer models send their thinking only if a summary is requested.
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		p.OutputConfig.Effort = effortFor(tokens)
	default:
		p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
	}
}

// effortFor converts a token budget to an effort level, for models that accept
// only levels.
func effortFor(tokens int) sdk.OutputConfigEffort {
	switch {
	case tokens <= 2048:
		return sdk.OutputConfigEffortLow
	case tokens <= 8192:
		return sdk.OutputConfigEffortMedium
	}
	return sdk.OutputConfigEffortHigh
}

// renderMessages converts the messages. It merges the messages between two
// responses into one user message, because the vendor requires alternating
// roles. Notices among them are combined into one message that follows it,
// because a notice must neither be the first message nor precede a user
// message.
func (m *model) renderMessages(all []llm.Message) []sdk.MessageParam {
	var out []sdk.MessageParam
	all = slices.DeleteFunc(slices.Clone(all), func(msg llm.Message) bool {
		return msg.Role == llm.Assistant && len(assistantBlocks([]llm.Message{msg})) == 0
	})
	for len(all) > 0 {
		assistant := all[0].Role == llm.Assistant
		n := slices.IndexFunc(all, func(msg llm.Message) bool { return (msg.Role == llm.Assistant) != assistant })
		if n < 0 {
			n = len(all)
		}
		if assistant {
			out = addMessage(out, sdk.MessageParamRoleAssistant, assistantBlocks(all[:n]))
		} else {
			out = m.addUser(out, all[:n])
		}
		all = all[n:]
	}
	return out
}

// addMessage appends a message. If the last message has the same role, it
// appends the blocks to that message. It skips empty messages, which the vendor
// rejects.
func addMessage(out []sdk.MessageParam, role sdk.MessageParamRole, blocks []sdk.ContentBlockParamUnion) []sdk.MessageParam {
	if len(blocks) == 0 {
		return out
	}
	if last := len(out) - 1; last >= 0 && out[last].Role == role {
		out[last].Content = append(out[last].Content, blocks...)
		return out
	}
	return append(out, sdk.MessageParam{Role: role, Content: blocks})
}

func (m *model) addUser(out []sdk.MessageParam, run []llm.Message) []sdk.MessageParam {
	results, rest, notices := userBlocks(run, m.native)
	blocks := append(results, rest...)
	if len(blocks) == 0 && len(notices) > 0 {
		// A system message must follow a user message.
		_, blocks, notices = userBlocks(run, false)
	}
	out = addMessage(out, sdk.MessageParamRoleUser, blocks)
	return addMessage(out, sdk.MessageParamRoleSystem, notices)
}

// userBlocks returns the blocks of the messages between two responses: the tool
// results, which the vendor requires first, and the other blocks in order. If
// separate is set, it returns the notices separately.
func userBlocks(run []llm.Message, separate bool) (results, rest, notices []sdk.ContentBlockParamUnion) {
	for _, msg := range run {
		if msg.Role == llm.Notice {
			text := msg.Text()
			switch {
			case isBlank(text):
			case separate:
				notices = append(notices, sdk.NewTextBlock(text))
			default:
				rest = append(rest, sdk.NewTextBlock("<notice>\n"+text+"\n</notice>"))
			}
			continue
		}
		for _, part := range msg.Parts {
			switch part := part.(type) {
			case llm.Result:
				results = append(results, sdk.ContentBlockParamUnion{OfToolResult: renderResult(part)})
			case llm.Text:
				if !isBlank(string(part)) {
					rest = append(rest, sdk.NewTextBlock(string(part)))
				}
			case llm.Image:
				if isSupportedImage(part.MIMEType) {
					rest = append(rest, sdk.ContentBlockParamUnion{OfImage: renderImage(part)})
				} else {
					rest = append(rest, sdk.NewTextBlock(omittedImageText(part)))
				}
			}
		}
	}
	return results, rest, notices
}

func assistantBlocks(run []llm.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, msg := range run {
		for _, part := range msg.Parts {
			switch part := part.(type) {
			case llm.Text:
				if !isBlank(string(part)) {
					out = append(out, sdk.NewTextBlock(string(part)))
				}
			case llm.Thinking:
				out = append(out, renderThinking(part)...)
			case llm.Call:
				out = append(out, sdk.NewToolUseBlock(sanitizeCallID(part.ID), callArguments(part.Arguments), part.Name))
			}
		}
	}
	return out
}

// renderThinking returns a block only for thinking that this vendor signed. The
// vendor rejects other vendors' thinking and thinking without a signature.
func renderThinking(t llm.Thinking) []sdk.ContentBlockParamUnion {
	switch {
	case t.Vendor != vendor:
	case t.Redacted != "":
		return []sdk.ContentBlockParamUnion{sdk.NewRedactedThinkingBlock(t.Redacted)}
	case t.Signature != "":
		return []sdk.ContentBlockParamUnion{sdk.NewThinkingBlock(t.Signature, t.Text)}
	}
	return nil
}

func renderResult(r llm.Result) *sdk.ToolResultBlockParam {
	out := &sdk.ToolResultBlockParam{ToolUseID: sanitizeCallID(r.Call)}
	text := func(s string) {
		out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: s}})
	}
	for _, part := range r.Parts {
		switch part := part.(type) {
		case llm.Text:
			if !isBlank(string(part)) {
				text(string(part))
			}
		case llm.Image:
			if isSupportedImage(part.MIMEType) {
				out.Content = append(out.Content, sdk.ToolResultBlockParamContentUnion{OfImage: renderImage(part)})
			} else {
				text(omittedImageText(part))
			}
		}
	}
	if r.Error {
		out.IsError = sdk.Bool(true)
		if len(out.Content) == 0 {
			text("(no error text)") // the vendor rejects errors without text
		}
	}
	return out
}

// isSupportedImage reports whether the vendor accepts images of the given type.
// If a conversation contains an unsupported image, the vendor rejects every
// later request.
func isSupportedImage(mime string) bool {
	return slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mime)
}

func omittedImageText(i llm.Image) string {
	return fmt.Sprintf("[an image of type %.100q was omitted: the model accepts JPEG, PNG, GIF and WebP]", i.MIMEType)
}

func renderImage(i llm.Image) *sdk.ImageBlockParam {
	return &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{OfBase64: &sdk.Base64ImageSourceParam{
		Data: base64.StdEncoding.EncodeToString(i.Data), MediaType: sdk.Base64ImageSourceMediaType(i.MIMEType),
	}}}
}

// callArguments returns a call's arguments as the model wrote them. If they are
// not a JSON object, it wraps them as the vendor's documentation describes.
func callArguments(text string) json.RawMessage {
	if isBlank(text) {
		return json.RawMessage("{}")
	}
	if t := strings.TrimSpace(text); t[0] == '{' && json.Valid([]byte(t)) {
		return json.RawMessage(t)
	}
	wrapped, _ := json.Marshal(map[string]string{"INVALID_JSON": text})
	return wrapped
}

// sanitizeCallID replaces the characters in a call ID that the vendor does not
// accept. Other vendors' IDs may contain colons and dots.
func sanitizeCallID(id string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, id)
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
