// Package chat implements a conversation with an agent in a terminal. It opens
// the skills, tools and model of the conversation, runs its turns on a screen
// or line by line, and implements the slash commands.
//
// It parses no flags and registers no command. Package agent runs a turn, and
// package terminal draws the screen. Start reading at [Host.Run].
package chat

import (
	"github.com/loadout-dev/loadout/internal/setup"
)

// Host provides what a chat needs from the program that runs it.
type Host struct {
	setup.Setup
	// ReportError prints an error with its hint and returns its exit code.
	ReportError func(error) int
	// FormatReview describes what a skill can do, as text without colors.
	FormatReview setup.FormatReview
}
