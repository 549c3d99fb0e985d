package main

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/terminal"
)

// meter shows the progress of reading remote skills.
type meter struct{ *terminal.Progress }

func (a *app) newMeter() *meter { return &meter{a.NewProgress()} }

func (m *meter) report(p remote.Progress) { m.Report(formatProgress(p)) }

// begin shows the operation until done is called.
func (m *meter) begin(what string) (done func()) { return m.Begin(what) }

func formatProgress(p remote.Progress) string {
	amount := func(n int64) string {
		if p.Bytes {
			return console.FormatSize(n)
		}
		return fmt.Sprint(n)
	}
	switch {
	case p.What == "":
		return ""
	case p.Total == 0:
		return fmt.Sprintf("%s: %s", p.What, amount(p.Done))
	}
	return fmt.Sprintf("%s: %s of %s, %d %%", p.What, amount(p.Done), amount(p.Total), 100*p.Done/p.Total)
}
