package observe

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// The dashboard fits Grafana's schema, with the options of each kind of panel and of
// Prometheus's queries: nothing unknown, nothing missing.
func TestTheDashboardFitsGrafanasSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	raw, err := os.ReadFile(dashboardFile)
	must(t, err)
	var strict, d grafana.Dashboard
	if err := strict.UnmarshalJSONStrict(raw); err != nil && err.Error() != "" { // it returns an empty list where there are none
		t.Errorf("%T %v", err, err)
	}
	must(t, json.Unmarshal(raw, &d))
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	panels := 0
	for _, one := range d.Panels {
		if one.Panel == nil {
			continue
		}
		panels++
		p := one.Panel
		if p.Datasource == nil || p.Datasource.Type == nil || *p.Datasource.Type != "prometheus" || p.FieldConfig == nil || p.FieldConfig.Defaults.Unit == nil {
			t.Errorf("%s: %+v", *p.Title, p)
		}
		for _, q := range p.Targets {
			if _, unknown := q.(variants.UnknownDataquery); unknown {
				t.Errorf("%s: %+v", *p.Title, q)
			}
		}
	}
	if panels < 20 {
		t.Errorf("%d panels", panels)
	}
}
