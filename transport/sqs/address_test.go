package sqs_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
	"github.com/longshore-go/longshore/transport/sqs"
)

// recorder is the network: it notes what is asked, and answers nothing useful.
type recorder struct{ requests []*http.Request }

func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	r.requests = append(r.requests, req)
	return nil, errors.New("no network here")
}

// F-K06: queue × endpoint × region, by option, environment and none.
func TestEndpointQueueAndRegionHaveOnePrecedence(t *testing.T) {
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CA_BUNDLE", "")
	const (
		name    = "orders"
		public  = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
		vpc     = "https://vpce-1-abc.sqs.eu-west-2.vpce.amazonaws.com/123456789012/orders"
		china   = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/orders"
		old     = "https://ap-south-1.queue.amazonaws.com/123456789012/orders"
		local   = "http://localhost:9324/000000000000/orders"
		arn     = "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders"
		opt     = "https://option.example:8443"
		env     = "http://env.example"
		general = "http://general.example"
	)
	for _, tc := range []struct {
		queue, endpoint, envEndpoint, region, envRegion string
		host, signed                                    string // "": an error at construction
	}{
		{name, "", "", "", "", "", ""},
		{name, "", "", "", "us-east-2", "sqs.us-east-2.amazonaws.com", "us-east-2"},
		{name, "", "", "eu-west-3", "us-east-2", "sqs.eu-west-3.amazonaws.com", "eu-west-3"},
		{name, opt, env, "eu-west-3", "", "option.example:8443", "eu-west-3"},
		{name, "", env, "eu-west-3", "", "env.example", "eu-west-3"},
		{name, opt, "", "", "", "", ""},
		{name, "", "", "cn-north-1", "", "sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		{public, "", "", "", "", "sqs.eu-west-1.amazonaws.com", "eu-west-1"},
		{public, "", "", "", "us-east-2", "sqs.eu-west-1.amazonaws.com", "eu-west-1"},
		{public, "", "", "eu-west-3", "us-east-2", "sqs.eu-west-1.amazonaws.com", "eu-west-3"},
		{public, opt, env, "", "", "option.example:8443", "eu-west-1"},
		{public, "", env, "", "", "env.example", "eu-west-1"},
		{vpc, "", "", "", "us-east-2", "vpce-1-abc.sqs.eu-west-2.vpce.amazonaws.com", "eu-west-2"},
		{vpc, opt, "", "", "", "option.example:8443", "eu-west-2"},
		{china, "", "", "", "", "sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"},
		{old, "", "", "", "", "ap-south-1.queue.amazonaws.com", "ap-south-1"},
		{local, "", "", "", "", "", ""},
		{local, "", "", "", "us-east-2", "localhost:9324", "us-east-2"},
		{arn, "", "", "", "us-east-2", "sqs.us-gov-west-1.amazonaws.com", "us-gov-west-1"},
		{arn, "", "", "eu-west-3", "", "sqs.eu-west-3.amazonaws.com", "eu-west-3"},
		{arn, "", env, "", "", "env.example", "us-gov-west-1"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_SQS", tc.envEndpoint)
		t.Setenv("AWS_ENDPOINT_URL", map[bool]string{true: general, false: ""}[tc.envEndpoint != ""])
		t.Setenv("AWS_REGION", tc.envRegion)
		t.Setenv("AWS_DEFAULT_REGION", "")
		var net recorder
		src := sqs.New(sqs.Config{Endpoint: tc.endpoint, Region: tc.region, HTTPClient: &net, Credentials: sqs.Keys("AKID", transport.Static("s3cret"), transport.Secret{})}).
			Queue(tc.queue, sqs.QueueConfig{})
		err := src.(transport.Checker).Check() //nolint:errcheck // it is one
		if tc.host == "" {
			if !errors.Is(err, longshore.CodeConfig) || !strings.Contains(err.Error(), "AWS_REGION") {
				t.Errorf("%+v: %v, want an error that names the region", tc, err)
			}
			continue
		}
		must(t, err)
		if _, err := src.Open(t.Context(), transport.OpenOptions{}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open: %v", err)
		}
		if len(net.requests) == 0 {
			t.Errorf("%+v: nothing was dialled", tc)
			continue
		}
		r := net.requests[0]
		if r.URL.Host != tc.host || !strings.Contains(r.Header.Get("Authorization"), "/"+tc.signed+"/sqs/") {
			t.Errorf("%+v: dialled %s, signed %s", tc, r.URL.Host, r.Header.Get("Authorization"))
		}
	}
}

// F-K06 for credentials: Config.Credentials, environment, profile, in this order.
func TestCredentialsHaveOnePrecedence(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "credentials"), []byte("[default]\naws_access_key_id=DEFAULT\naws_secret_access_key=x\n[other]\naws_access_key_id=OTHER\naws_secret_access_key=x\n"), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "none"))
	t.Setenv("AWS_CA_BUNDLE", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	for _, tc := range []struct{ option, env, profile, want string }{
		{"OPTION", "ENV", "other", "OPTION"},
		{"OPTION", "", "", "OPTION"},
		{"", "ENV", "other", "ENV"},
		{"", "ENV", "", "ENV"},
		{"", "", "other", "OTHER"},
		{"", "", "", "DEFAULT"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", tc.env)
		t.Setenv("AWS_PROFILE", tc.profile)
		var net recorder
		cfg := sqs.Config{Region: "eu-west-1", HTTPClient: &net}
		if tc.option != "" {
			cfg.Credentials = sqs.Keys(tc.option, transport.Static("x"), transport.Secret{})
		}
		if _, err := sqs.New(cfg).Queue("orders", sqs.QueueConfig{}).Open(t.Context(), transport.OpenOptions{}); err == nil {
			t.Error("Open without a network")
		}
		if len(net.requests) == 0 || !strings.Contains(net.requests[0].Header.Get("Authorization"), "Credential="+tc.want+"/") {
			t.Errorf("%+v: %d requests, %v", tc, len(net.requests), net.requests)
		}
	}
}

func TestBadQueueAndSettingsAreReportedTogether(t *testing.T) {
	for queue, hint := range map[string]string{"": "URL or an ARN", "a b": "letters", "arn:aws:sns:x:1:q": "arn:aws:sqs", "https://h/1/": "NAME",
		"https://user:pw@h/1/q": "without user", "ftp://h/1/q": "https", strings.Repeat("q", 81): "80"} {
		err := sqs.New(sqs.Config{Region: "x"}).Queue(queue, sqs.QueueConfig{}).(transport.Checker).Check() //nolint:errcheck // it is one
		if !errors.Is(err, longshore.CodeBadAddress) || !strings.Contains(err.Error(), hint) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v, want %q in it", queue, err, hint)
		}
	}
	err := sqs.New(sqs.Config{Region: "x"}).Queue("q", sqs.QueueConfig{VisibilityTimeout: 1500, SettleLinger: -1, MaxPollers: -1, Envelope: "x", //nolint:errcheck // it is one
		Declare: sqs.Declare{Attributes: map[string]string{"FifoQueue": "true"}}}).(transport.Checker).Check()
	for _, field := range []string{"VisibilityTimeout", "SettleLinger", "MaxPollers", "Envelope", "FifoQueue"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want %s in it", err, field)
		}
	}
	for _, endpoint := range []string{"host:1", "ftp://h", "https://u:pw@h", "http://"} {
		err := sqs.New(sqs.Config{Region: "x", Endpoint: endpoint}).Queue("q", sqs.QueueConfig{}).(transport.Checker).Check() //nolint:errcheck // it is one
		if !errors.Is(err, longshore.CodeBadAddress) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
