package usage

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// decoder reads lines. A log has tens of thousands, and the same few names in them.
type decoder struct {
	names map[string]string
}

// maxNames bounds the names that are kept to be used again.
const maxNames = 10_000

// decode reads a line without its end.
func (d *decoder) decode(b []byte) (Use, error) {
	l, ok := d.plain(b)
	if !ok {
		l = line{}
		if err := json.Unmarshal(b, &l); err != nil {
			return Use{}, errDamaged
		}
	}
	return l.checked()
}

// plain reads a line as most are: fields that are known, texts without escapes, whole
// numbers and times. It is false for another, of which nothing is said.
func (d *decoder) plain(b []byte) (l line, ok bool) {
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

// plainText reports whether a text means itself in JSON.
func plainText(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

func (d *decoder) setText(l *line, key, value []byte) bool {
	switch string(key) {
	case "time":
		return l.Time.UnmarshalText(value) == nil
	case "face":
		l.Face = d.name(value)
	case "kind":
		l.Kind = Kind(d.name(value))
	case "skill":
		l.Skill = d.name(value)
	case "key":
		l.Key = d.name(value)
	case "tool":
		l.Tool = d.name(value)
	case "outcome":
		l.Outcome = Outcome(d.name(value))
	default:
		return false
	}
	return true
}

func setNumber(l *line, key, value []byte) bool {
	var err error
	switch string(key) {
	case "tokens":
		l.Tokens, err = strconv.Atoi(string(value))
	case "ms":
		l.Millis, err = strconv.ParseFloat(string(value), 64)
	default:
		return false
	}
	// What Go takes for a number and JSON does not is for the other way to refuse.
	return err == nil && json.Valid(value)
}

func (d *decoder) name(b []byte) string {
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

// checked is the use of a line, where it can be one.
func (l line) checked() (Use, error) {
	u := l.Use
	if u.Time.IsZero() || u.Face == "" || !u.Kind.known() || !u.Outcome.known() || !possible(u.Tokens) || l.Millis < 0 || l.Millis > maxMillis {
		return Use{}, errDamaged
	}
	if v := u.Usage; v != nil && !(possible(v.Input) && possible(v.CacheRead) && possible(v.CacheWrite) && possible(v.Output)) {
		return Use{}, errDamaged
	}
	if u.Kind == KindModel && (u.Model == "" || u.Usage == nil) {
		return Use{}, errDamaged
	}
	u.Took = time.Duration(l.Millis * float64(time.Millisecond))
	return u, nil
}

// Limits of one use; a line with more is damaged.
const (
	maxTokens = 1 << 40
	maxMillis = 100 * 24 * 60 * 60 * 1000
)

func possible(tokens int) bool { return tokens >= 0 && tokens <= maxTokens }
