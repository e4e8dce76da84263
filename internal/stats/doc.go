// Package stats keeps the books: one Record per client request, in totals,
// sliding windows, a day's history and a bounded journal.
//
// It knows counts, tokens, durations and how much of them it may remember. It
// never knows HTTP, configuration, output formats, a file or a clock: whoever
// asks passes the time. Nothing here blocks on anything but a short lock, and
// nothing grows with the number of requests or of names.
package stats
