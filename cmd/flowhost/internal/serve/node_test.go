package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
)

func TestExplainLoss(t *testing.T) {
	t.Parallel()
	const flag, streams = "--accept-loss", "OBJ_FH_*"
	embedded, external := &Node{link: &Link{server: &natsd.Server{}}}, &Node{link: &Link{}}
	for _, tt := range []struct {
		err            error
		flag, external bool
	}{
		{&engine.TruncatedError{Last: 1, Published: 2}, true, true},
		{&engine.ChainError{After: 2}, false, true},
		{&journal.DamageError{First: 1, Last: 2}, false, true},
		{errors.New("something else"), false, false},
	} {
		err := fmt.Errorf("at start: %w", tt.err)
		for n, want := range map[*Node]bool{embedded: false, external: tt.external} {
			got := n.explain(err)
			if !errors.Is(got, tt.err) || strings.Contains(got.Error(), flag) != tt.flag || strings.Contains(got.Error(), streams) != want {
				t.Errorf("%T is explained as %q, want the flag %t, the streams %t", tt.err, got, tt.flag, want)
			}
		}
	}
	if err := external.explain(nil); err != nil {
		t.Errorf("no error is explained as %q", err)
	}
}

// Why a host ends counts more than events that are published at its next start.
func TestStopTellsOfTheEngineFirst(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	l, err := OpenLink(t.Context(), settings.Settings{Data: t.TempDir()}, false, &flows.Set{}, log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n, err := NewNode(t.Context(), NodeConfig{Link: l, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	n.Start(t.Context())
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if fault := n.Stop(hurried); fault != nil || n.unkept == nil {
		t.Errorf("stopping gives %v, and %v of what is not kept", fault, n.unkept)
	}
}
