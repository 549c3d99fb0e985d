package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// instructions lists the instructions that a Containerfile may contain.
var instructions = []string{"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}

// checkContainerfile checks a Containerfile without building it. It returns an
// error for an unknown instruction, for one without arguments or before the
// first FROM, and for a copy from an unknown stage.
func checkContainerfile(file string) error {
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var stages []string
	froms := 0
	var instruction strings.Builder
	for n, line := range strings.Split(string(src), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rest, more := strings.CutSuffix(line, `\`)
		instruction.WriteString(rest + " ")
		if more {
			continue
		}
		words := strings.Fields(instruction.String())
		instruction.Reset()
		name := strings.ToUpper(words[0])
		switch {
		case !slices.Contains(instructions, name):
			return fmt.Errorf("%s:%d: unknown instruction %s", file, n+1, words[0])
		case len(words) < 2:
			return fmt.Errorf("%s:%d: %s needs arguments", file, n+1, name)
		case froms == 0 && name != "FROM" && name != "ARG":
			return fmt.Errorf("%s:%d: %s before FROM", file, n+1, name)
		}
		if name == "FROM" {
			froms++
			if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "AS") }); i > 0 && i+1 < len(words) {
				stages = append(stages, words[i+1])
			}
		}
		for _, w := range words {
			if stage, ok := strings.CutPrefix(w, "--from="); ok && !slices.Contains(stages, stage) {
				return fmt.Errorf("%s:%d: unknown stage %s", file, n+1, stage)
			}
		}
	}
	switch {
	case instruction.Len() > 0:
		return fmt.Errorf("%s ends inside an instruction", file)
	case froms == 0:
		return fmt.Errorf("%s has no FROM", file)
	}
	return nil
}
