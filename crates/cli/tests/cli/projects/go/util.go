package shop

import "math"

func cents(amount float64) int {
	scaled := amount * 100
	rounded := math.Round(scaled)
	return int(rounded)
}
