module github.com/longshore-go/longshore/bench

go 1.26.8

require github.com/longshore-go/longshore v0.0.0

replace github.com/longshore-go/longshore => ../
