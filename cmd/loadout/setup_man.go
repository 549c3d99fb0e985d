package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/manpage"
	"github.com/loadout-dev/loadout/internal/setup"
)

// manOutput is the JSON output of the man command.
type manOutput struct {
	Pages []string `json:"pages"` // paths of the written files
}

func (a *app) manCommand(root *cobra.Command) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print the manual page of a command",
		Long: `Print the manual page of loadout or of one of its commands in roff, the format of the
man program. With --dir, write the pages of all commands to files. To read them with
"man loadout", write them to the subdirectory man1 of a directory in MANPATH.`,
		Example: `  loadout man | man -l -
  loadout man servers test | man -l -
  loadout man --dir ~/.local/share/man/man1`,
		ValidArgsFunction: completeCommands(root),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return a.printManPage(root, args)
			}
			if len(args) > 0 {
				return exit.Errorf(exit.Usage, "omit one of them; see: loadout man --help", "--dir writes all pages; got the command %q too", args[0])
			}
			return a.writeManPages(root, dir)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "`DIR` for the manual pages of all commands")
	return cmd
}

// manHeader returns the text for the header and footer of all pages.
func manHeader() manpage.Header {
	v := setup.ReadVersion()
	return manpage.Header{Source: "loadout " + v.Version, Date: v.Date}
}

func (a *app) printManPage(root *cobra.Command, path []string) error {
	cmd, rest, err := root.Find(path)
	if err != nil || len(rest) > 0 {
		return unknownCommand(cmd, rest[0])
	}
	return manpage.Write(a.Stdout, cmd, manHeader())
}

func (a *app) writeManPages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return manDirError(dir, err)
	}
	out := manOutput{Pages: []string{}}
	var visit func(*cobra.Command) error
	visit = func(cmd *cobra.Command) error {
		if cmd.Hidden {
			return nil
		}
		var page bytes.Buffer
		if err := manpage.Write(&page, cmd, manHeader()); err != nil {
			return err
		}
		path := filepath.Join(dir, manpage.Name(cmd)+".1")
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
			return manDirError(dir, err)
		}
		out.Pages = append(out.Pages, path)
		for _, c := range cmd.Commands() {
			if err := visit(c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(root); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(out)
	}
	fmt.Fprintf(a.Stdout, "Wrote %s to %s.\n", console.Pluralize(len(out.Pages), "page"), console.ShellQuote(dir))
	return nil
}

func manDirError(dir string, err error) error {
	return exit.Errorf(exit.Failure, "give a directory that you can write to", "write manual pages to %s: %w", dir, fileerror.Cause(err))
}
