// Package proxy is the way of one request: admit, route, plan, attempt, judge,
// decide, relay, report. ServeHTTP shows it whole.
//
// It knows the order of the steps and is the only package that imports both the
// server side of net/http and the nouns the steps work with. It never knows how a
// configuration file is spelled, terminals, or a remote store.
//
// An attempt has no ResponseWriter: relay is the single place where an upstream's
// bytes go to the client, and answer.write the single one where ours do. Only a
// WebSocket leaves HTTP, once an upstream has agreed to it: switchOver hands its
// connection to a tunnel.
package proxy
