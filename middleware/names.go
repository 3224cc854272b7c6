package middleware

// Names by which a container knows the order of its middlewares (container.Validate).
const (
	nameRecover = "recover"
	nameTimeout = "timeout"
	nameLog     = "log"
	nameDecode  = "decode"
	nameDedupe  = "dedupe"
	nameShadow  = "shadow"
)
