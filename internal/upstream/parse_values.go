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

// expandShell converts $VAR to ${VAR} if the file format supports the short
// form.
func (e *serverEntry) expandShell(s string) string {
	if !e.gemini || !strings.Contains(s, "$") {
		return s
	}
	return dollarName.ReplaceAllStringFunc(s, func(m string) string {
		if strings.HasPrefix(m, "$$") {
			return m
		}
		return "${" + m[1:] + "}"
	})
}

// parseString parses a string. It rejects the server if the value is not a
// scalar or contains a NUL character.
func (e *serverEntry) parseString(f configfile.Field) string {
	if !f.Value.IsScalar() {
		e.reject("server-value", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a string")
		return ""
	}
	if strings.ContainsRune(f.Value.Text, 0) {
		e.reject("server-value", f.Value, f.Key+" contains a NUL character", "remove it")
		return ""
	}
	return e.expandShell(f.Value.Text)
}

// parseArguments parses a list of arguments. It treats a string as a single
// argument.
func (e *serverEntry) parseArguments(f configfile.Field) []string {
	items := []*configfile.Node{f.Value}
	if f.Value.Kind == configfile.List {
		items = f.Value.Items
	} else if f.Value.IsScalar() {
		e.warn("server-args", f.Value, f.Key+" is a string; it is used as a single argument", "write a list")
	}
	out := make([]string, 0, len(items))
	for _, n := range items {
		out = append(out, e.parseString(configfile.Field{Key: f.Key, Value: n}))
	}
	return out
}

// parseStrings parses a list of strings or a comma-separated string. It trims
// spaces and removes duplicates.
func (e *serverEntry) parseStrings(f configfile.Field) []string {
	var all []string
	switch {
	case f.Value.Kind == configfile.List:
		for _, n := range f.Value.Items {
			if !n.IsScalar() {
				e.warn("server-value", n, fmt.Sprintf("%s: an item is a %s and is ignored", f.Key, n.Kind), "write strings")
			}
			all = append(all, scalarText(n))
		}
	case f.Value.IsScalar():
		all = strings.Split(f.Value.Text, ",")
	default:
		e.warn("server-value", f.Value, fmt.Sprintf("%s is a %s and is ignored", f.Key, f.Value.Kind), "write a list")
	}
	for i, s := range all {
		all[i] = strings.TrimSpace(s)
	}
	return unique(all)
}

// unique returns list without empty strings and duplicates.
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

// mergeMap parses a map of strings or a list of NAME=VALUE strings. It adds the
// entries that check accepts to *dst.
func (e *serverEntry) mergeMap(dst *map[string]string, f configfile.Field, check func(name, value string, n *configfile.Node) (string, bool)) {
	put := func(name, value string, n *configfile.Node) {
		if v, ok := check(name, value, n); ok {
			e.setValue(dst, name, e.expandShell(v))
		}
	}
	switch f.Value.Kind {
	case configfile.Map:
		for _, kv := range f.Value.Fields {
			switch {
			case kv.Value.IsScalar():
				put(kv.Key, kv.Value.Text, keyNode(kv))
			case kv.Value.Kind == configfile.Null:
				e.warn("server-value", keyNode(kv), fmt.Sprintf("%s: %s has no value and is ignored", f.Key, quoteText(kv.Key)), "give it a value")
			default:
				e.reject("server-value", keyNode(kv), fmt.Sprintf("%s: %s is a %s", f.Key, quoteText(kv.Key), kv.Value.Kind), "write a string")
			}
		}
	case configfile.List:
		for _, n := range f.Value.Items {
			name, value, ok := strings.Cut(scalarText(n), "=")
			if !ok {
				e.reject("server-value", n, f.Key+": an item is not NAME=VALUE", "write a map of strings")
				continue
			}
			put(name, value, n)
		}
	default:
		e.reject("server-value", f.Value, fmt.Sprintf("%s is a %s", f.Key, f.Value.Kind), "write a map of strings")
	}
}

func (e *serverEntry) setValue(to *map[string]string, name, value string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[name] = value
}

// checkVariable rejects the server if an environment variable is invalid.
func (e *serverEntry) checkVariable(name, value string, n *configfile.Node) (string, bool) {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsFunc(name, unicode.IsControl) || strings.ContainsRune(value, 0) {
		e.reject("server-env", n, fmt.Sprintf("env: invalid variable name %s", quoteText(name)), "write letters, digits and _")
		return "", false
	}
	return value, true
}

// checkHeader rejects the server if a header is invalid, or if its name appears
// in two spellings, because header names are case-insensitive.
func (e *serverEntry) checkHeader(name, value string, n *configfile.Node) (string, bool) {
	if !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n\x00") {
		e.reject("server-headers", n, fmt.Sprintf("headers: invalid header %s", quoteText(name)), "write a name and a value on one line")
		return "", false
	}
	sent := textproto.CanonicalMIMEHeaderKey(name)
	if have, ok := e.headers[sent]; ok && have != name {
		e.reject("server-headers", n, fmt.Sprintf("headers: %s appears in two spellings", quoteText(name)), "keep one of them")
		return "", false
	}
	if e.headers == nil {
		e.headers = map[string]string{}
	}
	e.headers[sent] = name
	return value, true
}

