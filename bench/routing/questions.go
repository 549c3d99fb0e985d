//go:build linux

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

// question is what a person asks, and the skill that is for it, "" where none is.
type question struct {
	Ask      string `json:"ask"`
	Want     string `json:"want"`
	Language string `json:"language"`
}

// ours are about the bundled skills: written from tasks, in the words of people who
// have not read a description.
//
//go:embed questions.json
var ours []byte

// readQuestions reads a file of questions, ours for "".
func readQuestions(file string) ([]question, error) {
	data := ours
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, err
		}
	}
	var all []question
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("questions: %w", err)
	}
	for i, q := range all {
		if q.Ask == "" {
			return nil, fmt.Errorf("question %d asks nothing", i+1)
		}
	}
	return all, nil
}
