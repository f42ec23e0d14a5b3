package shop

import (
	"fmt"
	"strings"
)

func Slug(title string) string {
	return strings.Replace(strings.ToLower(title), " ", "-", 1)
}

func Price(amount float64) string {
	return fmt.Sprintf("%d ct", cents(amount))
}
