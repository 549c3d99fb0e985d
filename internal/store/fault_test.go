package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Nothing has to be opened again after the server was away, and no call fails once it
// is back.
func TestDatabaseReconnects(t *testing.T) {
	server, err := storetest.StartServer()
	if err != nil {
		if os.Getenv("LOADOUT_TEST_POSTGRES") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer server.Close()
	ctx := t.Context()
	db := storetest.Open(t, server.URL())
	ada := newUser(t, db, "ada")
	var wg sync.WaitGroup
	for range 8 { // several connections to lose
		wg.Go(func() { must(db.Users.Get(ctx, ada.ID))(t) })
	}
	wg.Wait()

	err = db.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Users.Create(ctx, store.User{Name: "lost"}); err != nil {
			return err
		}
		mustDo(t, server.Stop())
		_, err := tx.Users.Create(ctx, store.User{Name: "never"})
		return err
	})
	wantError(t, err, store.ErrUnavailable)
	_, err = db.Users.Get(ctx, ada.ID)
	wantError(t, err, store.ErrUnavailable)
	_, err = db.Users.Create(ctx, store.User{Name: "bob"})
	wantError(t, err, store.ErrUnavailable)
	wantError(t, db.Ping(ctx), store.ErrUnavailable)
	_, err = store.Open(ctx, server.URL(), nil)
	wantError(t, err, store.ErrUnavailable)

	mustDo(t, server.Start())
	for range 20 {
		must(db.Users.Get(ctx, ada.ID))(t)
	}
	newUser(t, db, "bob")
	_, err = db.Users.ByName(ctx, "lost")
	wantError(t, err, store.ErrNotFound)
}

// processEnv has a test binary append events instead: "ADDRESS WRITER COUNT".
const processEnv = "LOADOUT_TEST_STORE_WRITER"

// writer appends events to one stream, against others who do.
func writer(address, name string, count int) error {
	ctx := context.Background()
	db, err := store.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	for i := 0; i < count; {
		last, err := db.Events.Last(ctx, "s")
		if err != nil {
			return err
		}
		switch _, err := db.Events.Append(ctx, "s", last, store.Event{Kind: fmt.Sprint(name, ".", i)}); {
		case err == nil:
			i++
			fmt.Println(i)
		case !errors.Is(err, store.ErrConflict):
			return err
		}
	}
	return nil
}

func writerMain() {
	count, _ := strconv.Atoi(os.Getenv(processEnv + "_COUNT"))
	if err := writer(os.Getenv(processEnv), os.Getenv(processEnv+"_NAME"), count); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func process(t *testing.T, address, name string, count int) *exec.Cmd {
	cmd := exec.Command(must(os.Executable())(t))
	cmd.Env = append(os.Environ(), processEnv+"="+address, processEnv+"_NAME="+name, processEnv+"_COUNT="+strconv.Itoa(count))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestProcessesOnOneDatabase(t *testing.T) {
	const each = 30
	eachAddress(t, func(t *testing.T, address string) {
		killed := process(t, address, "killed", 1<<30)
		out := must(killed.StdoutPipe())(t)
		mustDo(t, killed.Start())
		var others []*exec.Cmd
		for i := range 3 {
			cmd := process(t, address, fmt.Sprint("w", i), each)
			mustDo(t, cmd.Start())
			others = append(others, cmd)
		}
		buf := make([]byte, 64)
		for range 5 {
			must(out.Read(buf))(t)
		}
		mustDo(t, killed.Process.Kill())
		killed.Wait()
		for _, cmd := range others {
			mustDo(t, cmd.Wait())
		}

		db := storetest.Open(t, address)
		seen, next := map[string]bool{}, int64(0)
		for {
			events := must(db.Events.Read(t.Context(), "s", next, 0))(t)
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				if next++; e.Seq != next {
					t.Fatalf("event %d has number %d", next, e.Seq)
				}
				seen[e.Kind] = true
			}
		}
		for i := range 3 {
			for j := range each {
				if kind := fmt.Sprintf("w%d.%d", i, j); !seen[kind] {
					t.Errorf("%s is lost", kind)
				}
			}
		}
		wantEqual(t, must(db.Check(t.Context()))(t).Problems, []string(nil))
	})
}

func TestFileThatCannotBeCreated(t *testing.T) {
	dir := t.TempDir()
	_, err := store.Open(t.Context(), filepath.Join(dir, "none", "hub.db"), nil)
	wantError(t, err, os.ErrNotExist)
	_, err = store.Open(t.Context(), dir, nil)
	if err == nil {
		t.Error("a directory is opened")
	}
}
