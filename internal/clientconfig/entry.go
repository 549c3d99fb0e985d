package clientconfig

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// DefaultName is the default name of the entry.
const DefaultName = "loadout"

// Entry is the server to add to a client's configuration. It has either a
// command that the client runs or a URL that it connects to.
type Entry struct {
	// Name is the key of the entry: at most 64 letters, digits, "_" and "-". ""
	// means [DefaultName].
	Name string
	// Command is the program to run. An absolute path is best, because a client
	// started from a desktop does not have a terminal's PATH.
	Command string
	Args    []string
	// EnvVars are the names of environment variables that the client passes to
	// the program: see [Client.WithVariables].
	EnvVars []string `json:",omitempty"`
	// URL is a Streamable HTTP endpoint. It must not contain a user name or
	// password.
	URL string
}

const (
	maxArgs = 256
	maxText = 32 << 10
)

var nameForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("invalid entry name %q: use at most 64 letters, digits, _ and -", name)
	}
	return nil
}

// validate returns an error that lists all faults of e.
func (e Entry) validate() error {
	var errs []error
	errs = append(errs, checkName(e.Name))
	if (e.Command == "") == (e.URL == "") {
		errs = append(errs, errors.New("entry requires either a command or a URL"))
	}
	if e.URL != "" && len(e.Args) > 0 {
		errs = append(errs, errors.New("entry with a URL cannot have arguments"))
	}
	if e.URL != "" && len(e.EnvVars) > 0 {
		errs = append(errs, errors.New("entry with a URL cannot have environment variables"))
	}
	if len(e.Args) > maxArgs {
		errs = append(errs, fmt.Errorf("too many arguments (%d, limit %d)", len(e.Args), maxArgs))
	}
	for _, s := range slices.Concat([]string{e.Command, e.URL}, e.Args, e.EnvVars) {
		if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			errs = append(errs, fmt.Errorf("invalid value: want at most %d bytes of UTF-8 without NUL", maxText))
		}
	}
	if e.URL != "" {
		errs = append(errs, checkURL(e.URL))
	}
	return errors.Join(errs...)
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("incomplete server URL; want a URL such as http://127.0.0.1:8484/mcp")
	case u.User != nil:
		return errors.New("URL contains a user name or password, which would be written to the file; remove them")
	}
	return nil
}

// object is an ordered JSON object, YAML mapping or TOML table. Its values are
// strings, booleans, string slices and objects.
type object []field

type field struct {
	key   string
	value any
}

// fields returns the members of the entry in the format of c.
func (c Client) fields(e Entry) (object, error) {
	if err := e.validate(); err != nil {
		return nil, err
	}
	if e.URL != "" && !c.Remote {
		return nil, kindError{ErrUnsupported, c.Title + " does not support servers by URL in this file; " + c.noRemote}
	}
	var o object
	add := func(key string, value any) { o = append(o, field{key, value}) }
	kind := c.stdioType
	if e.URL != "" {
		kind = c.httpType
	}
	if c.named {
		add("name", e.Name)
	}
	if kind != "" {
		add(cmp.Or(c.typeKey, "type"), kind)
	}
	switch {
	case e.URL != "":
		add(c.urlKey, e.URL)
	case c.joined:
		add(c.commandKey(), append([]string{e.Command}, e.Args...))
	default:
		add(c.commandKey(), e.Command)
		if len(e.Args) > 0 {
			add("args", e.Args)
		}
	}
	if len(e.EnvVars) > 0 && c.envVarsKey != "" {
		add(c.envVarsKey, e.EnvVars)
	}
	return append(o, c.always...), nil
}

// WithVariables returns e with the environment variables that c must pass to the
// server. Some clients pass only the variables that the entry names. For these,
// it adds the variable that changes the location of the files of c, if that
// variable is set in p. Otherwise the server would use the default location.
func (c Client) WithVariables(e Entry, p Environment) Entry {
	if name := c.where[User].env; c.envVarsKey != "" && e.URL == "" && p.getenv(name) != "" {
		e.EnvVars = []string{name}
	}
	return e
}

func (c Client) commandKey() string {
	if c.command != "" {
		return c.command
	}
	return "command"
}

