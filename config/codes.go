package config

import "github.com/longshore-go/longshore"

// The codes of findings in a configuration file, alongside those of the module.
// `longshore explain CODE` prints a page about each.
const (
	CodeSyntax        longshore.Code = "syntax"         // not YAML
	CodeUnknownKey    longshore.Code = "unknown-key"    // a key that means nothing here
	CodeDuplicateKey  longshore.Code = "duplicate-key"  // a key that is there twice
	CodeUnknownValue  longshore.Code = "unknown-value"  // a word that is none of those known
	CodeBadValue      longshore.Code = "bad-value"      // a value of the wrong kind
	CodeOutOfRange    longshore.Code = "out-of-range"   // a value that is too small, too large or does not go with another
	CodeMissing       longshore.Code = "missing"        // something that is needed is not there
	CodeSecretInFile  longshore.Code = "secret-in-file" // a secret written out (warning)
	CodeSecretMissing longshore.Code = "secret-missing" // a reference that leads nowhere
)
