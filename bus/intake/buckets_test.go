package intake_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// shelves notes operations and answers them.
type shelves struct {
	all []api.KVBucket

	mu     sync.Mutex
	noted  []string
	answer access.Answer
}

func (s *shelves) All(context.Context) ([]api.KVBucket, error) { return slices.Clone(s.all), nil }

func (s *shelves) Do(_ context.Context, bucket string, op *access.Operation) access.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noted = append(s.noted, fmt.Sprintf("%s %s %s %s", bucket, op.Kind, op.Head, op.Body))
	return s.answer
}

// asked returns the operations since the last call, and sets the answer to the next ones.
func (s *shelves) asked(answer access.Answer) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
	noted := strings.Join(s.noted, "\n")
	s.noted = nil
	return noted
}

// kvSite is a host with buckets, and its operator.
func kvSite(t *testing.T, s *shelves) (nc *nats.Conn, client, operator *api.Client) {
	t.Helper()
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	nc = bustest.Connect(t, server)
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{Buckets: s, Operator: natsd.AccountOperator})
	dial := func(context string) *api.Client {
		client, err := api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + context})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	return nc, dial(natsd.ClientContext), dial(natsd.OperatorContext)
}

func TestBucketsOfTheOperator(t *testing.T) {
	t.Parallel()
	s := &shelves{all: []api.KVBucket{{Bucket: "b", Keys: 2, Bytes: 70, MaxBytes: 100}, {Bucket: "a"}}}
	_, _, operator := kvSite(t, s)
	ctx := t.Context()
	if got, err := operator.KVBuckets(ctx); err != nil || !cmp.Equal(got, []api.KVBucket{s.all[1], s.all[0]}) {
		t.Errorf("%+v, %v", got, err)
	}
	s.asked(access.Answer{Head: json.RawMessage(`{"revision":7,"created":"2026-01-02T03:04:05Z"}`), Body: []byte("\x00raw\xff")})
	if got, err := operator.KVGet(ctx, "b", "k"); err != nil || got.Revision != 7 || string(got.Value) != "\x00raw\xff" || got.Created.Year() != 2026 {
		t.Errorf("%+v, %v", got, err)
	}
	one := uint64(1)
	if got, err := operator.KVPut(ctx, api.KVPutRequest{KVRequest: api.KVRequest{Bucket: "b", Key: "k", Revision: &one, TTL: 1500}, Value: []byte("v")}); err != nil || got != 7 {
		t.Errorf("%d, %v", got, err)
	}
	if err := operator.KVDelete(ctx, "b", "k", nil); err != nil {
		t.Error(err)
	}
	want := `b kv.get {"bucket":"b","key":"k"} 
b kv.put {"bucket":"b","key":"k","revision":1,"ttl_ms":1500} v
b kv.delete {"bucket":"b","key":"k"} `
	if diff := cmp.Diff(want, s.asked(access.Answer{Head: json.RawMessage(`{"count":1,"more":true}`), Body: []byte(`[{"key":"k","revision":3}]`)})); diff != "" {
		t.Error(diff)
	}
	if page, err := operator.KVList(ctx, "b", "k", "j", 1); err != nil || !cmp.Equal(page, api.KVPage{Keys: []api.KVKey{{Key: "k", Revision: 3}}, Next: "k"}) {
		t.Errorf("%+v, %v", page, err)
	}
	s.asked(access.Answer{Head: json.RawMessage(`{"count":0,"more":false}`), Body: []byte(`[]`)})
	if page, err := operator.KVList(ctx, "b", "", "", 0); err != nil || len(page.Keys) != 0 || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
	for code, want := range map[string]string{
		access.CodeNotFound: api.CodeUnknownKey, access.CodeConflict: api.CodeConflict, access.CodeInvalid: run.RequestParams,
		access.CodeTooLarge: api.CodeFull, access.CodeUnreachable: api.CodeUnavailable,
	} {
		s.asked(access.Answer{Fault: &access.Fault{Code: code, Target: "kv b k", Message: "why"}})
		if _, err := operator.KVGet(ctx, "b", "k"); codeOf(err) != want || err.Error() != "kv b k: why" {
			t.Errorf("%s: %v (%s)", code, err, codeOf(err))
		}
	}
	if _, err := operator.KVGet(ctx, "", "k"); codeOf(err) != run.RequestParams {
		t.Errorf("without a bucket: %v", err)
	}
}

