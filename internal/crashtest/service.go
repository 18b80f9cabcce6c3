package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Service is one process of a host that stays up while its disk or its servers fail,
// with a load that reconnects whenever it has to.
type Service struct {
	Host    *Host
	Load    *Load
	Process *Process

	stop    context.CancelFunc
	loading sync.WaitGroup
}

// Serve starts a service and its load. The load runs until [Service.Settle], or until
// ctx ends; the caller kills the process.
func Serve(ctx context.Context, h *Host, l *Load) (*Service, error) {
	p, err := h.Start()
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, lifetime)
	defer cancel()
	if err := h.Serves(starting, p); err != nil {
		p.Kill()
		return nil, err
	}
	s := &Service{Host: h, Load: l, Process: p}
	ctx, s.stop = context.WithCancel(ctx)
	s.loading.Go(func() {
		for ctx.Err() == nil {
			s.load(ctx)
		}
	})
	return s, nil
}

func (s *Service) load(ctx context.Context) {
	nc, err := s.Host.Connect(ctx)
	if err != nil {
		return // ctx has ended
	}
	defer nc.Close()
	s.Load.Run(ctx, nc)
}

// Settle ends the load, waits until all accepted runs have ended, stops the process
// and returns the broken promises. It fails if the process has already ended.
func (s *Service) Settle(ctx context.Context) (*Archive, []Finding, error) {
	s.stop()
	s.loading.Wait()
	select {
	case <-s.Process.Ended():
		return nil, nil, fmt.Errorf("the process has ended; its output:\n%s", s.Process.Output())
	default:
	}
	nc, err := s.Host.Operator(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer nc.Close()
	return s.Host.audit(ctx, nc, s.Process, s.Load)
}

// Refusal is the error in the answer of a host that accepts no run.
type Refusal struct {
	Code, Message string
}

// Ask requests one run and notes it in the ledger. The refusal is nil when the run was
// accepted. Ask fails when there is no answer.
func (s *Service) Ask(ctx context.Context) (*Refusal, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	nc, err := s.Host.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	e := Entry{Marker: fmt.Sprintf("%s-ask%d", s.Load.Name, s.Load.next()), Flow: "chain", Way: Request}
	s.Load.Ledger.Send(e)
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{
		Subject: "fh.v1.api.run.chain", Data: fmt.Appendf(nil, `{"marker":%q,"n":0}`, e.Marker),
	})
	if err != nil {
		return nil, err
	}
	var got struct {
		Run   string
		Error *Refusal
	}
	if err := json.Unmarshal(reply.Data, &got); err != nil {
		return nil, err
	}
	if got.Run != "" {
		s.Load.Ledger.Accept(e.Marker, got.Run)
	}
	return got.Error, nil
}
