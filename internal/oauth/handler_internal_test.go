package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestWaitForRefreshCanBeCancelled(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	var renewals atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		renewals.Add(1)
		close(asked)
		<-answer
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"new","token_type":"Bearer","refresh_token":"next","expires_in":3600}`)
	}))
	t.Cleanup(issuer.Close)
	s, server := NewStore(FileStorage(t.TempDir()), "ada"), issuer.URL+"/mcp"
	over := &grant{Issuer: issuer.URL, TokenURL: issuer.URL + "/token", ClientID: "c", Access: "old", Refresh: "once", Expiry: time.Now().Add(-time.Hour), Private: true}
	if err := s.write(t.Context(), server, over); err != nil {
		t.Fatal(err)
	}
	h := s.Handler(server, "sign in")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	wait := func() {
		_, err := h.TokenSource(ctx)
		left <- err
	}
	go wait()
	<-asked
	go wait()
	leave()
	for range 2 {
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who went got %v", err)
		}
	}
	close(answer)
	from, err := h.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := from.Token(); err != nil || got.AccessToken != "new" || renewals.Load() != 1 {
		t.Errorf("the token is %v, %v after %d renewals", got, err, renewals.Load())
	}
}
