// Package handover is how a process comes by what others have opened for it, and how
// it passes that on: the sockets and the ear of a service manager, and the upgrade, in
// which a running process, the former one, starts its heir and gives it its listeners.
//
// It knows descriptors, processes and messages. It never knows what the messages are
// about, how a request is served, or where state is kept.
package handover
