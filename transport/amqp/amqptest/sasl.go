package amqptest

import (
	"bytes"
	"crypto/tls"
	"net"
)

func (s *Server) mechanisms() string {
	if s.cfg.TLS != nil {
		return "PLAIN AMQPLAIN EXTERNAL"
	}
	return "PLAIN AMQPLAIN"
}

// login finds the account a SASL response names, when it proves it.
func (s *Server) login(nc net.Conn, mechanism string, response []byte) (*account, bool) {
	var name, password string
	switch mechanism {
	case "PLAIN":
		parts := bytes.SplitN(response, []byte{0}, 3)
		if len(parts) != 3 {
			return nil, false
		}
		name, password = string(parts[1]), string(parts[2])
	case "AMQPLAIN": // a table without its length
		d := &decoder{b: appendLongstr(nil, string(response))}
		t := decodeTable(d)
		name, _ = t.Get("LOGIN").(string)
		password, _ = t.Get("PASSWORD").(string)
	case "EXTERNAL":
		return s.loginByCertificate(nc)
	default:
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[name]
	return a, a != nil && a.Password == password
}

// loginByCertificate trusts the common name of a certificate that the TLS
// handshake verified.
func (s *Server) loginByCertificate(nc net.Conn) (*account, bool) {
	t, ok := nc.(*tls.Conn)
	if !ok {
		return nil, false
	}
	chains := t.ConnectionState().VerifiedChains
	if len(chains) == 0 || len(chains[0]) == 0 {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[chains[0][0].Subject.CommonName]
	return a, a != nil
}
