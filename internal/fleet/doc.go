// Package fleet reads the admin APIs of many instances at once. Each instance has a
// goroutine and deadlines of its own, so one that does not answer delays no other. What
// the instances have in common, their totals and where they differ are pure functions of a
// [Snapshot].
//
//	f := fleet.New([]fleet.Target{{Name: "shop-1:8391", Base: "http://shop-1:8391", Token: token}}, fleet.Config{})
//	go f.Run(ctx)
//	<-f.Changed()
//	differences := fleet.Differences(new(f.Snapshot()))
//
// In reading order: fleet.go, reader.go (one instance), client.go (its API), events.go,
// series.go (the last 15 minutes), compare.go (totals and differences).
package fleet
