// Package lifecyclefx runs the components of a service in an fx application: one line for
// each container, middlewares from anywhere in the graph at named places, and one hook that
// starts and stops everything by phase.
//
//	fx.New(
//		fx.Provide(zap.NewProduction, NewBroker),
//		lifecyclefx.Provide(NewOrders),
//		lifecyclefx.Module(lifecycle.Config{StopTimeout: 40 * time.Second}), // last
//	).Run()
//
// It is a package of its own so that programs without fx do not link it. Read module.go
// first, then chain.go; what obeys signals and deadlines is [lifecycle.Hosted].
package lifecyclefx
