// Package survey looks at both ends of a route before a move and says what does not fit. It
// changes nothing.
//
//	r, err := survey.Of(ctx, survey.Input{From: orders, To: topic, Sample: 100})
//	for _, f := range r.Findings {
//		fmt.Println(f)                     // what does not fit, and what to do about it
//	}
//
// In reading order: survey.go reads both brokers, findings.go has the rules, which are pure.
package survey
