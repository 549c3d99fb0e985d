package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode"
)

// Managed is a value of policy.presence. With it, only approvals by the
// machine's administrator are valid.
const Managed = "managed"

// OperatorFile is the configuration file of the machine's administrator.
type OperatorFile interface {
	// Path returns the path of the file, or "" if the system has none.
	Path() string
	// Read returns the content of the file. The error matches [fs.ErrNotExist]
	// if there is none. Read returns an error if anyone but the administrator
	// may have written the file.
	Read() ([]byte, error)
}

// operatorKeys lists the keys that the administrator's file can set.
var operatorKeys = []string{"policy.presence", "policy.approved", "policy.rules", "policy.threshold"}

// Managed reports whether only approvals by the administrator are valid.
func (c *Config) Managed() bool { return c.Policy.Presence == Managed }

// IsManaged reports whether only approvals by the administrator are valid on
// this machine. It reads only the administrator's file. If that file cannot be
// read or is invalid, IsManaged returns true and an [*Error].
func (in Input) IsManaged() (bool, error) {
	l := loader{in: in}
	c := l.readOperator()
	if len(l.faults) > 0 {
		return true, &Error{l.faults}
	}
	return c != nil && c.Managed(), nil
}

// readOperator reads the administrator's file. It returns nil if there is none.
// If anyone but the administrator may have written the file, it records a
// fault, which makes Load fail.
func (l *loader) readOperator() *Config {
	if l.in.Operator == nil {
		return nil
	}
	path := l.in.Operator.Path()
	data, err := l.in.Operator.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c := &Config{from: map[string]string{}}
	own := loader{c: c, in: l.in, operator: true}
	if err != nil {
		own.addFault("administrator's file", "%v", err)
	} else {
		own.applyData(path, data, "")
	}
	l.faults = append(l.faults, own.faults...)
	return c
}

// applyOperator merges the administrator's settings into the configuration. It
// must be called after all other sources were applied. In managed mode, the
// user's settings can only be stricter.
func (l *loader) applyOperator(from *Config) {
	mine := &l.c.Policy
	if l.c.Managed() {
		l.addFault(l.c.from["policy.presence"], "policy.presence: only the administrator of the machine can set managed, in %s", l.operatorPath())
	}
	if from == nil {
		return
	}
	l.c.Files = append(slices.Clone(from.Files), l.c.Files...)
	if theirs := from.Policy; from.Managed() {
		mine.Presence = Managed
		mine.Approved = l.dropApproved(mine.Approved)
		mine.Rules = l.removeAllowRules(mine.Rules)
		threshold := cmp.Or(theirs.Threshold, defaults().Policy.Threshold)
		_ = lowerLevel(&threshold, &mine.Threshold) // a higher one is not applied
		mine.Threshold = threshold
	} else if theirs.Threshold != "" && !l.c.IsSet("policy.threshold") {
		mine.Threshold = theirs.Threshold
	}
	mine.Approved = append(slices.Clone(from.Policy.Approved), mine.Approved...)
	mine.Rules = append(slices.Clone(from.Policy.Rules), mine.Rules...)
	for key, file := range from.from {
		l.c.from[key] = strings.TrimSuffix(file+", "+l.c.from[key], ", ")
	}
}

func (l *loader) operatorPath() string {
	if l.in.Operator != nil && l.in.Operator.Path() != "" {
		return l.in.Operator.Path()
	}
	return "the configuration of the machine"
}

// dropApproved drops approvals that are not the administrator's, and adds a
// note about them.
func (l *loader) dropApproved(approved []string) []string {
	if len(approved) > 0 {
		l.addManagedNote("policy.approved", fmt.Sprintf("%d approvals are ignored", len(approved)))
	}
	return nil
}

// removeAllowRules returns rules without those that allow calls, and adds a note
// about the removed ones.
func (l *loader) removeAllowRules(rules []string) []string {
	kept := WithoutAllowing(rules)
	if n := len(rules) - len(kept); n > 0 {
		l.addManagedNote("policy.rules", fmt.Sprintf("%d rules that allow calls are ignored", n))
	}
	return kept
}

func (l *loader) addManagedNote(key, what string) {
	l.c.Notes = append(l.c.Notes, Note{cmp.Or(l.c.from[key], key), key + ": " + what + ", because only those in " + l.operatorPath() + " count"})
	delete(l.c.from, key)
}

// WithoutAllowing returns the rules that do not allow calls. ParseRules in
// package policy describes the syntax of rules.
func WithoutAllowing(rules []string) []string {
	return slices.DeleteFunc(slices.Clone(rules), func(rule string) bool {
		rule = strings.TrimSpace(rule)
		end := strings.IndexFunc(rule+" ", func(r rune) bool { return unicode.IsSpace(r) || r == ':' })
		return strings.EqualFold(rule[:end], "allow")
	})
}
