package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// F-N26: printing a configuration, or the options, shows neither secrets nor the
// environment, whatever the verb.
func TestPrintingAConfigurationShowsNoSecret(t *testing.T) {
	o := nowhere("TOKEN=" + geheim)
	c, ps := o.parse("c.yaml", []byte("brokers: {r: {url: \"amqp://app@h\", password: env:TOKEN}}\ncontainers: {a: {source: {broker: r, queue: q}}}\n"), false)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%d", "%x"} {
		for _, v := range []any{c, *c, o, &o} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, geheim) || strings.Contains(text, "TOKEN") || strings.Contains(text, fmt.Sprintf("%x", geheim)) {
				t.Errorf("%s of %T: %s", verb, v, text)
			}
		}
	}
	if text := fmt.Sprint(c); text != "configuration c.yaml" {
		t.Errorf("%q", text)
	}
}

// F-N26: an admin section with TLS serves https, and half of a certificate is refused.
func TestAdminSectionServesTLS(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	file := filepath.Join(dir, "c.yaml")
	section := func(tls string) string {
		return "admin: {listen: \"127.0.0.1:0\", token_file: " + filepath.Join(dir, "token") + ", tls: " + tls + "}\ncontainers: {a: {source: mem://a}}\n"
	}
	for text, want := range map[string]string{
		"{cert_file: cert.pem}": "key_file",
		"{}":                    "cert_file",
		"{cert_file: absent.pem, key_file: key.pem}": "cert_file cannot be used",
	} {
		_, ps := nowhere().parse(file, []byte(section(text)), false)
		if len(ps) == 0 || !strings.Contains(ps[0].Error(), want) {
			t.Errorf("%s: %v, want %q", text, ps, want)
		}
	}
	c, ps := nowhere().parse(file, []byte(section("{cert_file: cert.pem, key_file: key.pem}")), false)
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	if at, ok := c.Admin(); !ok || !at.TLS {
		t.Errorf("the place of the API: %+v, %t", at, ok)
	}
	config, err := c.loader.adminTLS(c.loader.file.Admin)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := config.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || len(pair.Certificate) != 1 || config.MinVersion < tls.VersionTLS12 {
		t.Errorf("%v, %v", pair, err)
	}
}

// certificate writes cert.pem and key.pem for 127.0.0.1.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
