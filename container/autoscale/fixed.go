package autoscale

// Fixed keeps the count where it is, within the bounds: Workers.Min at the start.
type Fixed struct{}

// Check finds nothing.
func (Fixed) Check() error { return nil }

// New returns the state, of which there is none.
func (f Fixed) New() Scaler { return f }

// Next returns the target in force.
func (Fixed) Next(s Sample) Decision { return Decision{Target: s.Workers} }
