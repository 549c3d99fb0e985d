//go:build linux

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

// question is a user's question with the name of the skill that it needs, or "" if
// it needs none.
type question struct {
	Ask      string `json:"ask"`
	Want     string `json:"want"`
	Language string `json:"language"`
}

// bundledQuestions are about the bundled skills. They describe tasks and avoid
// the words in the skills' descriptions.
//
//go:embed questions.json
var bundledQuestions []byte

// readQuestions reads questions from a file. If file is empty, it returns the questions for the
// bundled skills.
func readQuestions(file string) ([]question, error) {
	data := bundledQuestions
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var all []question
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	for i, q := range all {
		if q.Ask == "" {
			return nil, fmt.Errorf("missing text in question %d", i+1)
		}
	}
	return all, nil
}
