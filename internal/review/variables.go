package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// describeVariable describes where the value of a variable is used, or says that
// it is not provided.
func describeVariable(v loadout.RequestedVariable) string {
	name := v.Name
	switch v.Kind {
	case upstream.FromSecret:
		name = "secrets." + name
	case upstream.FromUser:
		name = "user." + name
	case upstream.FromInput:
		name = "input:" + name
	}
	if !v.HasValue {
		return "requests " + name + ", which is not provided"
	}
	where := v.Location
	if !strings.Contains(where, " ") {
		where = "the " + where
	}
	return fmt.Sprintf("%s, in %s, to %s", name, where, v.Target)
}

// DescribeVariables describes variables and omits duplicates.
func DescribeVariables(vars []loadout.RequestedVariable) []string {
	var out []string
	for _, v := range vars {
		if text := describeVariable(v); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
