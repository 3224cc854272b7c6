package bridge

import "github.com/longshore-go/longshore/bridge/internal/ledger"

// Through has the ledger written through another file.
func (l *Ledger) Through(wrap func(ledger.File) ledger.File) { l.l.Through(wrap) }
