// Package archtest holds the repository's tests about itself: who may import whom,
// that every package says what it is, that tests do not sleep. It has no code.
package archtest