// No request of a client reaches a bucket, also where the server lets it publish.
func TestBucketsAreClosedToClients(t *testing.T) {
	t.Parallel()
	s := &shelves{answer: access.Answer{Head: json.RawMessage(`{}`), Body: []byte(`[]`)}}
	nc, client, _ := kvSite(t, s)
	if _, err := client.KVGet(t.Context(), "b", "k"); codeOf(err) != api.CodeDenied {
		t.Errorf("get by a client: %v", err)
	}
	for _, verb := range []string{api.VerbKVBuckets, api.VerbKVList, api.VerbKVGet, api.VerbKVPut, api.VerbKVDelete} {
		header := nats.Header{"Nats-Request-Info": {`{"acc":"CLIENT","id":7}`}}
		if answer, code := bustest.Request(t, nc, bus.APISubject(verb), `{"bucket":"b","key":"k"}`, header); code != api.CodeDenied {
			t.Errorf("%s: %s", verb, answer)
		}
	}
	if noted := s.asked(access.Answer{}); noted != "" {
		t.Errorf("performed: %s", noted)
	}
}

// archive counts what is read.
type archive struct {
	*bustest.Control
	content []byte

	mu      sync.Mutex
	records int
}

func (a *archive) Get(ctx context.Context, id run.ID) (*run.Record, error) {
	a.mu.Lock()
	a.records++
	a.mu.Unlock()
	return a.Control.Get(ctx, id)
}

func (a *archive) ReadPart(_ context.Context, digest string, offset int64, most int) ([]byte, int64, bool, error) {
	if strings.HasSuffix(digest, "e") {
		return nil, 0, false, fmt.Errorf("openat /secret/place: permission denied")
	}
	size := int64(len(a.content))
	return a.content[min(offset, size):min(offset+int64(most), size)], size, !strings.HasSuffix(digest, "d"), nil
}

// A part of an artifact is for whoever may read the record of a run whose task made it.
func TestArtifactsOfARun(t *testing.T) {
	t.Parallel()
	a := &archive{Control: bustest.NewControl(), content: []byte(strings.Repeat("0123456789", 150_000))}
	digest := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	a.SetLarge(json.RawMessage(fmt.Sprintf(`[{"$artifact":%q},{"$artifact":%q},{"$artifact":%q}]`, digest("a"), digest("d"), digest("e"))))
	dir := t.TempDir()
	server := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0"})
	bustest.RunIntake(t, bustest.Connect(t, server), &bustest.Starter{}, nil, intake.Config{Control: a, Artifacts: a, Operator: natsd.AccountOperator})
	client, err := api.Dial(t.Context(), api.DialConfig{Context: dir + "/" + natsd.ClientContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	var got []byte
	for {
		part, err := client.Artifact(t.Context(), bustest.OpenRun, digest("a"), int64(len(got)))
		if err != nil || part.Size != int64(len(a.content)) || len(part.Data) > api.MaxArtifactPart {
			t.Fatalf("%d bytes of %d, %v", len(part.Data), part.Size, err)
		}
		if got = append(got, part.Data...); len(part.Data) == 0 {
			break
		}
	}
	if string(got) != string(a.content) {
		t.Errorf("%d bytes, of which some are wrong", len(got))
	}
	a.mu.Lock()
	if a.records != 1 {
		t.Errorf("the record was read %d times", a.records)
	}
	a.mu.Unlock()
	for _, test := range []struct {
		run    run.ID
		digest string
		offset int64
		code   string
	}{
		{bustest.OpenRun, digest("b"), 0, api.CodeUnknownArtifact},
		{bustest.DoneRun, digest("a"), 0, api.CodeUnknownArtifact},
		{bustest.GoneRun, digest("a"), 0, api.CodeUnknownRun},
		{bustest.OpenRun, digest("d"), 0, api.CodeUnknownArtifact},
		{bustest.OpenRun, digest("e"), 0, api.CodeUnavailable},
		{bustest.OpenRun, "../../etc/passwd", 0, run.RequestParams},
		{bustest.OpenRun, digest("a"), -1, run.RequestParams},
		{"x", digest("a"), 0, run.RequestParams},
	} {
		_, err := client.Artifact(t.Context(), test.run, test.digest, test.offset)
		if codeOf(err) != test.code || strings.Contains(err.Error(), "/secret") {
			t.Errorf("%s of %s: %v (%s)", test.digest, test.run, err, codeOf(err))
		}
	}
}
