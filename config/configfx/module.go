package configfx

import (
	"slices"

	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/longshore-go/longshore/config"
	"github.com/longshore-go/longshore/lifecycle"
	"github.com/longshore-go/longshore/lifecycle/lifecyclefx"
)

// Module starts and stops everything that the file says, as [config.Config.Manager] does. It
// takes config.Handlers from the graph, and a *zap.Logger and a config.Code if the graph has
// them. Middlewares that [lifecyclefx.ProvideMiddleware] added go around those of the Code.
// Give it last, in place of [lifecyclefx.Module].
func Module(c *config.Config) fx.Option {
	type in struct {
		fx.In
		Handlers config.Handlers
		Code     config.Code `optional:"true"`
		Logger   *zap.Logger `optional:"true"`
		Chain    lifecyclefx.Chain
	}
	return fx.Options(
		lifecyclefx.ProvideAll(func(p in) ([]lifecycle.Component, error) {
			p.Code.Middleware = append(slices.Clone(p.Chain), p.Code.Middleware...)
			if p.Code.Logger == nil {
				p.Code.Logger = p.Logger
			}
			return c.Components(p.Handlers, p.Code)
		}),
		lifecyclefx.Module(c.Lifecycle()),
	)
}
