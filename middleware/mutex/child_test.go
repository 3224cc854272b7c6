package mutex_test

func child() bool { return false }
