// Package control is what people see of a running process and what they may do
// to it: one read model, the View, and one set of commands.
//
// It knows the board, the ledger, the chains and the configuration file, and who
// asks for a change. It never knows how a View is rendered, terminals, HTTP, or
// how the file is reloaded. Console, dashboard, admin API and metrics all read
// the same View and run the same commands, so they can never disagree.
//
// No secret is reachable from a View, and no output of a command holds one whole.
package control
