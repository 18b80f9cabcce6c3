// Command api is the shop of the example etl: it serves orders in pages, and refuses clients
// that ask too often.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	orders   = 95 // of the shop
	pageSize = 20
	burst    = 3 // requests at once
	perToken = 50 * time.Millisecond
)

func main() {
	address := flag.String("listen", "127.0.0.1:8321", "loopback `ADDRESS`")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatalf("the example's API cannot listen: %v", err)
	}
	fmt.Fprintf(os.Stderr, "the example's API serves http://%s/orders\n", listener.Addr())
	log.Fatal(http.Serve(listener, &shop{tokens: burst, last: time.Now()}))
}

// shop limits the rate of requests by a bucket of tokens.
type shop struct {
	mu     sync.Mutex
	tokens float64
	last   time.Time
}

type line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int64  `json:"cents"`
}

type order struct {
	ID     string    `json:"id"`
	Placed time.Time `json:"placed"`
	State  string    `json:"state"`
	Lines  []line    `json:"lines"`
}

// ServeHTTP serves GET /orders?after=ID.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != "/orders" {
		http.NotFound(w, r)
		return
	}
	if !s.admit() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	first := 0
	if after := r.URL.Query().Get("after"); after != "" {
		if _, err := fmt.Sscanf(after, "o-%04d", &first); err != nil {
			http.Error(w, "after: an id of an order is expected", http.StatusBadRequest)
			return
		}
		first++
	}
	page := struct {
		Orders []order `json:"orders"`
		Next   string  `json:"next,omitempty"`
	}{Orders: []order{}}
	last := min(first+pageSize, orders)
	for i := first; i < last; i++ {
		page.Orders = append(page.Orders, orderOf(i))
	}
	if last < orders && last > first {
		page.Next = page.Orders[len(page.Orders)-1].ID
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(page)
}

func (s *shop) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.tokens = min(s.tokens+now.Sub(s.last).Seconds()/perToken.Seconds(), burst)
	s.last = now
	if s.tokens < 1 {
		return false
	}
	s.tokens--
	return true
}

// orderOf makes up an order: the same for the same number.
func orderOf(i int) order {
	o := order{ID: fmt.Sprintf("o-%04d", i), Placed: time.Date(2026, 3, 1, 0, i, 0, 0, time.UTC), State: "paid"}
	if i%10 == 9 {
		o.State = "canceled"
	}
	for l := range 1 + i%3 {
		o.Lines = append(o.Lines, line{SKU: fmt.Sprintf("sku-%d", (i+l)%7), Quantity: 1 + l, Cents: int64(250 * (1 + i%4))})
	}
	return o
}
