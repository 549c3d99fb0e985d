package assembly

import (
	"context"
	"time"
)

// CatalogText returns the list of skills for a conversation.
func (k *Setup) CatalogText(ctx context.Context) string { return k.base.catalogText(ctx) }

// EndOrderRetry ends the time after a failure in which the order is not read again.
func (k *Setup) EndOrderRetry() {
	k.base.orderMu.Lock()
	defer k.base.orderMu.Unlock()
	k.base.orderRetry = time.Time{}
}
