// Package console is the interactive line: a prompt with history and completion, a
// status bar below it, the log above it; and where there is no terminal, lines in and
// lines out. The rules it keeps are in docs/ui-rules.md.
//
// It knows terminals, and how a View and the output of a command are shown. It never
// knows where these come from: the process it runs in, or another one's admin
// listener. It never knows HTTP's server side, health, proxy or stats.
//
// Nothing here is in the way of a request: log lines are left in a bounded queue, and
// Views are asked for, never pushed.
package console
