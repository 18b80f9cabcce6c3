package order

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAmount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Amount{
		"0": 0, "-0": 0, "7": 700, "0.1": 10, "0.01": 1, "129.90": 12990, "129.900": 12990,
		"-3.05": -305, "999999999999999.99": 99999999999999999,
	} {
		var got Amount
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s gave %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0.001", "1e2", "1.5E1", `"1"`, "true", "{}", "1000000000000000"} {
		var got Amount
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), "not an amount") {
			t.Errorf("%s gave %d, %v", text, got, err)
		}
	}
	for amount, want := range map[Amount]string{0: "0", 5: "0.05", -5: "-0.05", 700: "7", 12990: "129.90", math.MinInt64: "-92233720368547758.08"} {
		if got := amount.String(); got != want {
			t.Errorf("%d is written %s, want %s", amount, got, want)
		}
	}
}

// FuzzAmount compares with exact rational arithmetic: what is taken has that
// value and is written back with it.
func FuzzAmount(f *testing.F) {
	for _, seed := range []string{"0", "-1.5", "12.34", "1e3", "00", "-", ".5", "5.", "1.230"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got Amount
		if json.Unmarshal([]byte(text), &got) != nil || strings.TrimSpace(text) == "null" {
			return
		}
		want, ok := new(big.Rat).SetString(strings.TrimSpace(text))
		if !ok || want.Cmp(big.NewRat(int64(got), 100)) != 0 {
			t.Fatalf("%q was read as %d hundredths", text, got)
		}
		if written, _ := new(big.Rat).SetString(got.String()); written.Cmp(want) != 0 {
			t.Errorf("%q was written back as %s", text, got)
		}
	})
}

func TestProblems(t *testing.T) {
	t.Parallel()
	good := Item{SKU: "A", Quantity: 1, Price: 1}
	tests := map[string]struct {
		order Order
		want  []Problem
	}{
		"none": {Order{Customer: "c", Items: []Item{good, {"B", MaxQuantity, MaxPrice}}}, nil},
		"empty": {Order{}, []Problem{
			{"customer", "is missing"},
			{"items", "is empty"},
		}},
		"items": {Order{Customer: "c", Items: []Item{good, {"", 0, -1}, {"C", MaxQuantity + 1, MaxPrice + 1}}}, []Problem{
			{"items[1].sku", "is missing"},
			{"items[1].quantity", "is 0; it must be between 1 and 100000"},
			{"items[1].price", "is -0.01; it must be between 0 and 10000000"},
			{"items[2].quantity", "is 100001; it must be between 1 and 100000"},
			{"items[2].price", "is 10000000.01; it must be between 0 and 10000000"},
		}},
		"too many": {Order{Customer: "c", Items: repeat(good, MaxItems+1)}, []Problem{
			{"items", "has 1001 entries; at most 1000 are allowed"},
		}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, test.order.Problems()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func repeat(item Item, n int) []Item {
	items := make([]Item, n)
	for i := range items {
		items[i] = item
	}
	return items
}

func TestSumCannotOverflow(t *testing.T) {
	t.Parallel()
	largest := Order{Customer: "c", Items: repeat(Item{"A", MaxQuantity, MaxPrice}, MaxItems)}
	if p := largest.Problems(); p != nil {
		t.Fatal(p)
	}
	want := new(big.Int).Mul(big.NewInt(MaxItems*MaxQuantity), big.NewInt(int64(MaxPrice)))
	if got := big.NewInt(int64(largest.Sum())); got.Cmp(want) != 0 {
		t.Errorf("the largest order sums to %s, want %s", got, want)
	}
}

func TestTicketNumbers(t *testing.T) {
	t.Parallel()
	o := Order{ID: "o-1", Customer: "c", Total: 5}
	first := o.Ticket("run/task/", Pending, "sales")
	if again := o.Ticket("run/task/", Pending, "sales"); again != first {
		t.Errorf("the same key gave %+v and %+v", first, again)
	}
	if other := o.Ticket("run2/task/", Pending, "sales"); other.Ticket == first.Ticket {
		t.Errorf("two keys share ticket %s", other.Ticket)
	}
}
