// Package campaign puts the real program, in process, through random faults: random
// configurations, upstreams that fail in every way package drill knows, clients that
// leave, reloads and freezes in between; and checks that what reached clients and
// upstreams keeps what the documentation promises (docs/campaign.md). It has tests
// only. It knows the program from outside: bytes on sockets, the admin API, the log,
// and what the process holds.
package campaign