// parseBool parses a boolean. For any other value, it adds a warning and
// returns def.
func (e *serverEntry) parseBool(f configfile.Field, def bool) bool {
	switch strings.ToLower(scalarText(f.Value)) {
	case "true", "yes", "on", "1":
		return true
	case "false", "no", "off", "0":
		return false
	}
	e.warn("server-value", f.Value, fmt.Sprintf("%s is not true or false; %v is used", f.Key, def), "write true or false")
	return def
}

func (e *serverEntry) parseCount(f configfile.Field) int {
	const most = 10_000
	n, err := strconv.Atoi(scalarText(f.Value))
	if err != nil || n < 0 || n > most {
		e.warn("server-value", f.Value, fmt.Sprintf("%s is not a number from 0 to %d and is ignored", f.Key, most), "write a number, or remove it")
		return 0
	}
	return n
}

// parseSafety parses a risk level. For an invalid level, it returns the
// highest.
func (e *serverEntry) parseSafety(f configfile.Field) string {
	level := strings.ToUpper(strings.TrimSpace(scalarText(f.Value)))
	if !slices.Contains([]string{"SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}, level) {
		e.warn("server-safety", f.Value, fmt.Sprintf("unknown safety level %s; CRITICAL is used", quoteText(scalarText(f.Value))), "write SAFE, LOW, MEDIUM, HIGH or CRITICAL")
		return "CRITICAL"
	}
	return level
}

func (e *serverEntry) parsePin(f configfile.Field) bool {
	switch strings.ToLower(scalarText(f.Value)) {
	case "strict", "true":
		return true
	case "none", "off", "false":
		return false
	}
	e.warn("server-pin", f.Value, fmt.Sprintf("unknown value %s of pin; strict is used", quoteText(scalarText(f.Value))), "write strict or none")
	return true
}

func (e *serverEntry) parseSkills(f configfile.Field) string {
	switch value := strings.ToLower(scalarText(f.Value)); value {
	case SkillsOff, SkillsAsk, SkillsAllow:
		return value
	case "false", "no":
		return SkillsOff
	}
	e.warn("server-skills", f.Value, fmt.Sprintf("unknown value %s of skills; off is used", quoteText(scalarText(f.Value))), "write off, ask or allow")
	return SkillsOff
}

func (e *serverEntry) parseConnect(f configfile.Field) bool {
	switch canonicalKey(scalarText(f.Value)) {
	case "onload", "lazy", "ondemand":
		return false
	case "atstart", "eager":
		return true
	}
	e.warn("server-connect", f.Value, fmt.Sprintf("unknown value %s of connect; on-load is used", quoteText(scalarText(f.Value))), "write on-load or at-start")
	return false
}

// timeouts maps each timeout key to the default unit for bare numbers. 0 means
// that the default depends on the file format and the number.
var timeouts = map[string]time.Duration{
	"timeout": 0, "calltimeout": 0, "tooltimeout": 0, "requesttimeout": 0,
	"connecttimeout": 0, "connectiontimeout": 0, "startuptimeout": 0, "inittimeout": 0, "initializationtimeout": 0,
	"timeoutms": time.Millisecond, "timeoutsec": time.Second, "timeoutseconds": time.Second,
	"calltimeoutms": time.Millisecond, "calltimeoutsec": time.Second, "tooltimeoutms": time.Millisecond, "tooltimeoutsec": time.Second,
	"requesttimeoutms": time.Millisecond, "connecttimeoutms": time.Millisecond, "connecttimeoutsec": time.Second,
	"startuptimeoutms": time.Millisecond, "startuptimeoutsec": time.Second,
}

// parseTimeout parses a timeout. It returns false if key is not a timeout key.
// For an invalid timeout, it returns 0, which selects the default.
func (e *serverEntry) parseTimeout(f configfile.Field, key string) (time.Duration, bool) {
	unit, ok := timeouts[key]
	if !ok {
		return 0, false
	}
	s := strings.TrimSpace(scalarText(f.Value))
	number, err := strconv.ParseFloat(s, 64)
	wait := time.Duration(0)
	switch {
	case err != nil:
		if wait, err = time.ParseDuration(s); err != nil {
			e.warn("server-timeout", f.Value, fmt.Sprintf("%s is not a duration and is ignored", f.Key), "write for example 30s")
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
				e.add(skill.Info, "server-timeout", f.Value, e.serverMessage(fmt.Sprintf("%s of %s is read as milliseconds, %s", f.Key, s, wait)), "write the unit, for example 30s")
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
