package httpreach_test

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const childVariable = "HTTPREACH_TEST_CHILD"

// TestEnvironment repeats a request in a process with each variable that programs obey.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	listener, accepted := serve(t, "127.0.0.1:0", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	proxy := "http://" + listener.Listener.Addr().(*net.TCPAddr).String()
	keys := filepath.Join(t.TempDir(), "keys")
	tests := map[string][]string{
		"HTTP_PROXY":     {"HTTP_PROXY=" + proxy, "http_proxy=" + proxy},
		"HTTPS_PROXY":    {"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy},
		"ALL_PROXY":      {"ALL_PROXY=" + proxy, "all_proxy=" + proxy},
		"NO_PROXY":       {"NO_PROXY=*", "no_proxy=*", "HTTP_PROXY=" + proxy},
		"SSLKEYLOGFILE":  {"SSLKEYLOGFILE=" + keys},
		"GODEBUG=netdns": {"GODEBUG=netdns=cgo+2"},
		"RES_OPTIONS":    {"RES_OPTIONS=ndots:15", "LOCALDOMAIN=attacker.example"},
		"HOSTALIASES":    {"HOSTALIASES=" + keys},
	}
	for name, variables := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnvironmentChild$", "-test.v")
			child.Env = append(append(os.Environ(), childVariable+"=1", "REQUEST_METHOD="), variables...)
			out, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestEnvironmentChild") {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := accepted.Load(); n != 0 {
				t.Errorf("the proxy of the environment got %d connections", n)
			}
			if _, err := os.Stat(keys); err == nil {
				t.Error("keys of TLS were written")
			}
		})
	}
}

// TestEnvironmentChild is one request by HTTP and one by TLS.
func TestEnvironmentChild(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("TestEnvironment runs it in processes of its own")
	}
	r := newRig(t, nil)
	wantStatus(t, r.get(r.origin()+"/"), 200)
	s := newSecure(t, nil)
	wantStatus(t, s.do(s.connection(), fields{"url": "/"}, ""), 200)
	if r.names.lookups.Load() != 1 || s.names.lookups.Load() != 1 {
		t.Errorf("%d and %d lookups, want one by the given resolver each", r.names.lookups.Load(), s.names.lookups.Load())
	}
}
