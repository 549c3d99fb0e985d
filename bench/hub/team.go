//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/people"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// settle makes the users, their groups and their tokens.
func (b *bench) settle() (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, b.database, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	who := people.New(db, people.Options{})
	var groups []string
	for i := range b.groups {
		g, err := db.Groups.Create(ctx, store.Group{Name: groupName(i)})
		if err != nil {
			return err
		}
		groups = append(groups, g.ID)
	}
	for i := range b.users + 1 { // the last one administers the hub
		u, err := db.Users.Create(ctx, store.User{Name: fmt.Sprint("user", i), Admin: i == b.users})
		if err != nil {
			return err
		}
		p := account.Principal{User: account.UserID(u.ID), Name: u.Name, Admin: u.Admin, Scopes: account.AllScopes}
		token, _, err := who.Tokens.Make(ctx, p, "bench", account.AllScopes, 0)
		if err != nil {
			return err
		}
		if u.Admin {
			b.admin = token
			break
		}
		b.tokens = append(b.tokens, token)
		if err := db.Groups.SetMember(ctx, store.Member{GroupID: groups[i%b.groups], UserID: u.ID, Role: store.Role(account.Developer.String())}); err != nil {
			return err
		}
	}
	return nil
}

func groupName(i int) string { return fmt.Sprint("group", i) }

// uploads is how many skills are uploaded at once.
const uploads = 4

// upload puts skills on the hub, and says how long that took.
func (b *bench) upload(dir string) (time.Duration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	if len(entries) < b.skills {
		return 0, fmt.Errorf("%s has %d skills, fewer than %d", dir, len(entries), b.skills)
	}
	next := make(chan int)
	errs := make(chan error, uploads)
	var sending sync.WaitGroup
	start := time.Now()
	for range uploads {
		sending.Go(func() {
			var failed error
			for i := range next {
				if failed == nil {
					failed = b.put(filepath.Join(dir, entries[i].Name()), i)
				}
			}
			errs <- failed
		})
	}
	for i := range b.skills {
		next <- i
	}
	close(next)
	sending.Wait()
	took := time.Since(start)
	for range uploads {
		err = errors.Join(err, <-errs)
	}
	return took, err
}

// put uploads one skill to where it belongs by its number.
func (b *bench) put(dir string, i int) error {
	var data bytes.Buffer
	if _, _, err := skill.WriteZIP(&data, os.DirFS(dir), filepath.Base(dir)); err != nil {
		return err
	}
	user := i / 4 % len(b.tokens)
	token, in := b.tokens[user], "default"
	switch i % 4 {
	case 0, 1:
		token, in = b.admin, "public"
	case 2:
		in = groupName(user % b.groups)
	}
	for {
		_, _, err := b.send(token, "POST", b.node.url+"/api/v1/skills?namespace="+in+"&file_name="+url.QueryEscape(filepath.Base(dir)+".zip"), "application/zip", bytes.NewReader(data.Bytes()))
		if r, ok := errors.AsType[*refusal](err); !ok || r.status != 503 {
			return err
		}
		b.again.Add(1)
	}
}
