// Package web is the admin listener: the status page, the JSON API, the stream of
// events and the metrics, all over one control.Control.
//
// It knows HTTP, who may call, and how a View is shown. It never knows how
// requests are proxied, health, statistics or the configuration: what it shows it
// has from a View, and what it changes it changes by a command.
package web
