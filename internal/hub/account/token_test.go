package account_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

func makeToken(t testing.TB, k *account.Tokens, life time.Duration) (string, account.Token) {
	t.Helper()
	text, row, err := k.Create(t.Context(), person(account.Outsider), "laptop", account.ScopeRead|account.ScopeMCP, life)
	if err != nil {
		t.Fatal(err)
	}
	return text, row
}

func TestTokensAreFoundByTheirText(t *testing.T) {
	s := &tokens{}
	k := account.NewTokens(s)
	seen := map[string]bool{}
	for range 100 {
		text, row := makeToken(t, k, 0)
		if len(text) != 60 || !strings.HasPrefix(text, row.Prefix) || len(row.Prefix) != 11 || seen[text] {
			t.Fatalf("%s of %s", text, row.Prefix)
		}
		seen[text] = true
		if kept := fmt.Sprintf("%v %s", s.rows, s.rows[len(s.rows)-1].Hash); strings.Contains(kept, text[11:]) {
			t.Fatal("the store has the text")
		}
		got, err := k.Find(t.Context(), text)
		if err != nil || got.ID != row.ID || got.User != me || got.Scopes != account.ScopeRead|account.ScopeMCP || got.Name != "laptop" {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestInvalidTokensAreRefused(t *testing.T) {
	s := &tokens{}
	k := account.NewTokens(s)
	text, row := makeToken(t, k, 0)
	other, _ := makeToken(t, k, 0)
	s.rows[1].Prefix = "lo_gone0000"
	asked := 0
	for name, bad := range map[string]string{
		"empty": "", "a prefix": row.Prefix, "cut": text[:59], "longer": text + "0", "another form": "gh" + text[2:], "mistyped": text[:30] + swapped(text[30]) + text[31:],
		"the last": text[:59] + swapped(text[59]), "odd letters": text[:20] + "é" + text[22:], "unknown": other,
	} {
		if got, err := k.Find(t.Context(), bad); !errors.Is(err, account.ErrInvalidCredentials) || got.User != "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.rows[0].Hash = s.rows[1].Hash // results of a store are compared
	if _, err := k.Find(t.Context(), text); !errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("another hash: %v", err)
	}
	s.err = errors.New("the disk is gone")
	if _, err := k.Find(t.Context(), text); !errors.Is(err, s.err) || errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("a store that cannot say: %v", err)
	}
	if _, err := k.Find(t.Context(), "mistyped"); !errors.Is(err, account.ErrInvalidCredentials) {
		t.Errorf("the store is asked about what is not a token: %v, %d", err, asked)
	}
	if _, _, err := k.Create(t.Context(), admin(), "x", account.ScopeRead, 0); !errors.Is(err, s.err) {
		t.Errorf("%v", err)
	}
}

func swapped(b byte) string {
	if b == 'x' {
		return "y"
	}
	return "x"
}

func TestTokensExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := account.NewTokens(&tokens{})
		text, _ := makeToken(t, k, time.Hour)
		for _, step := range []struct {
			after time.Duration
			want  error
		}{{time.Hour - time.Second, nil}, {time.Second, account.ErrInvalidCredentials}, {time.Hour, account.ErrInvalidCredentials}} {
			time.Sleep(step.after)
			if _, err := k.Find(t.Context(), text); !errors.Is(err, step.want) {
				t.Errorf("after %s more: %v, want %v", step.after, err, step.want)
			}
		}
	})
}

// The use of a token is noted once a minute, not at every request.
func TestTokenUseIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tokens{}
		k := account.NewTokens(s)
		text, _ := makeToken(t, k, 0)
		for range 120 {
			time.Sleep(time.Second)
			if _, err := k.Find(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if s.uses != 2 || time.Since(s.rows[0].LastUsed) > time.Minute {
			t.Errorf("%d notes, the last %s ago", s.uses, time.Since(s.rows[0].LastUsed))
		}
	})
}

// Nobody makes a token that may more than he.
func TestTokensCannotExceedCreatorsScopes(t *testing.T) {
	k := account.NewTokens(&tokens{})
	reader := person(account.Outsider).LimitedTo(account.ScopeRead)
	for name, f := range map[string]func() (string, account.Token, error){
		"anonymous": func() (string, account.Token, error) {
			return make1(t, k, account.Principal{Scopes: account.AllScopes}, "x", account.ScopeRead, 0)
		},
		"more scopes": func() (string, account.Token, error) {
			return make1(t, k, reader, "x", account.ScopeRead|account.ScopeRun, 0)
		},
		"no scopes": func() (string, account.Token, error) { return make1(t, k, admin(), "x", 0, 0) },
		"no name":   func() (string, account.Token, error) { return make1(t, k, admin(), "", account.ScopeRead, 0) },
		"a long name": func() (string, account.Token, error) {
			return make1(t, k, admin(), strings.Repeat("x", 101), account.ScopeRead, 0)
		},
		"ended already": func() (string, account.Token, error) { return make1(t, k, admin(), "x", account.ScopeRead, -1) },
	} {
		if text, row, err := f(); err == nil || text != "" || row.Prefix != "" {
			t.Errorf("%s: %q, %+v", name, text, row)
		}
	}
}

func make1(t *testing.T, k *account.Tokens, p account.Principal, name string, s account.Scopes, life time.Duration) (string, account.Token, error) {
	return k.Create(t.Context(), p, name, s, life)
}

func TestBearer(t *testing.T) {
	for header, want := range map[string]string{"Bearer lo_x": "lo_x", "bearer  lo_x ": "lo_x", "BEARER lo_x": "lo_x", "Basic lo_x": "", "Basic bmFtZTpsb194": "lo_x", "basic OmxvX3g=": "lo_x", "Basic bG9feA==": "", "Bearer": "", "": "", "lo_x": ""} {
		if got, basic := account.BearerToken(header); got != want || basic && !strings.HasPrefix(strings.ToLower(header), "basic") {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// FuzzToken checks that only the created token is accepted.
func FuzzToken(f *testing.F) {
	k := account.NewTokens(&tokens{})
	text, _ := makeToken(f, k, 0)
	f.Add(text)
	f.Add(text[:30])
	f.Add("lo_" + strings.Repeat("0", 57))
	f.Fuzz(func(t *testing.T, given string) {
		if got, err := k.Find(context.Background(), given); (err == nil) != (given == text) {
			t.Errorf("%q: %+v, %v", given, got, err)
		}
	})
}

func ExampleTokens() {
	k := account.NewTokens(&tokens{})
	ann := account.Principal{User: "ann", Admin: true, Scopes: account.AllScopes}
	text, _, err := k.Create(context.Background(), ann, "continuous integration", account.ScopeRead|account.ScopeRun, 90*24*time.Hour)
	if err != nil {
		fmt.Println(err)
		return
	}
	token, _ := account.BearerToken("Bearer " + text)
	t, err := k.Find(context.Background(), token)
	fmt.Println(t.User, t.Scopes, err)
	fmt.Println(account.Can(ann.LimitedTo(t.Scopes), account.SkillRead, account.OwnedBy("ann")), account.Can(ann.LimitedTo(t.Scopes), account.SkillUpload, account.OwnedBy("ann")))
	// Output:
	// ann read run <nil>
	// true false
}
