package upstream

import (
	"fmt"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/loadout-dev/loadout/internal/configfile"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/skill"
)

var (
	envName    = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
	dollarName = lazyregexp.New(`\$+[A-Za-z_][A-Za-z0-9_]*`)
)

// shell turns $VAR into ${VAR} where the format has that.
func (e *entry) shell(s string) string {
	if !e.gemini || !strings.Contains(s, "$") {
		return s
	}
	return dollarName().ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m
		}
		return "${" + m[1:] + "}"
	})
}

// value is one text.
func (e *entry) value(f configfile.Field) string {
	if !f.Value.Scalar() {
		e.fault("server-value", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a text")
		return ""
	}
	if strings.ContainsRune(f.Value.Text, 0) {
		e.fault("server-value", f.Value, f.Key+" has a NUL character", "remove it")
		return ""
	}
	return e.shell(f.Value.Text)
}

// argv is a list of arguments; one text is one argument.
func (e *entry) argv(f configfile.Field) []string {
	items := []*configfile.Node{f.Value}
	if f.Value.Kind == configfile.List {
		items = f.Value.Items
	} else if f.Value.Scalar() {
		e.warn("server-args", f.Value, f.Key+" is one text and not a list; it is taken as one argument", "write a list")
	}
	out := make([]string, 0, len(items))
	for _, n := range items {
		out = append(out, e.value(configfile.Field{Key: f.Key, Value: n}))
	}
	return out
}

// texts is a list of texts without blanks around them, or one text that holds
// several, separated by commas.
func (e *entry) texts(f configfile.Field) []string {
	var all []string
	switch {
	case f.Value.Kind == configfile.List:
		for _, n := range f.Value.Items {
			if !n.Scalar() {
				e.warn("server-value", n, fmt.Sprintf("%s: an item is a %s and is ignored", f.Key, n.Kind), "write texts")
			}
			all = append(all, text(n))
		}
	case f.Value.Scalar():
		all = strings.Split(f.Value.Text, ",")
	default:
		e.warn("server-value", f.Value, fmt.Sprintf("%s is a %s and is ignored", f.Key, f.Value.Kind), "write a list")
	}
	for i, s := range all {
		all[i] = strings.TrimSpace(s)
	}
	return unique(all)
}

// unique leaves out empty texts and those that were there before.
func unique(list []string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// merge reads a map of texts, or a list of NAME=VALUE, into to.
func (e *entry) merge(to *map[string]string, f configfile.Field, check func(name, value string, n *configfile.Node) (string, bool)) {
	put := func(name, value string, n *configfile.Node) {
		if v, ok := check(name, value, n); ok {
			e.put(to, name, e.shell(v))
		}
	}
	switch f.Value.Kind {
	case configfile.Map:
		for _, kv := range f.Value.Fields {
			switch {
			case kv.Value.Scalar():
				put(kv.Key, kv.Value.Text, at(kv))
			case kv.Value.Kind == configfile.Null:
				e.warn("server-value", at(kv), fmt.Sprintf("%s: %s has no value and is left out", f.Key, quote(kv.Key)), "give it a value")
			default:
				e.fault("server-value", at(kv), fmt.Sprintf("%s: %s is a %s", f.Key, quote(kv.Key), kv.Value.Kind), "write a text")
			}
		}
	case configfile.List:
		for _, n := range f.Value.Items {
			name, value, ok := strings.Cut(text(n), "=")
			if !ok {
				e.fault("server-value", n, f.Key+": an item is not NAME=VALUE", "write a map of texts")
				continue
			}
			put(name, value, n)
		}
	default:
		e.fault("server-value", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a map of texts")
	}
}

func (e *entry) put(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

// variable checks one of the environment.
func (e *entry) variable(name, value string, n *configfile.Node) (string, bool) {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(value, 0) {
		e.fault("server-env", n, fmt.Sprintf("env: %s cannot be a variable", quote(name)), "write letters, digits and _")
		return "", false
	}
	return value, true
}

// header checks a header. Two spellings of one name would be one header.
func (e *entry) header(name, value string, n *configfile.Node) (string, bool) {
	if !headerName().MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
		e.fault("server-headers", n, fmt.Sprintf("headers: %s cannot be a header", quote(name)), "write a name and a value on one line")
		return "", false
	}
	sent := textproto.CanonicalMIMEHeaderKey(name)
	if have, ok := e.headers[sent]; ok && have != name {
		e.fault("server-headers", n, fmt.Sprintf("headers: %s comes in two spellings", quote(name)), "keep one of them")
		return "", false
	}
	if e.headers == nil {
		e.headers = map[string]string{}
	}
	e.headers[sent] = name
	return value, true
}

// truth is a boolean; what is neither true nor false is taken as def.
func (e *entry) truth(f configfile.Field, def bool) bool {
	switch strings.ToLower(text(f.Value)) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	}
	e.warn("server-value", f.Value, fmt.Sprintf("%s is neither true nor false; it is taken as %v", f.Key, def), "write true or false")
	return def
}

func (e *entry) count(f configfile.Field) int {
	const most = 10_000
	n, err := strconv.Atoi(text(f.Value))
	if err != nil || n < 0 || n > most {
		e.warn("server-value", f.Value, fmt.Sprintf("%s is not a number from 0 to %d and is ignored", f.Key, most), "write a number, or leave it out")
		return 0
	}
	return n
}

// safety is a level; a wrong one is the highest, so that it opens nothing.
func (e *entry) safety(f configfile.Field) string {
	level := strings.ToUpper(strings.TrimSpace(text(f.Value)))
	if !slices.Contains([]string{"SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}, level) {
		e.warn("server-safety", f.Value, fmt.Sprintf("the safety level %s is not known; it is taken as CRITICAL", quote(text(f.Value))), "write SAFE, LOW, MEDIUM, HIGH or CRITICAL")
		return "CRITICAL"
	}
	return level
}

func (e *entry) strict(f configfile.Field) bool {
	switch strings.ToLower(text(f.Value)) {
	case "strict", "true":
		return true
	case "none", "off", "false":
		return false
	}
	e.warn("server-pin", f.Value, fmt.Sprintf("pin is %s; it is taken as strict", quote(text(f.Value))), "write strict or none")
	return true
}

func (e *entry) atStart(f configfile.Field) bool {
	switch canon(text(f.Value)) {
	case "onload", "lazy", "ondemand":
		return false
	case "atstart", "eager":
		return true
	}
	e.warn("server-connect", f.Value, fmt.Sprintf("connect is %s; it is taken as on-load", quote(text(f.Value))), "write on-load or at-start")
	return false
}

// timeouts are the keys of timeouts and the unit of a bare number, 0 for one
// that depends on the format.
var timeouts = map[string]time.Duration{
	"timeout": 0, "calltimeout": 0, "tooltimeout": 0, "requesttimeout": 0,
	"connecttimeout": 0, "connectiontimeout": 0, "startuptimeout": 0, "inittimeout": 0, "initializationtimeout": 0,
	"timeoutms": time.Millisecond, "timeoutsec": time.Second, "timeoutseconds": time.Second,
	"calltimeoutms": time.Millisecond, "calltimeoutsec": time.Second, "tooltimeoutms": time.Millisecond, "tooltimeoutsec": time.Second,
	"requesttimeoutms": time.Millisecond, "connecttimeoutms": time.Millisecond, "connecttimeoutsec": time.Second,
	"startuptimeoutms": time.Millisecond, "startuptimeoutsec": time.Second,
}

// timeout reads a timeout, and reports whether the key is that of one. One that
// is not valid is 0, the default.
func (e *entry) timeout(f configfile.Field, key string) (time.Duration, bool) {
	unit, ok := timeouts[key]
	if !ok {
		return 0, false
	}
	s := strings.TrimSpace(text(f.Value))
	number, err := strconv.ParseFloat(s, 64)
	wait := time.Duration(0)
	switch {
	case err != nil:
		if wait, err = time.ParseDuration(s); err != nil {
			e.warn("server-timeout", f.Value, fmt.Sprintf("%s is not a time and is ignored", f.Key), "write for example 30s")
			return 0, true
		}
	case number >= 0 && number <= float64(maxTimeout/time.Millisecond):
		if unit == 0 {
			unit = time.Second
			if e.millis || number >= 1000 {
				unit = time.Millisecond
			}
			if !e.millis && number >= 1000 {
				wait = time.Duration(number * float64(unit))
				e.add(skill.Info, "server-timeout", f.Value, e.about(fmt.Sprintf("%s of %s is taken as milliseconds, %s", f.Key, s, wait)), "write the unit, for example 30s")
			}
		}
		wait = time.Duration(number * float64(unit))
	default:
		wait = -1
	}
	if wait < 0 || wait > maxTimeout {
		e.warn("server-timeout", f.Value, fmt.Sprintf("%s is not between 0 and %s and is ignored", f.Key, maxTimeout), "write for example 30s")
		return 0, true
	}
	return wait, true
}
