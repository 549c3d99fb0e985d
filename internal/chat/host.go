// Package chat is a conversation with an agent at a terminal. It opens the
// skills, tools and model of the conversation, runs its turns on a screen or line
// by line, and has the slash commands.
//
// It parses no flags and registers no command. Package agent runs a turn, and
// package terminal draws the screen. Start reading at [Host.Run].
package chat

import (
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/review"
	"github.com/loadout-dev/loadout/internal/setup"
)

// Host is the program that runs a chat.
type Host struct {
	setup.Setup
	// ReportError prints an error with its next step, and returns its exit code.
	ReportError func(error) int
	// FormatReview returns what a skill can do as text without colors.
	FormatReview func(*review.Review, *config.Config) string
}
