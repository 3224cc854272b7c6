package config

import (
	"crypto/tls"

	"github.com/longshore-go/longshore/admin"
	"github.com/longshore-go/longshore/internal/problem"
)

// AdminPlace is what the admin section says about where the API is.
type AdminPlace struct {
	Listen    string // host:port
	TokenFile string // "" is admin.TokenFile(Listen)
	TLS       bool   // it is served as https
}

// Admin is where a service with this file serves the admin API; false if it does not.
func (c *Config) Admin() (AdminPlace, bool) {
	s := c.loader.file.Admin
	if s == nil {
		return AdminPlace{}, false
	}
	at := AdminPlace{Listen: s.Listen, TokenFile: s.TokenFile, TLS: s.TLS != nil}
	if at.Listen == "" {
		at.Listen = admin.DefaultAddr
	}
	return at, true
}

// adminTLS is the server's side of TLS; nil for http.
func (on *surroundings) adminTLS(s *adminSection) (*tls.Config, error) {
	if s.TLS == nil {
		return nil, nil
	}
	if s.TLS.CertFile == "" || s.TLS.KeyFile == "" {
		return nil, badAdmin(problem.Bad("tls.cert_file", "give the PEM files of the server's certificate and of its key, or leave tls out to serve http", "and tls.key_file are both needed").OfKind(problem.Missing))
	}
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(on.beside(s.TLS.CertFile), on.beside(s.TLS.KeyFile))
		return &c, err
	}
	if _, err := load(nil); err != nil {
		return nil, badAdmin(problem.Bad("tls.cert_file", "give the PEM files of a certificate and of its key; paths are relative to the configuration file", "cannot be used").Because(plain(err)))
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load}, nil
}

// badAdmin says what the problem is about; its text has the field alone.
func badAdmin(p *problem.Problem) error { return p.Of("serve the admin API", "") }
