package telemetry

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/longshore-go/longshore"
)

const scope = "github.com/longshore-go/longshore/telemetry"

// Config is where telemetry goes. Its zero value is OpenTelemetry's global providers
// as they are when [New] is called.
type Config struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Propagator reads and writes the headers of messages; nil = W3C trace context
	// and baggage, whatever the global one is.
	Propagator propagation.TextMapPropagator
}

// Telemetry makes middlewares and observers of one configuration. It is safe for
// concurrent use and can serve any number of containers.
type Telemetry struct {
	meter      metric.Meter
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	fields     []string // the headers that it reads
	silent     bool
	unset      trace.TracerProvider // the global one if none was set; nil: there was one
	keeper     keeper               // counts durations; nil: the meter does
	codes      *names
	dests      names

	seriesMu sync.Mutex
	series   map[[2]string]bool // name and source of each container that Observe shows
}

// New makes one. Make one for each meter provider and share it: two of them on one provider
// record into the same instruments, so counts are added up and a gauge that both observe
// shows only one of the two.
func New(cfg Config) *Telemetry {
	if cfg.MeterProvider == nil {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	t := &Telemetry{meter: cfg.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)), propagator: cfg.Propagator,
		codes: errorCodes(), dests: names{most: mostDestinations}}
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
		// The API's own provider, which records nothing until another one is set.
		if fmt.Sprintf("%T", cfg.TracerProvider) == "*global.tracerProvider" {
			t.unset = cfg.TracerProvider
		}
	}
	_, t.silent = cfg.TracerProvider.(noop.TracerProvider)
	t.keeper, _ = cfg.MeterProvider.(keeper)
	if t.propagator == nil {
		t.propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	t.fields, t.tracer = t.propagator.Fields(), cfg.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	return t
}

// off tells that no span will be recorded, whatever its message is.
func (t *Telemetry) off() bool {
	return t.silent || t.unset != nil && otel.GetTracerProvider() == t.unset
}

// Attributes of the semantic conventions.
const (
	attrSystem       = attribute.Key("messaging.system")
	attrDestination  = attribute.Key("messaging.destination.name")
	attrPartition    = attribute.Key("messaging.destination.partition.id")
	attrGroup        = attribute.Key("messaging.consumer.group.name")
	attrOperation    = attribute.Key("messaging.operation.name")
	attrOpType       = attribute.Key("messaging.operation.type")
	attrMessageID    = attribute.Key("messaging.message.id")
	attrConversation = attribute.Key("messaging.message.conversation_id")
	attrBatch        = attribute.Key("messaging.batch.message_count")
	attrOffset       = attribute.Key("messaging.kafka.offset")
	attrRoutingKey   = attribute.Key("messaging.rabbitmq.destination.routing_key")
	attrErrorType    = attribute.Key("error.type")
	attrVerdict      = attribute.Key("verdict")
	attrContainer    = attribute.Key("longshore.container")
	attrOutbox       = attribute.Key("longshore.outbox")
	attrMutex        = attribute.Key("longshore.mutex")
	attrBridge       = attribute.Key("longshore.bridge")
	attrReason       = attribute.Key("reason")
	attrControl      = attribute.Key("longshore.control")
	attrDirection    = attribute.Key("direction")
	attrOutcome      = attribute.Key("outcome")
	attrAttempt      = attribute.Key("attempt")
	attempt          = attribute.Key("longshore.attempt")
)

// codeOf names an error; [names] bounds how many there are.
func codeOf(err error) string {
	if err == nil {
		return "" // before anything is allocated
	}
	var e *longshore.Error
	if errors.As(err, &e) && e.Code != "" {
		return string(e.Code)
	}
	return otherName
}
