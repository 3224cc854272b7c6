package config

import "github.com/longshore-go/longshore/admin"

// AdminPlace is what the admin section says about where the API is.
type AdminPlace struct {
	Listen    string // host:port
	TokenFile string // "" is admin.TokenFile(Listen)
}

// Admin is where a service with this file serves the admin API; false if it does not.
func (c *Config) Admin() (AdminPlace, bool) {
	s := c.loader.file.Admin
	if s == nil {
		return AdminPlace{}, false
	}
	at := AdminPlace{Listen: s.Listen, TokenFile: s.TokenFile}
	if at.Listen == "" {
		at.Listen = admin.DefaultAddr
	}
	return at, true
}
