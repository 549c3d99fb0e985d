package setup

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// Confirmation describes what the user confirms before a command grants
// permissions.
type Confirmation struct {
	Question    string   // a yes-or-no question
	Show        func()   // prints to Stdout what is confirmed; may be nil
	Args        []string // arguments of loadout, for the refusal
	Hint        string   // next step after a refusal; "" names the list of requests
	Ask         bool     // whether to ask even if standard input and standard error are terminals
	Yes         bool     // --yes
	DigestGiven bool     // whether the user gave the digest of what they confirm
}

// IsAttended reports whether standard input and standard error are terminals, so
// that whoever typed the command sees and answers its questions. A program that
// inherits a terminal usually redirects one of them.
func (s *Setup) IsAttended() bool {
	return console.IsTerminal(s.Stdin) && console.IsTerminal(s.Stderr) || s.Caller().Assumed
}

// CheckConfirmable returns an error if [Setup.ConfirmUser] would refuse c without
// asking, so that a command can stop before it does anything.
func (s *Setup) CheckConfirmable(ctx context.Context, c Confirmation) error {
	typed := console.IsTerminal(s.Stdin)
	if c.Yes && !typed && !c.DigestGiven && !s.Caller().Assumed {
		return s.refuse(ctx, c.Args, "--yes needs a terminal on standard input", c.Hint)
	}
	return nil
}

// ConfirmUser calls [Setup.RequireUser], and then reports whether the user
// confirms c. If standard input or standard error is redirected, it shows
// everything and asks on the controlling terminal: a program that inherited the
// terminal must not answer for the user. It returns an error if it cannot ask
// there.
func (s *Setup) ConfirmUser(ctx context.Context, c Confirmation) (bool, error) {
	if err := s.CheckConfirmable(ctx, c); err != nil {
		return false, err
	}
	typed := console.IsTerminal(s.Stdin)
	switch {
	case c.Yes && (typed || c.DigestGiven):
		return true, nil
	case typed && console.IsTerminal(s.Stderr):
		if !c.Ask || s.JSON {
			return true, nil
		}
		fmt.Fprintln(s.Stderr)
		return s.Confirm(ctx, c.Question)
	case s.Caller().Assumed:
		return true, nil
	}
	in, out, err := presence.OpenTerminal()
	if err != nil {
		return false, s.refuse(ctx, c.Args, fmt.Sprintf("cannot ask on the terminal: %v", err), c.Hint)
	}
	defer in.Close()
	defer out.Close()
	fmt.Fprintf(out, "\nA program runs `%s`. Its input or output is redirected. Agree only if you started it.\n\n", terminal.Plain(formatCommand(c.Args)))
	if c.Show != nil && (s.JSON || !console.IsTerminal(s.Stdout)) {
		stdout := s.Stdout
		s.Stdout = out
		c.Show()
		s.Stdout = stdout
		fmt.Fprintln(out)
	}
	return s.ConfirmOn(ctx, in, out, c.Question)
}
