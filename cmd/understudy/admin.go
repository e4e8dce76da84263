package main

import (
	"cmp"
	"errors"
	"fmt"

	"understudy/internal/config"
	"understudy/internal/console"
)

// adminFlag names the admin listener of a running process.
type adminFlag struct {
	configFlag
	Admin string `placeholder:"URL" help:"Admin listener of the running process; without it the one in the configuration file, or http://127.0.0.1:8788."`
	Token string `env:"UNDERSTUDY_ADMIN_TOKEN" help:"Admin token; better given as UNDERSTUDY_ADMIN_TOKEN, which other users of the machine cannot read."`
}

// defaultAdmin is where a process listens whose file does not say otherwise.
const defaultAdmin = "http://127.0.0.1:8788"

// where finds the admin listener and the directory for the history: what the
// command line does not say, a configuration file may. A listener that the file
// gives a certificate is known by that one, whoever signed it.
func (f *adminFlag) where() (admin console.Admin, stateDir string, err error) {
	admin, stateDir = console.Admin{Address: f.Admin, Token: f.Token}, config.DefaultStateDir()
	path, err := f.find()
	if errors.Is(err, errNoConfig) {
		admin.Address = cmp.Or(admin.Address, defaultAdmin)
		return admin, stateDir, nil
	}
	if err != nil {
		return admin, "", err
	}
	src, err := config.Read(path)
	if err == nil {
		if cfg, _ := config.Parse(src); cfg != nil {
			return f.ofFile(cfg, path)
		}
		err = fmt.Errorf("%s has mistakes (understudy check lists them): name the admin listener with --admin", path)
	}
	if f.Config == "" || admin.Address != "" {
		admin.Address = cmp.Or(admin.Address, defaultAdmin)
		return admin, stateDir, nil
	}
	return admin, "", err
}

// ofFile is where, with a configuration that can be read.
func (f *adminFlag) ofFile(cfg *config.Config, path string) (admin console.Admin, stateDir string, err error) {
	admin, stateDir = console.Admin{Address: f.Admin, Token: f.Token}, cfg.Server.StateDir
	own, err := adminAddress(cfg, path)
	if admin.Address == "" {
		if err != nil {
			return admin, "", err
		}
		// The file's token belongs to the file's listener.
		admin.Address, admin.Token = own, cmp.Or(f.Token, cfg.Server.AdminToken.Reveal())
	}
	if admin.Address != own || cfg.Server.TLSCert == "" {
		return admin, stateDir, nil
	}
	admin.TLS, err = pin(cfg.Server.TLSCert)
	return admin, stateDir, err
}

// adminAddress is the URL of a configuration's admin listener.
func adminAddress(cfg *config.Config, path string) (string, error) {
	switch {
	case cfg.Server.Admin == "":
		return "", fmt.Errorf("%s turns the admin listener off (server.admin): there is nothing to talk to", path)
	case cfg.Server.TLSCert != "":
		return "https://" + cfg.Server.Admin, nil
	}
	return "http://" + cfg.Server.Admin, nil
}
