package policy

import (
	"fmt"
	"strings"
)

// Level says how much harm a tool can do. The zero value is [Unknown]. Levels
// are ordered: a greater one needs more care.
type Level int

// The levels of safety.
const (
	Unknown  Level = iota // nobody said: denied until a person is asked
	Safe                  // it only computes
	Low                   // it reads what is public, or the person's own
	Medium                // it reads more, or writes what can be written again
	High                  // it changes what others see, or costs
	Critical              // it destroys, pays, or runs anything
)

var levelNames = []string{"UNKNOWN", "SAFE", "LOW", "MEDIUM", "HIGH", "CRITICAL"}

// ParseLevel reads the name of a level, in any case. It fails for others, for
// "" and for UNKNOWN, which nobody sets.
func ParseLevel(s string) (Level, error) {
	for i, name := range levelNames[1:] {
		if strings.EqualFold(strings.TrimSpace(s), name) {
			return Level(i + 1), nil
		}
	}
	return Unknown, fmt.Errorf("%.100q is no level of safety: it is one of %s", s, strings.Join(levelNames[1:], ", "))
}

// String is the name of the level, in capitals.
func (l Level) String() string {
	if l < Unknown || l > Critical {
		return levelNames[Unknown]
	}
	return levelNames[l]
}

// MarshalText is the name of the level.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote; "" is Unknown.
func (l *Level) UnmarshalText(b []byte) (err error) {
	if s := string(b); s == "" || s == levelNames[Unknown] {
		*l = Unknown
		return nil
	}
	*l, err = ParseLevel(string(b))
	return err
}
