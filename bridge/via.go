package bridge

import (
	"encoding/hex"
	"net/url"
	"slices"
	"strings"

	"github.com/longshore-go/longshore"
	"github.com/longshore-go/longshore/transport"
)

// maxHops is how many places a message passes before a route parks it: more than any chain
// that people build, and few enough to end a ring that no other rule recognises.
const maxHops = 8

// via is the list of places that a message has passed, as HeaderVia holds it: the digest of
// the content for which it was written, then one token for each place. The digest binds the
// list to its message: an application that answers a message with a new one and copies the
// headers does not copy its way.
type via struct {
	digest [16]byte
	places []string
}

// token names a queue or topic on a broker. Two vhosts, two accounts and two entities of one
// cluster have different tokens, so that a chain on one cluster passes and a ring does not.
func token(d transport.Description) string {
	return strings.Join([]string{url.QueryEscape(d.Transport), url.QueryEscape(d.Address), url.QueryEscape(d.Namespace), url.QueryEscape(d.Name)}, "|")
}

// viaOf reads the header. copied means that there was a list for another content.
func viaOf(h longshore.Headers, digest [16]byte) (v via, copied bool) {
	fields := strings.Fields(h.String(longshore.HeaderVia))
	if len(fields) == 0 {
		return via{digest: digest}, false
	}
	if sum, err := hex.DecodeString(fields[0]); err != nil || [16]byte(pad(sum)) != digest {
		return via{digest: digest}, true
	}
	return via{digest: digest, places: fields[1:]}, false
}

// pad makes 16 bytes of a decoded digest, so that one of another length is just unequal.
func pad(b []byte) []byte {
	return append(b, make([]byte, max(0, 16-len(b)))...)
}

func (v via) has(token string) bool { return slices.Contains(v.places, token) }

// through is the list at the next place.
func (v via) through(token string) via {
	return via{digest: v.digest, places: append(slices.Clone(v.places), token)}
}

// back is the list of a message that goes back to the place it came from last. One that was
// published where it is now has not passed anything.
func (v via) back(to string) via {
	if n := len(v.places); n > 0 && v.places[n-1] == to {
		v.places = v.places[:n-1]
	}
	return v
}

// String is the header's value.
func (v via) String() string {
	return hex.EncodeToString(v.digest[:]) + " " + strings.Join(v.places, " ")
}