// parseEntry is the inverse of fields. It returns false if the value does not
// have the form that fields produces.
func (c Client) parseEntry(name string, value any) (Entry, bool) {
	m, ok := value.(map[string]any)
	if !ok {
		return Entry{}, false
	}
	e := Entry{Name: name}
	e.URL, _ = m[c.urlKey].(string)
	variables, _ := m[c.envVarsKey].([]any)
	for _, v := range variables {
		s, _ := v.(string)
		e.EnvVars = append(e.EnvVars, s)
	}
	args, _ := m["args"].([]any)
	if c.joined {
		args, _ = m[c.commandKey()].([]any)
	}
	for _, a := range args {
		s, _ := a.(string)
		e.Args = append(e.Args, s)
	}
	if !c.joined {
		e.Command, _ = m[c.commandKey()].(string)
	} else if len(e.Args) > 0 {
		e.Command, e.Args = e.Args[0], e.Args[1:]
	}
	o, err := c.fields(e)
	return e, err == nil && equalValues(o.decoded(), value)
}

// isPlain reports whether e starts a program called loadout without options.
func (e Entry) isPlain() bool {
	return isLoadout(e.Command) && (slices.Equal(e.Args, []string{"mcp"}) || slices.Equal(e.Args, []string{"mcp", "--stdio"}))
}

// isLoadout reports whether a command is called loadout.
func isLoadout(command string) bool {
	base := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(base), ".exe") == "loadout"
}

// startsLoadout reports whether a decoded entry appears to start Loadout,
// directly or through another program, or to connect to its URL.
func (c Client) startsLoadout(name string, value any) bool {
	m, _ := value.(map[string]any)
	if _, ok := m[c.urlKey].(string); ok {
		return name == DefaultName
	}
	line, _ := m[c.commandKey()].([]any)
	if !c.joined {
		args, _ := m["args"].([]any)
		line = append([]any{m[c.commandKey()]}, args...)
	}
	for i, v := range line {
		word, _ := v.(string)
		if i == 0 && isLoadout(word) || i > 0 && slices.Contains(strings.Fields(word), "mcp") {
			return true
		}
	}
	return false
}

// describeOptions describes the settings that an entry that starts Loadout has in
// addition to a plain entry with the variables of want, without showing their
// values. It returns "" if the user cannot have changed the entry.
func (c Client) describeOptions(want Entry, value any) string {
	e, ok := c.parseEntry(want.Name, value)
	switch {
	case !ok, len(e.EnvVars) > 0 && !slices.Equal(e.EnvVars, want.EnvVars):
		return "with other settings"
	case e.URL != "":
		return "by URL"
	case e.isPlain():
		return ""
	}
	var flags []string
	for _, a := range e.Args {
		if strings.HasPrefix(a, "-") && a != "--stdio" && !slices.Contains(flags, maskArgument(a)) {
			flags = append(flags, maskArgument(a))
		}
	}
	if len(flags) == 0 {
		return "with another command"
	}
	return "with " + strings.Join(flags, ", ")
}

// decoded converts o to the types that a decoder returns.
func (o object) decoded() map[string]any {
	m := map[string]any{}
	for _, f := range o {
		switch v := f.value.(type) {
		case []string:
			list := []any{}
			for _, s := range v {
				list = append(list, s)
			}
			m[f.key] = list
		case object:
			m[f.key] = v.decoded()
		default:
			m[f.key] = v
		}
	}
	return m
}

// strings returns all strings in o, including those in nested objects.
func (o object) strings() map[string]bool {
	set := map[string]bool{}
	for _, f := range o {
		switch v := f.value.(type) {
		case string:
			set[v] = true
		case []string:
			for _, s := range v {
				set[s] = true
			}
		}
	}
	return set
}

// Snippet returns the entry as text to paste into c's configuration file: a
// complete JSON document or a TOML table. For an invalid entry or an
// unsupported feature, it returns the same errors as [Plan].
func Snippet(c Client, e Entry) (string, error) {
	e = e.withDefaultName()
	o, err := c.fields(e)
	if err != nil {
		return "", err
	}
	edit, err := emptyDocument(c).setEntry(e.Name, o)
	if err != nil {
		return "", err
	}
	return string(edit.apply(nil)), nil
}

func (e Entry) withDefaultName() Entry {
	if e.Name == "" {
		e.Name = DefaultName
	}
	return e
}
