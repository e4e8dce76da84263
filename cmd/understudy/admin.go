package main

import (
	"cmp"
	"errors"
	"fmt"

	"understudy/internal/config"
)

// adminFlag names the admin listener of a running process.
type adminFlag struct {
	configFlag
	Admin string `placeholder:"URL" help:"Admin listener of the running process; without it the one in the configuration file, or http://127.0.0.1:8788."`
	Token string `env:"UNDERSTUDY_ADMIN_TOKEN" help:"Admin token; better given as UNDERSTUDY_ADMIN_TOKEN, which other users of the machine cannot read."`
}

// defaultAdmin is where a process listens whose file does not say otherwise.
const defaultAdmin = "http://127.0.0.1:8788"

// where finds the admin listener, its token and the directory for the history: what
// the command line does not say, a configuration file may.
func (f *adminFlag) where() (address, token, stateDir string, err error) {
	address, token, stateDir = f.Admin, f.Token, config.DefaultStateDir()
	path, err := f.find()
	if errors.Is(err, errNoConfig) {
		return cmp.Or(address, defaultAdmin), token, stateDir, nil
	}
	if err != nil {
		return "", "", "", err
	}
	src, err := config.Read(path)
	if err == nil {
		if cfg, _ := config.Parse(src); cfg != nil {
			stateDir = cfg.Server.StateDir
			if address == "" {
				if address, err = adminAddress(cfg, path); err != nil {
					return "", "", "", err
				}
				// The file's token belongs to the file's listener.
				token = cmp.Or(token, cfg.Server.AdminToken.Reveal())
			}
			return address, token, stateDir, nil
		}
		err = fmt.Errorf("%s has mistakes (understudy check lists them): name the admin listener with --admin", path)
	}
	if f.Config == "" || address != "" {
		return cmp.Or(address, defaultAdmin), token, stateDir, nil
	}
	return "", "", "", err
}

// adminAddress is the URL of a configuration's admin listener.
func adminAddress(cfg *config.Config, path string) (string, error) {
	switch {
	case cfg.Server.Admin == "":
		return "", fmt.Errorf("%s turns the admin listener off (server.admin): there is nothing to talk to", path)
	case cfg.Server.TLSCert != "":
		return "https://" + cfg.Server.Admin, nil
	}
	if cfg.Server.TLSCert != "" {
		return "https://" + cfg.Server.Admin, nil
	}
	return "http://" + cfg.Server.Admin, nil
}
