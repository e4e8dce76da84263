package main

import "understudy/internal/config"

// schemaCommand prints the JSON Schema of the configuration.
type schemaCommand struct{}

// Run prints the schema, for editors: they complete, check and explain keys by it.
func (schemaCommand) Run(std streams) error {
	_, err := std.out.Write(config.JSONSchema())
	return err
}
