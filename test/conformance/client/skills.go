package main

import (
	"context"
	"fmt"
	"os"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/serverskill"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// useSkills lists the skills of a server as Loadout does. If loads is set, it also
// loads each skill and, if that succeeds, reads its files. It reports what was
// refused, and succeeds anyway, because the suite checks the requests.
func useSkills(ctx context.Context, d *upstream.Dialer, url string, loads bool) error {
	source := serverskill.New(serverskill.Options{Label: "suite", Name: "suite", Wait: true, Connector: connector{d, url, os.Getenv("LOADOUT_CONFORMANCE_ERA")}})
	rt, err := loadout.New(ctx, &loadout.Options{Sources: []catalog.Source{source}})
	if err != nil {
		return err
	}
	defer rt.Close()
	skills := rt.Catalog().Snapshot().Skills()
	if len(skills) == 0 {
		return fmt.Errorf("the server lists no skills: %v", rt.Catalog().Snapshot().Problems())
	}
	for _, e := range skills {
		if _, err := rt.Catalog().CompleteManifest(ctx, e); err != nil || !loads {
			try(nil, err)
			continue
		}
		loaded, err := rt.Fetch(ctx, e.Key())
		if err != nil {
			fmt.Fprintln(os.Stderr, "client: refused:", err)
			continue
		}
		for _, f := range loaded[0].Files {
			_, err := rt.ReadFile(ctx, e, f.Path, 0, 0)
			try(nil, err)
		}
	}
	return nil
}

// connector connects in one protocol era, or detects it if era is "".
type connector struct {
	dialer   *upstream.Dialer
	url, era string
}

// Do implements [serverskill.Connector].
func (c connector) Do(ctx context.Context, _ string, f func(context.Context, serverskill.Conn) error) error {
	conn, err := c.dialer.Dial(ctx, &upstream.Config{Name: "suite", Type: upstream.HTTP, URLs: []string{c.url}}, &upstream.DialOptions{Era: c.era})
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(ctx, conn)
}
