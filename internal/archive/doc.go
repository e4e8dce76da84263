// Package archive keeps the request log, the totals and the history on disk, in
// one SQLite file, written behind in batches.
//
// It knows SQL, how many requests are kept and for how long, and what to do about
// a file that is locked, full or damaged. It never knows the request path: it is
// fed by the ledger's tap, which never waits, and what it cannot take it counts.
package archive
