package amqptest

import "fmt"

// method is class id << 16 | method id.
type method uint32

const (
	connectionStart          method = 10<<16 | 10
	connectionStartOk        method = 10<<16 | 11
	connectionSecure         method = 10<<16 | 20
	connectionSecureOk       method = 10<<16 | 21
	connectionTune           method = 10<<16 | 30
	connectionTuneOk         method = 10<<16 | 31
	connectionOpen           method = 10<<16 | 40
	connectionOpenOk         method = 10<<16 | 41
	connectionClose          method = 10<<16 | 50
	connectionCloseOk        method = 10<<16 | 51
	connectionBlocked        method = 10<<16 | 60
	connectionUnblocked      method = 10<<16 | 61
	connectionUpdateSecret   method = 10<<16 | 70
	connectionUpdateSecretOk method = 10<<16 | 71

	channelOpen    method = 20<<16 | 10
	channelOpenOk  method = 20<<16 | 11
	channelFlow    method = 20<<16 | 20
	channelFlowOk  method = 20<<16 | 21
	channelClose   method = 20<<16 | 40
	channelCloseOk method = 20<<16 | 41

	exchangeDeclare   method = 40<<16 | 10
	exchangeDeclareOk method = 40<<16 | 11
	exchangeDelete    method = 40<<16 | 20
	exchangeDeleteOk  method = 40<<16 | 21
	exchangeBind      method = 40<<16 | 30
	exchangeUnbind    method = 40<<16 | 40

	queueDeclare   method = 50<<16 | 10
	queueDeclareOk method = 50<<16 | 11
	queueBind      method = 50<<16 | 20
	queueBindOk    method = 50<<16 | 21
	queuePurge     method = 50<<16 | 30
	queuePurgeOk   method = 50<<16 | 31
	queueDelete    method = 50<<16 | 40
	queueDeleteOk  method = 50<<16 | 41
	queueUnbind    method = 50<<16 | 50
	queueUnbindOk  method = 50<<16 | 51

	basicQos          method = 60<<16 | 10
	basicQosOk        method = 60<<16 | 11
	basicConsume      method = 60<<16 | 20
	basicConsumeOk    method = 60<<16 | 21
	basicCancel       method = 60<<16 | 30
	basicCancelOk     method = 60<<16 | 31
	basicPublish      method = 60<<16 | 40
	basicReturn       method = 60<<16 | 50
	basicDeliver      method = 60<<16 | 60
	basicGet          method = 60<<16 | 70
	basicGetOk        method = 60<<16 | 71
	basicGetEmpty     method = 60<<16 | 72
	basicAck          method = 60<<16 | 80
	basicReject       method = 60<<16 | 90
	basicRecoverAsync method = 60<<16 | 100
	basicRecover      method = 60<<16 | 110
	basicRecoverOk    method = 60<<16 | 111
	basicNack         method = 60<<16 | 120

	txSelect   method = 90<<16 | 10
	txCommit   method = 90<<16 | 20
	txRollback method = 90<<16 | 30

	confirmSelect   method = 85<<16 | 10
	confirmSelectOk method = 85<<16 | 11
)

// spec names a method that a client sends and its fields: s short string, S long
// string, t table, b bit, w short, l long, L long long.
func (m method) spec() (name, fields string) {
	if m>>16 == 60 {
		return m.basicSpec()
	}
	switch m {
	case connectionStartOk:
		return "connection.start-ok", "client-properties:t mechanism:s response:S locale:s"
	case connectionSecureOk:
		return "connection.secure-ok", "response:S"
	case connectionTuneOk:
		return "connection.tune-ok", "channel-max:w frame-max:l heartbeat:w"
	case connectionOpen:
		return "connection.open", "virtual-host:s reserved-1:s reserved-2:b"
	case connectionClose:
		return "connection.close", "reply-code:w reply-text:s class-id:w method-id:w"
	case connectionCloseOk:
		return "connection.close-ok", ""
	case connectionUpdateSecret:
		return "connection.update-secret", "new-secret:S reason:s"
	case channelOpen:
		return "channel.open", "reserved-1:s"
	case channelFlow:
		return "channel.flow", "active:b"
	case channelFlowOk:
		return "channel.flow-ok", "active:b"
	case channelClose:
		return "channel.close", "reply-code:w reply-text:s class-id:w method-id:w"
	case channelCloseOk:
		return "channel.close-ok", ""
	case exchangeDeclare:
		return "exchange.declare", "reserved-1:w exchange:s type:s passive:b durable:b auto-delete:b internal:b no-wait:b arguments:t"
	case exchangeDelete:
		return "exchange.delete", "reserved-1:w exchange:s if-unused:b no-wait:b"
	case exchangeBind:
		return "exchange.bind", "reserved-1:w destination:s source:s routing-key:s no-wait:b arguments:t"
	case exchangeUnbind:
		return "exchange.unbind", "reserved-1:w destination:s source:s routing-key:s no-wait:b arguments:t"
	case queueDeclare:
		return "queue.declare", "reserved-1:w queue:s passive:b durable:b exclusive:b auto-delete:b no-wait:b arguments:t"
	case queueBind:
		return "queue.bind", "reserved-1:w queue:s exchange:s routing-key:s no-wait:b arguments:t"
	case queuePurge:
		return "queue.purge", "reserved-1:w queue:s no-wait:b"
	case queueDelete:
		return "queue.delete", "reserved-1:w queue:s if-unused:b if-empty:b no-wait:b"
	case queueUnbind:
		return "queue.unbind", "reserved-1:w queue:s exchange:s routing-key:s arguments:t"
	case txSelect:
		return "tx.select", ""
	case txCommit:
		return "tx.commit", ""
	case txRollback:
		return "tx.rollback", ""
	case confirmSelect:
		return "confirm.select", "no-wait:b"
	}
	return fmt.Sprintf("method %d.%d", m>>16, m&0xffff), ""
}

func (m method) basicSpec() (name, fields string) {
	switch m {
	case basicQos:
		return "basic.qos", "prefetch-size:l prefetch-count:w global:b"
	case basicConsume:
		return "basic.consume", "reserved-1:w queue:s consumer-tag:s no-local:b no-ack:b exclusive:b no-wait:b arguments:t"
	case basicCancel:
		return "basic.cancel", "consumer-tag:s no-wait:b"
	case basicCancelOk:
		return "basic.cancel-ok", "consumer-tag:s"
	case basicPublish:
		return "basic.publish", "reserved-1:w exchange:s routing-key:s mandatory:b immediate:b"
	case basicGet:
		return "basic.get", "reserved-1:w queue:s no-ack:b"
	case basicAck:
		return "basic.ack", "delivery-tag:L multiple:b"
	case basicReject:
		return "basic.reject", "delivery-tag:L requeue:b"
	case basicRecoverAsync:
		return "basic.recover-async", "requeue:b"
	case basicRecover:
		return "basic.recover", "requeue:b"
	case basicNack:
		return "basic.nack", "delivery-tag:L multiple:b requeue:b"
	}
	return fmt.Sprintf("method %d.%d", m>>16, m&0xffff), ""
}

func (m method) String() string {
	name, _ := m.spec()
	return name
}
