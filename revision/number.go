package revision

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxExponent bounds a number's exponent in scientific notation: from
// -MaxExponent to MaxExponent. No number that Go, JavaScript or an API server
// can hold has a larger one.
const MaxExponent = 1000

// number is a JSON number in canonical form. Equal values are equal strings.
type number string

// parseNumber returns the canonical form of a JSON number literal. It works on
// the decimal digits, so that nothing is rounded.
func parseNumber(literal string) (number, error) {
	rest, negative := strings.CutPrefix(literal, "-")
	mantissa, power, _ := strings.Cut(strings.ToLower(rest), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")

	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", nil
	}
	// The value is 0.digits · 10^point.
	point, err := parsePower(power)
	if err != nil {
		return "", fmt.Errorf("number %s: %w", shorten(literal), err)
	}
	point += len(digits) - len(fraction)
	if first := point - 1; first > MaxExponent || first < -MaxExponent {
		return "", fmt.Errorf("number %s: beyond 10^±%d", shorten(literal), MaxExponent)
	}
	text := layout(strings.TrimRight(digits, "0"), point)
	if negative {
		text = "-" + text
	}
	return number(text), nil
}

// parsePower reads the text after the e, which may be empty. It refuses a power
// so large that no mantissa that fits in memory could bring it into range.
func parsePower(power string) (int, error) {
	if power == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(power, 10, 48)
	if err != nil {
		return 0, fmt.Errorf("beyond 10^±%d", MaxExponent)
	}
	return int(n), nil
}

// layout writes 0.digits · 10^point as ECMAScript and RFC 8785 do: plainly if
// that is short, otherwise with an exponent. digits neither begins nor ends with
// a zero.
func layout(digits string, point int) string {
	const longest, smallest = 21, -6
	n := len(digits)
	switch {
	case n <= point && point <= longest:
		return digits + strings.Repeat("0", point-n)
	case 0 < point && point <= longest:
		return digits[:point] + "." + digits[point:]
	case smallest < point && point <= 0:
		return "0." + strings.Repeat("0", -point) + digits
	}
	head, tail := digits[:1], digits[1:]
	if tail != "" {
		head += "." + tail
	}
	return fmt.Sprintf("%se%+d", head, point-1)
}

// shorten cuts a literal for messages; it may be megabytes long.
func shorten(literal string) string {
	const longest = 40
	if len(literal) <= longest {
		return literal
	}
	return literal[:longest] + "…"
}
