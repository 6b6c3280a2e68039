// Static consumers of franz-go, driven by lines on standard input: see bounce.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	bootstrap, group, topic, protocol = os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	output                            sync.Mutex
)

func say(words ...any) {
	output.Lock()
	defer output.Unlock()
	fmt.Println(words...)
}

type member struct {
	name   string
	stop   chan struct{}
	lock   sync.Mutex
	owned  map[int32]bool
	failed string
}

// OnGroupManageError is called with what ended the session.
func (m *member) OnGroupManageError(err error) {
	var code *kerr.Error
	if errors.As(err, &code) {
		m.lock.Lock()
		m.failed = code.Message
		m.lock.Unlock()
	}
}

func (m *member) change(partitions map[string][]int32, have bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range partitions[topic] {
		if have {
			m.owned[partition] = true
		} else {
			delete(m.owned, partition)
		}
	}
}

func (m *member) text(client *kgo.Client) (string, string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	var list []int
	for partition := range m.owned {
		list = append(list, int(partition))
	}
	sort.Ints(list)
	partitions := strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
	if partitions == "" {
		partitions = "-"
	}
	_, generation := client.GroupMetadata()
	return fmt.Sprint(generation, " ", partitions), m.failed
}

func (m *member) consume(instance string) {
	gained := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(p, true) }
	gone := func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.change(p, false) }
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.InstanceID(instance),
		kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(500 * time.Millisecond), kgo.SessionTimeout(30 * time.Second),
		kgo.OnPartitionsAssigned(gained), kgo.OnPartitionsRevoked(gone), kgo.OnPartitionsLost(gone), kgo.WithHooks(m),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	before := ""
	for stopped := false; !stopped; {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		client.PollFetches(ctx)
		cancel()
		now, failed := m.text(client)
		if failed != "" {
			say(m.name, "failed", failed)
			break
		}
		if now != before {
			say(m.name, "owns", now)
			before = now
		}
		select {
		case <-m.stop:
			stopped = true
		default:
		}
	}
	client.Close()
	say(m.name, "stopped")
}

func main() {
	members := map[string]*member{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "start":
			m := &member{name: words[1], stop: make(chan struct{}), owned: map[int32]bool{}}
			members[words[1]] = m
			go m.consume(words[2])
		case "stop":
			close(members[words[1]].stop)
		}
	}
}
