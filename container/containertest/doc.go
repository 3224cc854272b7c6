// Package containertest runs containers in users' tests.
//
//	broker := memory.New(memory.Config{})
//	c, err := container.New(broker.Queue("orders", memory.QueueConfig{}), pay, container.Config{})
//	if err != nil {
//		t.Fatal(err)
//	}
//	containertest.Start(t, c)
//	containertest.Publish(t, c, `{"ID":"o-1"}`)
//	containertest.WaitIdle(t, c)
package containertest
