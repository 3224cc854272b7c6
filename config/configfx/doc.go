// Package configfx runs a configuration file's service in an fx application:
//
//	fx.New(fx.Provide(zap.NewProduction, NewHandlers), configfx.Module(cfg)).Run()
//
// It is a package of its own so that programs without fx do not link it.
package configfx
