package spawn

import (
	"maps"
	"slices"
	"strings"
)

// environment returns the environment of a server process. It consists of the
// variables in own and the inheritable variables in parent.
func environment(parent []string, own map[string]string) []string {
	vars := map[string]string{}
	for _, e := range parent {
		name, v, ok := strings.Cut(e, "=")
		if ok && name != "" && isInherited(name) {
			vars[name] = v
		}
	}
	for name, v := range own {
		for k := range vars {
			if k != name && sameName(k, name) {
				delete(vars, k)
			}
		}
		vars[name] = v
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

func isInherited(name string) bool {
	for _, n := range inheritedNames {
		if sameName(name, n) || strings.HasSuffix(n, "*") && strings.HasPrefix(name, n[:len(n)-1]) {
			return true
		}
	}
	return false
}
