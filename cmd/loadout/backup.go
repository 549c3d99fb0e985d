package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub"
	"github.com/loadout-dev/loadout/internal/store"
)

func (a *app) backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of a hub's database, while it runs or not",
		Long: `Write a copy of the database of a hub to a new file, as it is at one moment, while the
hub runs or not. The key of secrets is not in it: keep a copy of that elsewhere, as
whoever has both can read them. With PostgreSQL, use pg_dump.`,
		Example: "  loadout backup hub-monday.db\n  loadout backup --data /srv/hub /backup/hub.db",
		Args:    want(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.hubSettings(cmd)
			if err != nil {
				return err
			}
			return a.backup(cmd.Context(), c, args[0])
		},
	}
	hubPlaceFlags(cmd)
	return cmd
}

func (a *app) backup(ctx context.Context, c *config.Config, file string) error {
	o, err := a.hubPlace(c)
	if err != nil {
		return err
	}
	done := a.progress("copying the database")
	err = hub.Backup(ctx, o, file)
	done()
	if err != nil {
		return hubError(err)
	}
	fi, err := os.Stat(file)
	if err != nil {
		return err
	}
	key := "" // the file that has to be kept too
	if own := filepath.Join(o.Data, hub.KeyFile); len(o.Keys) == 0 && exists(own) {
		key = own
	}
	if a.json {
		return a.printJSON(map[string]any{"file": file, "bytes": fi.Size(), "key_file": key})
	}
	fmt.Fprintf(a.stdout, "Copied the database to %s, %s.\n", plain(file), sized(fi.Size()))
	if key != "" {
		fmt.Fprintf(a.stdout, "Secrets in it can be read with the key only, which is not in it: keep a copy of\n%s in another place.\n", a.tilde(key))
	}
	return nil
}

func (a *app) restoreCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of a hub's database",
		Long: `Put a backup in the place of the database of a hub that does not run. The backup is
read through first. A database that is there is replaced with --force only, and stays
beside the other. The key of secrets has to be the one that the hub had. With
PostgreSQL, use pg_restore.`,
		Example: "  loadout restore hub-monday.db\n  loadout restore --data /srv/hub --force /backup/hub.db",
		Args:    want(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.hubSettings(cmd)
			if err != nil {
				return err
			}
			return a.restore(cmd.Context(), c, args[0], force)
		},
	}
	hubPlaceFlags(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "replace the database that is there")
	return cmd
}

func (a *app) restore(ctx context.Context, c *config.Config, file string, force bool) error {
	o, err := a.hubPlace(c)
	if err != nil {
		return err
	}
	done := a.progress("reading the backup")
	aside, err := hub.Restore(ctx, o, file, force)
	done()
	if err != nil {
		return hubError(err)
	}
	path := filepath.Join(o.Data, hub.DatabaseFile)
	if o.Database != "" {
		path = store.SQLitePath(o.Database)
	}
	if a.json {
		return a.printJSON(map[string]any{"database": path, "aside": aside})
	}
	fmt.Fprintf(a.stdout, "Restored %s from %s.\n", a.tilde(path), plain(file))
	if aside != "" {
		fmt.Fprintf(a.stdout, "What was there is now %s; remove it when it is not needed.\n", a.tilde(aside))
	}
	return nil
}
