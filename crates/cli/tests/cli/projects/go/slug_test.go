package shop

import "testing"

func TestJoinsAllWords(t *testing.T) {
	if got := Slug("Blue ink pen"); got != "blue-ink-pen" {
		t.Fatal(got)
	}
}

func TestCountsCents(t *testing.T) {
	if got := Price(1.5); got != "150 ct" {
		t.Fatal(got)
	}
}
