// Package transporttest judges transports: [Run] puts a transport.Source
// through everything the contract says, and [Bench] measures it.
//
//	func TestConformance(t *testing.T) {
//		broker := memory.New(memory.Config{})
//		transporttest.Run(t, transporttest.Harness{
//			Source: func(t testing.TB) transport.Source {
//				return broker.Queue(transporttest.Name(t), memory.QueueConfig{})
//			},
//		})
//	}
//
// Each check is a subtest with a stable name; [Checks] lists them. A transport
// may differ from the contract only where its Capabilities say so: the subtest
// is skipped then and prints the capability. A check that needs a field of the
// [Harness] which is not set is skipped with "not checked: needs Harness.X", and
// the end of the output lists all of these.
package transporttest
