package throttle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/longshore-go/longshore/transport"
)

// Key is a secret shared by those who issue and those who obey. With a key
// configured, messages without a signature by one of the keys are ignored.
type Key struct {
	// ID names the key in messages, so that a new one can be introduced before the
	// old one is removed.
	ID string
	// Secret is asked for each message, so that a changed file is used at once. It
	// must have at least 16 bytes.
	Secret transport.Secret
}

const minSecret = 16

// Sign signs d as it is, for programs that issue directives by other means than
// [Fleet.Issue] and [Seal].
func Sign(ctx context.Context, key Key, d *Directive) error { return keyring{key}.sign(ctx, d) }

// keyring signs with its first key and accepts all of them.
type keyring []Key

func (k keyring) sign(ctx context.Context, d *Directive) error {
	if len(k) == 0 {
		return nil
	}
	d.KeyID = k[0].ID
	sum, err := k[0].sum(ctx, d)
	if err != nil {
		return err
	}
	d.Signature = base64.StdEncoding.EncodeToString(sum)
	return nil
}

var errSignature = errors.New("its signature is wrong")

func (k keyring) verify(ctx context.Context, d *Directive) error {
	if len(k) == 0 {
		return nil
	}
	if d.Signature == "" {
		return errors.New("it is not signed")
	}
	given, err := base64.StdEncoding.DecodeString(d.Signature)
	if err != nil {
		return errSignature
	}
	for _, key := range k {
		if key.ID != d.KeyID {
			continue
		}
		sum, err := key.sum(ctx, d)
		if err != nil {
			return err
		}
		if !hmac.Equal(sum, given) {
			return errSignature
		}
		return nil
	}
	return fmt.Errorf("it is signed with the key %.32q, which is not known here", d.KeyID)
}

func (k Key) sum(ctx context.Context, d *Directive) ([]byte, error) {
	secret, err := k.Secret.Get(ctx)
	if err != nil {
		return nil, fmt.Errorf("the key %q cannot be read: %w", k.ID, err)
	}
	if len(secret) < minSecret {
		return nil, fmt.Errorf("the key %q has less than %d bytes", k.ID, minSecret)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write(d.canonical()) // a hash never fails
	return mac.Sum(nil), nil
}
