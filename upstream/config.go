package upstream

import (
	"slices"
	"time"
)

// Transports by which a server is reached.
const (
	Stdio     = "stdio"
	HTTP      = "http" // streamable HTTP
	SSE       = "sse"  // HTTP+SSE, of servers from before 2025-03-26
	WebSocket = "websocket"
)

// OAuthClient is a client of an authorization server, as a person registered it.
// Each field may be empty.
type OAuthClient struct {
	ID       string   `json:"id,omitempty"`
	Secret   string   `json:"secret,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	Issuer   string   `json:"issuer,omitempty"`   // of the authorization server, which no other takes the place of
	Redirect string   `json:"redirect,omitempty"` // where a browser is sent back to
}

// Identity is whose connection a configuration is for, as [Pool.Server] was told: for a
// [Spawner] that starts processes for many.
func (c *Config) Identity() string { return c.identity }

// Hidden are the values that [Config.Resolve] put in and that may be secret.
func (c *Config) Hidden() []string { return slices.Clone(c.hidden) }

// Config is one server in normal form, whatever format it was written in. It is
// data: do not change one that was handed to a [Pool].
type Config struct {
	Name string `json:"name"`
	// Type is the transport; "" with a URL finds out: streamable HTTP, then SSE.
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// EnvFile is a file with more of Env, which wins; [Config.Resolve] reads it.
	EnvFile string `json:"env_file,omitempty"`
	Dir     string `json:"dir,omitempty"` // working directory of the command
	// URLs are where the server is; several are instances of one server.
	URLs    []string          `json:"urls,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// Include and Exclude choose among its tools by name, with * as in path.Match;
	// an empty Include is all.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// Tools are those that the configuration says it has, for a check against
	// those that it really has.
	Tools []string `json:"tools,omitempty"`

	// OAuth is a client that the person registered where they sign in to it.
	OAuth *OAuthClient `json:"oauth,omitempty"`

	Disabled       bool          `json:"disabled,omitempty"`
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"` // 0 is 30 s
	CallTimeout    time.Duration `json:"call_timeout,omitempty"`    // 0 is 180 s
	Concurrency    int           `json:"concurrency,omitempty"`     // calls at a time; 0 is no bound
	AtStart        bool          `json:"at_start,omitempty"`        // connect when the program starts, not on first need
	Stateful       bool          `json:"stateful,omitempty"`        // one connection a session, not shared
	// Safety is the level of its tools: SAFE, LOW, MEDIUM, HIGH or CRITICAL; ""
	// is the default of who reads it.
	Safety string `json:"safety,omitempty"`
	Ask    bool   `json:"ask,omitempty"`    // a person is asked before each call
	Strict bool   `json:"strict,omitempty"` // pin: strict; changed definitions are quarantined

	// Owner is what brings the server, as a skill at a digest; "" is the person.
	Owner string `json:"owner,omitempty"`

	// Source is the digest of what a resolved copy was made from, "" for one that
	// was not resolved; see [Config.Resolve].
	Source string `json:"-"`

	// identity is whose connection it is, in a pool.
	identity string

	// tokens are those that were sent to it; nil in a copy that was not resolved.
	tokens *sentTokens

	// hidden are the values that [Config.Resolve] put in and that may be secret:
	// they are in no text that we show.
	hidden []string

	// File and Line are where it was declared.
	File string `json:"-"`
	Line int    `json:"-"`
}
