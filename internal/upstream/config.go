package upstream

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/loadout-dev/loadout/internal/skillname"
)

// Transport types.
const (
	Stdio     = "stdio"
	HTTP      = "http" // streamable HTTP
	SSE       = "sse"  // HTTP+SSE, for servers older than 2025-03-26
	WebSocket = "websocket"
)

// Values of [Config.Skills].
const (
	SkillsOff   = "off"
	SkillsAsk   = "ask"   // the user approves each skill before it is loaded
	SkillsAllow = "allow" // skills are loaded without approval; their scripts still need it
)

// PublishesSkills reports whether the skills that the server publishes are used.
func (c *Config) PublishesSkills() bool {
	return !c.Disabled && (c.Skills == SkillsAsk || c.Skills == SkillsAllow)
}

// SkillLabel returns what identifies the server in the names of its skills: its
// Label or, if that is "", a form of its name. It returns "" if neither has Latin
// letters or digits: several servers would otherwise have the same label, and inherit
// approvals from each other.
func (c *Config) SkillLabel() string {
	if c.Label != "" || !strings.ContainsFunc(norm.NFKD.String(c.Name), isLatin) {
		return c.Label
	}
	return skillname.Slug(c.Name)
}

func isLatin(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// OAuthClient is an OAuth client that the user has registered with an
// authorization server. Each field may be empty.
type OAuthClient struct {
	ID       string   `json:"id,omitempty"`
	Secret   string   `json:"secret,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	Issuer   string   `json:"issuer,omitempty"`   // the only acceptable authorization server
	Redirect string   `json:"redirect,omitempty"` // callback URL that the browser opens after sign-in
}

// Owner identifies the provider of a server: a skill and its digest, a project,
// or a hub document. "" means the user.
type Owner string

// ProjectOwner is the owner of servers that a trusted project defines.
const ProjectOwner Owner = "project"

// SkillOwner returns the owner for servers that a skill provides. key is the
// skill's catalog key, and digest identifies its files.
func SkillOwner(key, digest string) Owner { return Owner(key + "@" + digest) }

// Skill returns the catalog key and the digest of the skill that provides the
// server. ok is false if the owner is not a skill.
func (o Owner) Skill() (key, digest string, ok bool) {
	i := strings.LastIndex(string(o), "@sha256:")
	if i <= 0 {
		return "", "", false
	}
	return string(o[:i]), string(o[i+1:]), true
}

// Identity returns the identity passed to [Pool.Server]. It lets a [Spawner]
// distinguish users.
func (c *Config) Identity() string { return c.identity }

// SecretValues returns the potentially secret values inserted by
// [Config.Resolve].
func (c *Config) SecretValues() []string { return slices.Clone(c.hidden) }

// Config is the configuration of a server, independent of the file format. It
// must not be changed after it is passed to a [Pool].
type Config struct {
	Name string `json:"name"`
	// Type is the transport. If it is "" and URLs is set, [Dialer.Dial] tries
	// streamable HTTP, then SSE.
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	// EnvFile is the path of a file with more variables. [Config.Resolve] reads
	// it; variables in Env take precedence.
	EnvFile string `json:"env_file,omitempty"`
	Dir     string `json:"dir,omitempty"` // working directory of the command
	// URLs are the addresses of the server's instances.
	URLs    []string          `json:"urls,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`

	// Include and Exclude select tools by name, with patterns as in path.Match.
	// An empty Include selects all tools.
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	// Tools lists the tools that the server is expected to have. Missing tools
	// are reported.
	Tools []string `json:"tools,omitempty"`

	// OAuth is a client that the user has registered with the authorization
	// server.
	OAuth *OAuthClient `json:"oauth,omitempty"`

	Disabled       bool          `json:"disabled,omitempty"`
	ConnectTimeout time.Duration `json:"connect_timeout,omitempty"` // 0 means 30 s
	CallTimeout    time.Duration `json:"call_timeout,omitempty"`    // 0 means 180 s
	Concurrency    int           `json:"concurrency,omitempty"`     // concurrent calls; 0 means unlimited
	AtStart        bool          `json:"at_start,omitempty"`        // connect when the program starts, not on first use
	Stateful       bool          `json:"stateful,omitempty"`        // use a separate connection for each session
	// Safety is the risk level of the tools: SAFE, LOW, MEDIUM, HIGH or
	// CRITICAL. "" means the default.
	Safety          string `json:"safety,omitempty"`
	RequireApproval bool   `json:"ask,omitempty"`    // each call needs approval
	Strict          bool   `json:"strict,omitempty"` // quarantine tools with changed definitions (pin: strict)

	// Skills says whether the skills that the server publishes are used: one of
	// [SkillsOff], [SkillsAsk] and [SkillsAllow]. "" means off. Label identifies
	// the server in the names of these skills; "" means a form of Name. SkillLimits
	// bounds their listing. None of them is part of the digest.
	Skills      string      `json:"-"`
	Label       string      `json:"-"`
	SkillLimits SkillLimits `json:"-"`

	// Owner identifies the provider of the server; "" means the user.
	Owner Owner `json:"owner,omitempty"`

	// Source is the digest of the configuration before [Config.Resolve]
	// replaced its variables. It is "" in an unresolved configuration.
	Source string `json:"-"`

	// identity is the identity passed to [Pool.Server].
	identity string

	// tokens are the access tokens sent to the server. It is nil in an
	// unresolved configuration.
	tokens *sentTokens

	// hidden lists the potentially secret values inserted by [Config.Resolve].
	// They are redacted in errors and logs.
	hidden []string

	// Description says what the server is for, as its configuration states it, or
	// "". It has at most [MaxAbout] bytes, and is not part of the digest.
	Description string `json:"-"`

	// File and Line locate the server in its configuration file.
	File string `json:"-"`
	Line int    `json:"-"`
}
