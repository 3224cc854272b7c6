package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/longshore-go/longshore"
)

// GroupRemoval implements [transport.GroupRemovable].
func (s *Group) GroupRemoval(ctx context.Context) (group, command string, err error) {
	command = fmt.Sprintf("kafka-consumer-groups.sh --bootstrap-server %s --delete --group %s", s.b.address(), s.group)
	_, err = withAdmin(s.b, func(_ *kgo.Client, adm *kadm.Client) (struct{}, error) {
		op := fmt.Sprintf("look for group %q at %s", s.group, s.b.address())
		found, err := describeGroup(ctx, adm, s.group)
		switch {
		case err != nil:
			return struct{}{}, s.b.failure(op, s.group, err)
		case found.state == "" || found.state == "Dead":
			return struct{}{}, &longshore.Error{Code: longshore.CodeNotFound, Op: op, Source: s.group, Err: errors.New("it does not exist")}
		}
		return struct{}{}, nil
	})
	return s.group, command, err
}
