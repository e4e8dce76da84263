// Package config turns the bytes of a configuration file into a [Config] and
// edits those bytes in place.
//
// It knows YAML and TOML, every key with its default and range, the position of
// every value, and how to show a secret without showing it. It never knows how
// a request is served, what time it is, or what has happened since the file was
// read: a Config is a value that nobody writes to after [Parse] returned it.
//
// One schema stands for both spellings. A file becomes a small positioned tree
// (tree.go), the tree is checked and decoded against tables of keys
// (schema.go and the section files), and all problems come back at once.
package config
