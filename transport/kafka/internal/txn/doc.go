// Package txn commits records and the positions of a consumer group in one transaction.
//
// franz-go's GroupTransactSession commits everything that was polled, and takes its client back
// to the last commit when a transaction is aborted. Here records finish out of order, and what is
// done is known by the group's own trackers, so the producer is a client of its own: kgo produces
// and ends its transactions, and the positions are sent with TxnOffsetCommit in between.
//
//	p := &txn.Producer{ID: "shop-1", Group: "billing", Limit: 5 * time.Second, Member: client.GroupMetadata}
//	refused, outcome, err := p.Commit(ctx, txn.Batch{Records: results, Positions: done, Still: owned})
//	if outcome == txn.Unknown {
//		landed, err := p.Landed(ctx, done)
//	}
package txn
