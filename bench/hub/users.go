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

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// createUsers creates the users, their groups and their tokens.
func (b *bench) createUsers() (err error) {
	ctx := context.Background()
	db, err := store.Open(ctx, b.database, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	accounts := users.New(db, users.Options{})
	b.groupIDs, b.userIDs = nil, nil
	for i := range b.groups {
		g, err := db.Groups.Create(ctx, store.Group{Name: groupName(i)})
		if err != nil {
			return err
		}
		b.groupIDs = append(b.groupIDs, g.ID)
	}
	for i := range b.users + 1 { // the last user is an administrator
		u, err := db.Users.Create(ctx, store.User{Name: fmt.Sprint("user", i), Admin: i == b.users})
		if err != nil {
			return err
		}
		p := account.Principal{User: account.UserID(u.ID), Name: u.Name, Admin: u.Admin, Scopes: account.AllScopes}
		token, _, err := accounts.Tokens.Create(ctx, p, "bench", account.AllScopes, 0)
		if err != nil {
			return err
		}
		if u.Admin {
			b.admin = token
			break
		}
		b.tokens, b.userIDs = append(b.tokens, token), append(b.userIDs, u.ID)
		if err := db.Groups.SetMember(ctx, store.Member{GroupID: b.groupIDs[i%b.groups], UserID: u.ID, Role: store.Role(account.Developer.String())}); err != nil {
			return err
		}
	}
	return nil
}

func groupName(i int) string { return fmt.Sprint("group", i) }

// uploads is the number of skills uploaded concurrently.
const uploads = 4

// upload uploads the skills in a directory and returns the elapsed time.
func (b *bench) upload(dir string) (time.Duration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	if len(entries) < b.skills {
		return 0, fmt.Errorf("not enough skills in %s (%d, want %d)", dir, len(entries), b.skills)
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
					failed = b.uploadSkill(filepath.Join(dir, entries[i].Name()), i)
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

// uploadSkill uploads skill i. Of every four skills, two go to the public
// namespace, one to a group and one to a user.
func (b *bench) uploadSkill(dir string, i int) error {
	var data bytes.Buffer
	if _, _, err := skill.WriteZIP(&data, os.DirFS(dir), filepath.Base(dir)); err != nil {
		return err
	}
	user := i / 4 % len(b.tokens)
	token, namespace := b.tokens[user], "default"
	switch i % 4 {
	case 0, 1:
		token, namespace = b.admin, "public"
	case 2:
		namespace = groupName(user % b.groups)
	}
	for {
		_, _, err := b.send(token, "POST", b.node.url+"/api/v1/skills?namespace="+namespace+"&file_name="+url.QueryEscape(filepath.Base(dir)+".zip"), "application/zip", bytes.NewReader(data.Bytes()))
		if r, ok := errors.AsType[*statusError](err); !ok || r.status != 503 {
			return err
		}
		b.retries.Add(1)
	}
}
