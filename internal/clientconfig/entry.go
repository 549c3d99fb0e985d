package clientconfig

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
)

// DefaultName is the name of the entry where none is given.
const DefaultName = "loadout"

// Entry is the server to put into a client's configuration: a command the
// client starts, or a URL it connects to, and not both.
type Entry struct {
	// Name is the key of the entry: letters, digits, "_" and "-", at most 64;
	// "" means [DefaultName].
	Name string
	// Command is the program, best as an absolute path: a client started from
	// a desktop does not have the PATH of a terminal.
	Command string
	Args    []string
	// URL is the Streamable HTTP endpoint. One with a user name or password in
	// it is refused.
	URL string
}

const (
	maxArgs = 256
	maxText = 32 << 10
)

var nameForm = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

func checkName(name string) error {
	if !nameForm().MatchString(name) {
		return fmt.Errorf("the entry's name %q is not usable in every client; use letters, digits, _ and -, at most 64", name)
	}
	return nil
}

// check reports all that is wrong with e.
func (e Entry) check() error {
	var errs []error
	errs = append(errs, checkName(e.Name))
	if (e.Command == "") == (e.URL == "") {
		errs = append(errs, errors.New("an entry needs either a command or a URL; give one of them"))
	}
	if e.URL != "" && len(e.Args) > 0 {
		errs = append(errs, errors.New("an entry with a URL has no arguments; leave them out"))
	}
	if len(e.Args) > maxArgs {
		errs = append(errs, fmt.Errorf("the command has %d arguments; use at most %d", len(e.Args), maxArgs))
	}
	for _, s := range append([]string{e.Command, e.URL}, e.Args...) {
		if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			errs = append(errs, fmt.Errorf("a value of the entry is not text of at most %d bytes; give it as UTF-8 without zero bytes", maxText))
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
		return errors.New("the URL of the server is not complete; give one such as http://127.0.0.1:8484/mcp")
	case u.User != nil:
		return errors.New("the URL has a user name or password in it, which would be written into the file; leave it out")
	}
	return nil
}

// object is an ordered JSON object or TOML table; a value is a string, a
// []string or an object.
type object []field

type field struct {
	key   string
	value any
}

// fields returns what c wants to see below the name of e.
func (c Client) fields(e Entry) (object, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.URL != "" && !c.Remote {
		return nil, kindError{ErrUnsupported, c.Title + " has no servers by URL in this file; " + c.noRemote}
	}
	var o object
	add := func(key string, value any) { o = append(o, field{key, value}) }
	if e.URL != "" {
		if c.httpType != "" {
			add("type", c.httpType)
		}
		add(c.urlKey, e.URL)
		return o, nil
	}
	if c.stdioType != "" {
		add("type", c.stdioType)
	}
	add("command", e.Command)
	if len(e.Args) > 0 {
		add("args", e.Args)
	}
	return o, nil
}

// entry is the reverse of fields: the Entry that gives exactly this value, and
// whether there is one.
func (c Client) entry(name string, value any) (Entry, bool) {
	m, ok := value.(map[string]any)
	if !ok {
		return Entry{}, false
	}
	e := Entry{Name: name}
	e.Command, _ = m["command"].(string)
	e.URL, _ = m[c.urlKey].(string)
	args, _ := m["args"].([]any)
	for _, a := range args {
		s, _ := a.(string)
		e.Args = append(e.Args, s)
	}
	o, err := c.fields(e)
	return e, err == nil && equal(o.decoded(), value)
}

// decoded is o as a decoder would return it.
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

// strings returns every string value in o.
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

// Snippet returns the entry as text to paste into c's configuration file by
// hand: a whole JSON document, or a TOML table. It fails as [Plan] does for an
// entry that is not usable, or not with this client.
func Snippet(c Client, e Entry) (string, error) {
	e = e.named()
	o, err := c.fields(e)
	if err != nil {
		return "", err
	}
	edit, err := blank(c).with(e.Name, o)
	if err != nil {
		return "", err
	}
	return string(edit.apply(nil)), nil
}

func (e Entry) named() Entry {
	if e.Name == "" {
		e.Name = DefaultName
	}
	return e
}
