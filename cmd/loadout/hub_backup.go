package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/store"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up the database of a hub",
		Long: `Write a consistent copy of the database of a hub to a new file. The hub may be running.
The backup does not include the key that encrypts secrets. Keep a copy of the key
elsewhere: anyone who has both can read the secrets. With PostgreSQL, use pg_dump.`,
		Example: "  loadout backup hub-monday.db\n  loadout backup --data /srv/hub /backup/hub.db",
		Args:    argCount(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.loadConfigWithFlags(cmd, hubFlags)
			if err != nil {
				return err
			}
			return a.backupHub(cmd.Context(), c, args[0])
		},
	}
	hubLocationFlags(cmd)
	return cmd
}

func (a *app) backupHub(ctx context.Context, c *config.Config, file string) error {
	o, err := a.hubLocation(c)
	if err != nil {
		return err
	}
	done := a.ShowProgress("copying the database")
	err = hub.Backup(ctx, o, file)
	done()
	if err != nil {
		return classifyHubError(err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		return err
	}
	key := "" // key file that must be backed up separately
	if own := filepath.Join(o.Data, hub.KeyFile); len(o.Keys) == 0 && setup.Exists(own) {
		key = own
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"file": file, "bytes": fi.Size(), "key_file": key})
	}
	fmt.Fprintf(a.Stdout, "Backed up the database to %s, %s.\n", plain(file), console.FormatSize(fi.Size()))
	if key != "" {
		fmt.Fprintf(a.Stdout, "The backup does not include the key of its secrets: keep a copy of\n%s elsewhere.\n", a.homeRelative(key))
	}
	return nil
}

func (a *app) restoreCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore the database of a hub from a backup",
		Long: `Restore the database of a stopped hub from a backup. The backup is checked first. An
existing database is replaced only with --force, and is renamed, not deleted. The hub
needs the same encryption key as before. With PostgreSQL, use pg_restore.`,
		Example: "  loadout restore hub-monday.db\n  loadout restore --data /srv/hub --force /backup/hub.db",
		Args:    argCount(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.loadConfigWithFlags(cmd, hubFlags)
			if err != nil {
				return err
			}
			return a.restoreHub(cmd.Context(), c, args[0], force)
		},
	}
	hubLocationFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing database")
	return cmd
}

func (a *app) restoreHub(ctx context.Context, c *config.Config, file string, force bool) error {
	o, err := a.hubLocation(c)
	if err != nil {
		return err
	}
	done := a.ShowProgress("checking the backup")
	aside, err := hub.Restore(ctx, o, file, force)
	done()
	if err != nil {
		return classifyHubError(err)
	}
	path := filepath.Join(o.Data, hub.DatabaseFile)
	if o.Database != "" {
		path = store.SQLitePath(o.Database)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"database": path, "aside": aside})
	}
	fmt.Fprintf(a.Stdout, "Restored %s from %s.\n", a.homeRelative(path), plain(file))
	if aside != "" {
		fmt.Fprintf(a.Stdout, "The previous database is now %s; delete it when you no longer need it.\n", a.homeRelative(aside))
	}
	return nil
}
