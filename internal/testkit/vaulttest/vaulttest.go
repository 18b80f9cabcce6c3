// Package vaulttest has a server that answers like the KV engine (version 2) of Vault and
// OpenBao, as far as tests need it. The client of OpenBao reads it, too (internal/bench).
//
// The server's goroutines end with the test.
package vaulttest

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a server with a KV engine at the mount "kv".
type Server struct {
	*httptest.Server

	mu        sync.Mutex
	token     string
	namespace string
	secrets   map[string][]map[string]any // versions by path below the mount; nil: deleted
	status    int                         // instead of an answer
	gate      chan struct{}               // requests wait until it is closed
	entered   chan struct{}
	requests  int
}

// Start starts a server that ends with the test, for a token and a namespace, which may be
// empty. start is httptest.NewServer unless it is given.
func Start(t *testing.T, token, namespace string, start func(http.Handler) *httptest.Server) *Server {
	t.Helper()
	s := &Server{token: token, namespace: namespace, secrets: map[string][]map[string]any{}, entered: make(chan struct{}, 1000)}
	if start == nil {
		start = httptest.NewServer
	}
	s.Server = start(http.HandlerFunc(s.serve))
	t.Cleanup(s.Server.Close)
	return s
}

// Put adds a version of a secret; nil deletes the newest.
func (s *Server) Put(path string, data map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[path] = append(s.secrets[path], maps.Clone(data))
}

// SetToken changes the only token that has access.
func (s *Server) SetToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Fail answers all requests with a status; 0 ends that.
func (s *Server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Hold lets requests wait until release is called. entered receives one value for each
// request that has come.
func (s *Server) Hold() (entered <-chan struct{}, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return s.entered, sync.OnceFunc(func() { close(gate) })
}

// Requests is how many requests have come.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		s.entered <- struct{}{}
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	status, answer := s.answer(r)
	w.Header().Set("Content-Type", "application/json")
	if status >= 300 && status < 400 {
		w.Header().Set("Location", s.URL+"/elsewhere")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may have gone
}

// answer is the status and body for a request. The lock is held.
func (s *Server) answer(r *http.Request) (int, any) {
	failed := func(messages ...string) any { return map[string]any{"errors": append([]string{}, messages...)} }
	path, below := strings.CutPrefix(r.URL.Path, "/v1/kv/data/")
	versions := s.secrets[path]
	switch {
	case s.status != 0:
		return s.status, failed("as the test wants it")
	case r.Header.Get("X-Vault-Token") != s.token || strings.Trim(r.Header.Get("X-Vault-Namespace"), "/") != s.namespace:
		return http.StatusForbidden, failed("permission denied")
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed, failed()
	case strings.HasPrefix(r.URL.Path, "/v1/kv/") && !below:
		return http.StatusNotFound, map[string]any{"errors": []string{}, "warnings": []string{"Invalid path for a versioned K/V secrets engine."}}
	case !below || len(versions) == 0:
		return http.StatusNotFound, failed()
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	metadata := map[string]any{"created_time": now, "custom_metadata": nil, "deletion_time": "", "destroyed": false, "version": json.Number(strconv.Itoa(len(versions)))}
	status, data := http.StatusOK, versions[len(versions)-1]
	if data == nil {
		status, metadata["deletion_time"] = http.StatusNotFound, now
	}
	return status, map[string]any{
		"request_id": "a4e1c0de-0000-4000-8000-000000000000", "lease_id": "", "renewable": false, "lease_duration": 0,
		"data": map[string]any{"data": data, "metadata": metadata}, "wrap_info": nil, "warnings": nil, "auth": nil,
	}
}
