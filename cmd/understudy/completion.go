package main

import (
	"embed"

	"github.com/alecthomas/kong"
)

//go:embed completion
var completionScripts embed.FS

// completionCommand prints what a shell needs to complete commands. The scripts know
// nothing of the grammar: they ask the program itself, so that they fit whatever
// version is installed.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish,powershell" help:"bash, zsh, fish or powershell."`
}

// Run prints the script.
func (c *completionCommand) Run(std streams) error {
	script, err := completionScripts.ReadFile("completion/understudy." + c.Shell)
	if err != nil {
		return err
	}
	_, err = std.out.Write(script)
	return err
}

// suggest tells a shell's script what may be typed.
func suggest(app *kong.Node, args []string, std streams) int {
	current := ""
	if len(args) > 0 {
		if args[0] != "" && args[0][0] == '=' {
			current = args[0][1:]
		}
		args = args[1:]
	}
	o := complete(app, current, args)
	if err := o.write(std.out); err != nil {
		return exitFailed
	}
	return exitOK
}
