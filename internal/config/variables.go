package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/loadout-dev/loadout/internal/secretname"
)

// Variable is a platform value, given directly or as the name of the stored
// secret that holds it.
type Variable struct{ Value, Secret string }

// Limits on platform values.
const (
	maxVariables     = 256     // number of values
	maxVariableBytes = 8 << 10 // length of a value
)

// applyVariables reads the platform values. Error messages never contain the
// values.
func (l *loader) applyVariables(n *yaml.Node, root string, where func(*yaml.Node) string) {
	switch {
	case root != "":
		l.report(root, where(n), "variables"+userOnlyNote)
		return
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		l.addFault(where(n), "variables: expected a map of names to values")
		return
	case len(n.Content) > 2*maxVariables:
		l.addFault(where(n), "variables: too many names (%d, limit %d)", len(n.Content)/2, maxVariables)
		return
	}
	l.c.Variables = map[string]Variable{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, twice := l.c.Variables[key.Value]
		v, err := decodeVariable(value)
		switch {
		case key.Kind != yaml.ScalarNode || !secretname.IsVariable(key.Value):
			l.addFault(where(key), "variables.%s: expected a name such as backend_url or task_data.region", quoteKey(key.Value))
		case twice:
			l.addFault(where(key), "duplicate key variables.%s", key.Value)
		case err != nil:
			l.addFault(where(key), "variables.%s: %v", key.Value, err)
		default:
			l.c.Variables[key.Value] = v
		}
	}
}

func decodeVariable(n *yaml.Node) (Variable, error) {
	errForm := errors.New("expected a string, or secret: NAME")
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null" && n.Value != "":
		if len(n.Value) > maxVariableBytes {
			return Variable{}, fmt.Errorf("value too long (%d bytes, limit %d)", len(n.Value), maxVariableBytes)
		}
		return Variable{Value: n.Value}, nil
	case n.Kind != yaml.MappingNode || len(n.Content) != 2:
		return Variable{}, errForm
	}
	key, name := n.Content[0], n.Content[1]
	if key.Value != "secret" || name.Kind != yaml.ScalarNode || secretname.Check(name.Value) != nil {
		return Variable{}, errForm
	}
	return Variable{Secret: name.Value}, nil
}
