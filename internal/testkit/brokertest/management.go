package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// managementTimeout bounds one call; removing a vhost with full queues takes a while.
const managementTimeout = 30 * time.Second

// management is RabbitMQ's HTTP API.
type management struct {
	base     string // without user and trailing slash
	user     *url.Userinfo
	client   *http.Client
	deadline time.Duration
}

func newManagement(base string) (*management, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("AMQP_MANAGEMENT: %w", hideURL(err))
	}
	m := &management{user: u.User, deadline: managementTimeout}
	u.User = nil
	m.base = strings.TrimSuffix(u.String(), "/")
	// No kept connection: its goroutines would look like leaks of the code under test.
	m.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return m, nil
}

func (m *management) addVhost(vhost, user string) error {
	if err := m.call(http.MethodPut, "/api/vhosts/"+url.PathEscape(vhost), ""); err != nil {
		return err
	}
	all := `{"configure":".*","write":".*","read":".*"}`
	return m.call(http.MethodPut, "/api/permissions/"+url.PathEscape(vhost)+"/"+url.PathEscape(user), all)
}

func (m *management) addUser(name, password string) error {
	body, err := json.Marshal(map[string]string{"password": password, "tags": ""})
	if err != nil {
		return err
	}
	return m.call(http.MethodPut, "/api/users/"+url.PathEscape(name), string(body))
}

func (m *management) deleteUser(name string) error {
	return m.call(http.MethodDelete, "/api/users/"+url.PathEscape(name), "")
}

func (m *management) deleteVhost(vhost string) error {
	return m.call(http.MethodDelete, "/api/vhosts/"+url.PathEscape(vhost), "")
}

// call makes one request; every answer but 2xx is an error with what it says.
func (m *management) call(method, path, body string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.deadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("management API: %w", hideURL(err))
	}
	req.Header.Set("Content-Type", "application/json")
	if m.user != nil {
		password, _ := m.user.Password()
		req.SetBasicAuth(m.user.Username(), password)
	}
	resp, err := m.client.Do(req)
	if err != nil {
		return fmt.Errorf("management API %s: %w", m.base, hideURL(err))
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("management API %s: %w", m.base, err)
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("management API %s: %s %s: %s: %s", m.base, method, path, resp.Status, answer)
	}
	return nil
}
