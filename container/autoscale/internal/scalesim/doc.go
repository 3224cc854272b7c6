// Package scalesim is the simulator that the policies of autoscale are held to: a
// queue, workers and a downstream in virtual time, with the samples that a
// container takes. It has no code outside its tests.
//
//	go test ./container/autoscale/internal/scalesim            # the bars
//	make autoscale                                             # tables and pictures
package scalesim
