package main

import "os"

// asManaged is the program as a service manager runs it. The program finds out by itself
// whether one has started it, but not under Wine 8: there the manager is in session 1, and
// on Windows always in session 0.
const asManaged = "understudy-service"

// systemCommands are the commands of this test binary that only one system can have.
var systemCommands = map[string]func(){asManaged: func() { os.Exit(serviceMain()) }}
