package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialogue is a tool or prompt that needs input from the client. With new
// protocol versions, the client receives the questions as a result, and calls
// again with the answers. With old versions, it receives a single round of
// requests, which the SDK creates from the same questions.
type dialogue struct {
	name, description string
	schema            string // of the arguments; "" for no arguments
	// rounds returns the questions of each round by key. A round starts when
	// the previous round is answered.
	rounds func(args map[string]string) []mcp.InputRequestMap
	// signed stores the progress in a signed state that the client returns. It
	// is required for more than one round.
	signed bool
	// lenient omits questions that the client does not support. If it is not
	// set, such a client gets an error.
	lenient bool
	// say returns the result for the answers, which have the keys of the
	// questions.
	say func(answers map[string]string) string
}

// state records the progress of a dialogue.
type state struct {
	Round   int               `json:"round"`
	Answers map[string]string `json:"answers"`
}

// next processes a call. It returns the open questions and the state to return
// with their answers, or the final result.
func (d *dialogue) next(caps *mcp.ClientCapabilities, args map[string]string, given mcp.InputResponseMap, handed string) (open mcp.InputRequestMap, sealed, text string, err error) {
	at, err := d.open(handed)
	if err != nil {
		return nil, "", "", err
	}
	if d.signed && handed == "" {
		given = nil // answers without a question
	}
	rounds := d.rounds(args)
	if at.Round >= len(rounds) {
		return nil, "", "", invalid("the state is of another version of %s", d.name)
	}
	questions, err := d.supported(rounds[at.Round], caps)
	if err != nil {
		return nil, "", "", err
	}
	complete := true
	for key, q := range questions {
		said, ok := answer(q, given[key])
		if ok {
			at.Answers[key] = said
		}
		complete = complete && ok
	}
	if complete {
		at.Round++
		if at.Round == len(rounds) {
			return nil, "", d.say(at.Answers), nil
		}
		if questions, err = d.supported(rounds[at.Round], caps); err != nil {
			return nil, "", "", err
		}
	}
	if d.signed {
		sealed = d.seal(at)
	}
	return questions, sealed, "", nil
}

// supported returns the questions that the client supports. If it does not
// support all of them, supported returns an error, unless the dialogue is
// lenient.
func (d *dialogue) supported(questions mcp.InputRequestMap, caps *mcp.ClientCapabilities) (mcp.InputRequestMap, error) {
	out := mcp.InputRequestMap{}
	for key, q := range questions {
		needed := missingCapability(q, caps)
		switch {
		case needed == nil:
			out[key] = q
		case !d.lenient:
			data, err := json.Marshal(map[string]any{"requiredCapabilities": needed})
			if err != nil {
				return nil, err
			}
			return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Data: data,
				Message: fmt.Sprintf("%s requires capabilities that the client does not declare: %s", d.name, strings.Join(keys(needed), ", "))}
		}
	}
	return out, nil
}

// key signs states. It is valid only for this process.
var key = []byte(rand.Text())

func (d *dialogue) sign(payload string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(d.name + "\n" + payload)) // binds the state to this dialogue
	return mac.Sum(nil)
}

func (d *dialogue) seal(at state) string {
	js, err := json.Marshal(at)
	if err != nil {
		panic(err) // a number and strings always encode
	}
	payload := base64.RawURLEncoding.EncodeToString(js)
	return payload + "." + base64.RawURLEncoding.EncodeToString(d.sign(payload))
}

func (d *dialogue) open(sealed string) (state, error) {
	at := state{Answers: map[string]string{}}
	if sealed == "" || !d.signed {
		return at, nil
	}
	payload, signature, _ := strings.Cut(sealed, ".")
	mac, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(mac, d.sign(payload)) {
		return at, invalid("the request state is not one that %s gave out", d.name)
	}
	js, err := base64.RawURLEncoding.DecodeString(payload)
	if err := errors.Join(err, json.Unmarshal(js, &at)); err != nil {
		return at, fmt.Errorf("decode signed state: %w", err)
	}
	return at, nil
}

// call runs the dialogue as a tool.
func (d *dialogue) call(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := map[string]string{}
	if len(req.Params.Arguments) > 0 {
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, invalid("%s: %v", d.name, err)
		}
	}
	open, sealed, text, err := d.next(req.ClientCapabilities(), args, req.Params.InputResponses, req.Params.RequestState)
	switch {
	case err != nil:
		return nil, err
	case open != nil:
		return &mcp.CallToolResult{InputRequests: open, RequestState: sealed}, nil
	}
	return say(text), nil
}

// prompt runs the dialogue as a prompt.
func (d *dialogue) prompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	open, sealed, text, err := d.next(req.ClientCapabilities(), req.Params.Arguments, req.Params.InputResponses, req.Params.RequestState)
	switch {
	case err != nil:
		return nil, err
	case open != nil:
		return &mcp.GetPromptResult{InputRequests: open, RequestState: sealed}, nil
	}
	return newPromptResult(&mcp.TextContent{Text: text}), nil
}

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
