module github.com/longshore-go/longshore/examples/extend

go 1.26.8

replace github.com/longshore-go/longshore => ../..

require (
	github.com/longshore-go/longshore v0.0.0-00010101000000-000000000000
	go.uber.org/goleak v1.3.0
	go.uber.org/zap v1.28.0
)

require go.uber.org/multierr v1.10.0 // indirect
