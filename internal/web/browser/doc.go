// Package browser holds the tests that drive the dashboard in a real browser,
// Debian's chromium. They are a module of their own, so that the program does not
// depend on what drives a browser; they know the dashboard only as a person at a
// keyboard does. `make web` runs them.
package browser
