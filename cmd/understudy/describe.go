package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

// flagWords is a flag as a page shows it: "-c, --config FILE".
func flagWords(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Tag.Negatable != "" {
		text = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	if !f.IsBool() {
		text += " " + flagValue(f)
	}
	return text
}

// flagValue is the name of a flag's value.
func flagValue(f *kong.Flag) string {
	if f.PlaceHolder != "" {
		return f.PlaceHolder
	}
	_, last, ok := strings.Cut(f.Name, "-")
	if !ok {
		last = f.Name
	}
	return strings.ToUpper(last)
}

// flagDefault is what holds without the flag, "" where its help says it or it is plain.
func flagDefault(f *kong.Flag) string {
	if f.IsBool() {
		return ""
	}
	return f.Default
}
