// Package share is a member of a Kafka share group (KIP-932, KIP-1222): it joins the group,
// acquires records from the leaders of its partitions, keeps their acquisition locks and
// acknowledges each record by itself.
//
//	m := share.Join(share.Config{Client: cl, Group: "billing", Topics: []string{"orders"}, Events: events})
//	m.Want(16)
//	err := m.Settle(token, share.Accept, nil)
//	m.Close(ctx)
//
// franz-go has a share consumer, but its next poll accepts every record of the previous poll
// that has no verdict yet, so records cannot be settled later than that (docs/adr/0027). This
// package uses only the client's connections, its request types and its decoder of batches.
//
// A record belongs to a [Leases] from its acquisition to the broker's answer about its
// verdict. Leases, session, links and membership make no calls and read no clock. A [Member] runs
// them: one goroutine sends heartbeats, one watches the leases, and one for each leader sends
// that leader's requests, one at a time, since each carries the next epoch of the session.
//
// In reading order: record.go, leases.go (what is held, pure), session.go and links.go (one for each
// leader), membership.go (the group), heartbeat.go, member.go (the goroutines).
package share
