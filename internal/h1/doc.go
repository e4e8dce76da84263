// Package h1 sends requests over plain HTTP/1.1 connections that it keeps: one
// goroutine per request writes it and reads the answer's head, nothing is sent
// twice, and the caller is told what net/http's transport keeps to itself: whether a
// connection was used before, when the last byte went out, when the first came back.
//
// Heads and bodies of the usual kind it reads and writes itself, at a fraction of the
// cost; whatever else an upstream may send is left to net/http, which reads the same
// bytes (usualHead).
//
// It knows connections and HTTP/1.1. It never knows TLS, HTTP/2 or proxies, which are
// net/http's business, nor what a request or an answer is about.
package h1
