package policy

import (
	"fmt"
	"strings"
)

// Level is a safety level: it rates how much harm a tool can do. The zero value
// is [Unknown]. A greater level means more potential harm.
type Level int

// Safety levels.
const (
	Unknown  Level = iota // not rated; needs approval
	Safe                  // only performs computations
	Low                   // reads public data or the user's own data
	Medium                // reads other data, or writes data that can be restored
	High                  // changes data visible to others, or costs money
	Critical              // destroys data, makes payments, or runs arbitrary code
)

var levelNames = []string{"UNKNOWN", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}

// ParseLevel parses the name of a level, ignoring case and surrounding white
// space. It returns [Unknown] and an error for any other name, for "", and for
// UNKNOWN, which cannot be set.
func ParseLevel(s string) (Level, error) {
	for i, name := range levelNames[1:] {
		if strings.EqualFold(strings.TrimSpace(s), name) {
			return Level(i + 1), nil
		}
	}
	return Unknown, fmt.Errorf("unknown safety level %.100q: want one of %s", s, strings.Join(levelNames[1:], ", "))
}

// String returns the name of the level in upper case. It is UNKNOWN for a value
// without a name.
func (l Level) String() string {
	if l < Unknown || l > Critical {
		return levelNames[Unknown]
	}
	return levelNames[l]
}

// MarshalText implements [encoding.TextMarshaler]. It returns the name of the
// level and a nil error.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It is like [ParseLevel],
// but "" and UNKNOWN mean [Unknown]. On error, it sets the level to
// Unknown.
func (l *Level) UnmarshalText(b []byte) (err error) {
	if s := string(b); s == "" || s == levelNames[Unknown] {
		*l = Unknown
		return nil
	}
	*l, err = ParseLevel(string(b))
	return err
}
