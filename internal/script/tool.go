package script

// Tool is a host program that installs packages. The caller may modify it.
type Tool struct {
	// Argv is the command: the absolute path of the program, preceded by the
	// path of its interpreter if it has one.
	Argv []string
	// Prefixes lists the host paths to mount, as in [Plan].
	Prefixes []string
}

// Tool searches for uv or npm in the directories in which interpreters are
// found. If there is no usable program, it returns false and the unusable
// programs.
func (h Host) Tool(name string) (*Tool, []Unusable, bool) {
	f, tried, ok := h.findInterpreter(detected{interpreters: []string{name}}, func(interpreter) string { return "" })
	if !ok {
		return nil, tried, false
	}
	return &Tool{Argv: append([]string{f.exe}, f.before...), Prefixes: f.prefixes}, nil, true
}
