package scheduler

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// cronText is the canonical expression of the values of all fields.
func cronText(fields *[fieldCount]field, all *[fieldCount]values) string {
	var words []string
	yearly := all[atYear].star == 1
	for i := range fields {
		if i == atSecond && yearly && all[i].star == 0 && all[i].mask == 1 || i == atYear && yearly {
			continue
		}
		words = append(words, strings.Join(fields[i].canonical(&all[i]), ","))
	}
	return strings.Join(words, " ")
}

// canonical is the elements of a field's list.
func (f *field) canonical(v *values) []string {
	var items []string
	rest := v.numbers()
	if v.star > 0 {
		item := "*"
		if v.star > 1 {
			item += "/" + strconv.Itoa(v.star)
		}
		items = append(items, item)
		rest = without(rest, f.min, v.star)
	}
	items = append(items, ranges(rest, "-", 1)...)
	for n := range bitsOf(v.special.fromEnd) {
		item := "L"
		if n > 0 {
			item += "-" + strconv.Itoa(n)
		}
		items = append(items, item)
	}
	for n := range bitsOf(v.special.nearest) {
		item := "LW"
		if n > 0 {
			item = strconv.Itoa(n) + "W"
		}
		items = append(items, item)
	}
	for n := range bitsOf(v.nth) {
		item := strconv.Itoa(n%8) + "#" + strconv.Itoa(n/8)
		if n/8 == lastOfMonth {
			item = strconv.Itoa(n%8) + "#L"
		}
		items = append(items, item)
	}
	return items
}

// numbers is the plain values in order.
func (v *values) numbers() []int {
	var out []int
	for n := range bitsOf(v.mask) {
		out = append(out, n)
	}
	for i, mask := range v.years {
		for n := range bitsOf(mask) {
			out = append(out, minYear+64*i+n)
		}
	}
	return out
}

// bitsOf yields the bits that are set, from the least.
func bitsOf(mask uint64) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(bits.TrailingZeros64(mask)) {
				return
			}
		}
	}
}

// without leaves out every value that a * with a step represents.
func without(numbers []int, from, step int) []int {
	var out []int
	for _, n := range numbers {
		if (n-from)%step != 0 {
			out = append(out, n)
		}
	}
	return out
}

// ranges writes numbers in order, with at least some digits, as few items: all as
// one with a step if they are three or more at the same distance, else runs of
// three or more as ranges.
func ranges(numbers []int, to string, digits int) []string {
	text := func(i int) string { return fmt.Sprintf("%0*d", digits, numbers[i]) }
	if step := distance(numbers); step > 1 {
		return []string{text(0) + to + text(len(numbers)-1) + "/" + strconv.Itoa(step)}
	}
	var items []string
	for i := 0; i < len(numbers); {
		item, length := text(i), runLength(numbers[i:])
		if length < 3 {
			length = 1
		} else {
			item += to + text(i+length-1)
		}
		items = append(items, item)
		i += length
	}
	return items
}

// runLength is how many of the first numbers follow one another.
func runLength(numbers []int) int {
	n := 1
	for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
		n++
	}
	return n
}

// distance is the one distance between neighbors of three or more numbers, else 0.
func distance(numbers []int) int {
	if len(numbers) < 3 {
		return 0
	}
	step := numbers[1] - numbers[0]
	for i := 2; i < len(numbers); i++ {
		if numbers[i]-numbers[i-1] != step {
			return 0
		}
	}
	return step
}
