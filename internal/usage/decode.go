package usage

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// decoder decodes log lines. It caches names, because the same names occur
// often in a log.
type decoder struct {
	names map[string]string
}

// maxNames is the maximum number of cached names.
const maxNames = 10_000

// decode parses a line without its newline.
func (d *decoder) decode(b []byte) (Use, error) {
	l, ok := d.decodePlain(b)
	if !ok {
		l = logLine{}
		if err := json.Unmarshal(b, &l); err != nil {
			return Use{}, errDamaged
		}
	}
	return l.validate()
}

// decodePlain decodes the usual form of a line without encoding/json: known
// fields, strings without escapes, integers and times. It returns false for any
// other line.
func (d *decoder) decodePlain(b []byte) (l logLine, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(`{"`))
	for ok {
		var key, value []byte
		if key, b, ok = bytes.Cut(b, []byte(`":`)); !ok {
			break
		}
		if len(b) > 0 && b[0] == '"' {
			value, b, ok = bytes.Cut(b[1:], []byte(`"`))
			ok = ok && plainText(value) && d.setText(&l, key, value)
		} else {
			i := bytes.IndexAny(b, ",}")
			if ok = i > 0; ok {
				value, b = b[:i], b[i:]
				ok = setNumber(&l, key, value)
			}
		}
		if !ok || string(b) == "}" {
			return l, ok
		}
		b, ok = bytes.CutPrefix(b, []byte(`,"`))
	}
	return l, false
}

// plainText reports whether the JSON string body b has no escapes.
func plainText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

func (d *decoder) setText(l *logLine, key, value []byte) bool {
	switch string(key) {
	case "time":
		return l.Time.UnmarshalText(value) == nil
	case "face":
		l.Interface = d.internName(value)
	case "kind":
		l.Kind = Kind(d.internName(value))
	case "skill":
		l.Skill = d.internName(value)
	case "key":
		l.Key = d.internName(value)
	case "tool":
		l.Tool = d.internName(value)
	case "outcome":
		l.Outcome = Outcome(d.internName(value))
	default:
		return false
	}
	return true
}

func setNumber(l *logLine, key, value []byte) bool {
	var err error
	switch string(key) {
	case "tokens":
		l.Tokens, err = strconv.Atoi(string(value))
	case "ms":
		l.Millis, err = strconv.ParseFloat(string(value), 64)
	default:
		return false
	}
	// Reject numbers that Go accepts but JSON does not. encoding/json then
	// reports the error.
	return err == nil && json.Valid(value)
}

func (d *decoder) internName(b []byte) string {
	if s, known := d.names[string(b)]; known {
		return s
	}
	s := string(b)
	if d.names == nil || len(d.names) >= maxNames {
		d.names = map[string]string{}
	}
	d.names[s] = s
	return s
}

// validate checks a log line and returns the use that it records.
func (l logLine) validate() (Use, error) {
	u := l.Use
	if u.Time.IsZero() || u.Interface == "" || !u.Kind.isKnown() || !u.Outcome.isKnown() || !validTokens(u.Tokens) || l.Millis < 0 || l.Millis > maxMillis {
		return Use{}, errDamaged
	}
	if v := u.Usage; v != nil && !(validTokens(v.Input) && validTokens(v.CacheRead) && validTokens(v.CacheWrite) && validTokens(v.Output)) {
		return Use{}, errDamaged
	}
	if u.Kind == KindModel && (u.Model == "" || u.Usage == nil) {
		return Use{}, errDamaged
	}
	u.Took = time.Duration(l.Millis * float64(time.Millisecond))
	return u, nil
}

// Limits on a recorded use. A line that exceeds them is treated as damaged.
const (
	maxTokens = 1 << 40
	maxMillis = 100 * 24 * 60 * 60 * 1000
)

func validTokens(tokens int) bool { return tokens >= 0 && tokens <= maxTokens }
