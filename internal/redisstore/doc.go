// Package redisstore is health.Store on a Redis or a Valkey server: one server, or
// whatever looks like one; no cluster.
//
// It knows Redis, and of health only keys, freezes and counts. It never knows names,
// addresses or credentials of upstreams: what it writes down is named by hashes.
// Everything it says is one script, so that nobody sees half of a change, and every
// time travels as what is left of it, so that only the server's clock counts.
package redisstore
