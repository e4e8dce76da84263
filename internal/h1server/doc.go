// Package h1server serves HTTP/1.1 to clients whose requests are plain, at a fraction of
// what net/http's server costs, and leaves all others to that one.
//
// A request is plain when its whole head comes in one piece and is of the kind that every
// client of these APIs sends: GET or POST, a path without escapes, one Host, at most one
// Content-Length and nothing else that tells where a body ends. Whatever is not — another
// method or version, chunks, Expect, Upgrade, a folded line, a stray byte, a head that
// comes in pieces — goes to net/http from its first byte on, with its connection, for
// good. So there is one judge of everything odd, and it is the one that everybody knows;
// what is decided here has one meaning only (RFC 9112, 3, 5 and 6).
//
// Answers are as net/http writes them, and a handler cannot tell the two apart, but for
// this:
//
//   - A client that leaves while nothing is written is noticed some milliseconds later,
//     since a request that is answered at once is not watched.
//   - There is no http.Hijacker, and no full duplex; a deadline for writes holds from the
//     next write on.
//   - Transfer-Encoding, Trailer and what Connection says beside "close" are not the
//     handler's to set; http.TrailerPrefix works.
package h1server
