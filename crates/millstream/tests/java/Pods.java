import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/**
 * Consumers as operators run them. Prints PASS or FAIL as its last line.
 *
 * <ul>
 * <li>{@code overlap}: a second pod starts with the instance id of one that runs (SM-12), classic and consumer protocol.
 * <li>{@code scaling}: members commit every batch while others come and go (C8-05).
 * <li>{@code rolling}: the members of a group are replaced one by one, from classic to consumer and back (C8-11).
 * <li>{@code restarts}: static members while the broker is killed (SM-11). Prints READY; STOP ends the killing,
 *     and everybody has to be where it was.
 * </ul>
 * Arguments: bootstrap servers, names of the cases.
 */
public class Pods {
    static final int PARTITIONS = 6;
    static final List<String> problems = Collections.synchronizedList(new ArrayList<>());
    static String bootstrap, run = UUID.randomUUID().toString().substring(0, 8);

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        for (String name : List.of(args).subList(1, args.length)) {
            long start = System.currentTimeMillis();
            switch (name) {
                case "overlap" -> { overlap("classic"); overlap("consumer"); }
                case "scaling" -> scaling();
                case "rolling" -> rolling();
                case "restarts" -> restarts();
                default -> throw new IllegalArgumentException(name);
            }
            System.out.println(name + ": " + (System.currentTimeMillis() - start) + " ms");
        }
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    /** A consumer in its own thread, which commits what it has read after every poll. */
    static class Pod implements ConsumerRebalanceListener {
        final Map<String, Object> config = new HashMap<>();
        final Set<TopicPartition> owned = ConcurrentHashMap.newKeySet();
        final AtomicLong rebalances = new AtomicLong(), records = new AtomicLong(), commits = new AtomicLong(), failedCommits = new AtomicLong();
        final Set<TopicPartition> lost = ConcurrentHashMap.newKeySet();
        volatile Exception end;
        volatile boolean stop;
        volatile ConsumerGroupMetadata seen;
        final Owners owners;
        final Thread thread;

        Pod(String topic, String protocol, String instance, Owners owners) {
            this.owners = owners;
            config.putAll(Map.of("bootstrap.servers", bootstrap, "group.id", topic, "group.protocol", protocol, "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 20));
            // A client that starts anew with its bootstrap servers forgets all topics for a moment, and a leader that does rebalances the group.
            config.put("metadata.recovery.strategy", "none");
            if (instance != null) config.put("group.instance.id", instance);
            if (protocol.equals("classic")) {
                config.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
                config.put("heartbeat.interval.ms", 200);
            }
            thread = new Thread(() -> consume(topic));
            thread.start();
        }

        void consume(String topic) {
            var consumer = new KafkaConsumer<>(config, new LongDeserializer(), new LongDeserializer());
            try {
                consumer.subscribe(List.of(topic), this);
                while (!stop) {
                    var batch = consumer.poll(Duration.ofMillis(50));
                    seen = consumer.groupMetadata();
                    records.addAndGet(batch.count());
                    for (var record : batch) owners.read(this, new TopicPartition(record.topic(), record.partition()), record.offset());
                    if (batch.count() > 0) commit(consumer);
                }
            } catch (Exception e) {
                end = e;
            } finally {
                // A consumer that was refused would wait for half a minute.
                consumer.close(CloseOptions.timeout(Duration.ofSeconds(end == null ? 30 : 1)));
            }
        }

        void commit(KafkaConsumer<Long, Long> consumer) {
            try {
                consumer.commitSync(Duration.ofSeconds(20));
                commits.incrementAndGet();
            } catch (CommitFailedException | RebalanceInProgressException e) {
                failedCommits.incrementAndGet();
            }
        }

        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) rebalances.incrementAndGet();
            owned.addAll(partitions);
            for (var partition : partitions) owners.take(this, partition);
        }

        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) rebalances.incrementAndGet();
            owned.removeAll(partitions);
            for (var partition : partitions) owners.release(this, partition);
        }

        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            lost.addAll(partitions);
            onPartitionsRevoked(partitions);
        }

        void close() throws InterruptedException {
            stop = true;
            thread.join(30_000);
        }
    }

    /** Who owns which partition now, as the members themselves see it, and what has been read of it. */
    static class Owners {
        final Map<TopicPartition, Pod> owner = new HashMap<>();
        final Map<TopicPartition, Long> next = new HashMap<>();
        final Map<TopicPartition, Long> unowned = new HashMap<>();
        long longestGapMs, repeated;

        synchronized void take(Pod pod, TopicPartition partition) {
            Pod before = owner.put(partition, pod);
            if (before != null && before != pod) problems.add(partition + " has two owners");
            Long since = unowned.remove(partition);
            if (since != null) longestGapMs = Math.max(longestGapMs, System.currentTimeMillis() - since);
        }

        synchronized void release(Pod pod, TopicPartition partition) {
            if (owner.remove(partition, pod)) unowned.put(partition, System.currentTimeMillis());
        }

        synchronized void read(Pod pod, TopicPartition partition, long offset) {
            long expected = next.getOrDefault(partition, 0L);
            if (offset > expected) problems.add(partition + ": " + (offset - expected) + " records before " + offset + " were skipped");
            if (offset < expected) repeated++;
            next.put(partition, Math.max(expected, offset + 1));
        }

        synchronized int count() { return owner.size(); }
    }

    static String topic(String name) throws Exception {
        String topic = name + "-" + run;
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, (short) 1))).all().get();
        }
        return topic;
    }

    static Thread produce(String topic, CountDownLatch stop) {
        Thread thread = new Thread(() -> {
            try (var producer = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", bootstrap, "linger.ms", 5), new LongSerializer(), new LongSerializer())) {
                for (long n = 0; stop.getCount() > 0; n++) {
                    producer.send(new ProducerRecord<>(topic, (int) (n % PARTITIONS), n, n));
                    Thread.sleep(2);
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
        return thread;
    }

    static void until(String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + 30_000;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) { problems.add("not within 30 s: " + what); return; }
            Thread.sleep(20);
        }
    }

    static void overlap(String protocol) throws Exception {
        String topic = topic("overlap-" + protocol);
        // Each with its own account: a pod that is fenced learns it only after the other one has begun.
        Pod first = new Pod(topic, protocol, "a", new Owners()), other = new Pod(topic, protocol, "b", new Owners());
        until("both pods share the topic", () -> first.owned.size() == 3 && other.owned.size() == 3);
        long calm = other.rebalances.get();
        Pod second = new Pod(topic, protocol, "a", new Owners());
        if (protocol.equals("classic")) {
            until("the old pod is fenced", () -> first.end != null);
            if (!(first.end instanceof FencedInstanceIdException)) problems.add("the old pod ended with " + first.end);
            until("the new pod has what the old one had", () -> second.owned.size() == 3);
            if (second.end != null) problems.add("the new pod ended with " + second.end);
        } else {
            until("the new pod is refused", () -> second.end != null);
            if (!(second.end instanceof UnreleasedInstanceIdException)) problems.add("the new pod ended with " + second.end);
            if (first.end != null || first.owned.size() != 3) problems.add("the old pod was disturbed: " + first.end);
        }
        if (other.rebalances.get() != calm) problems.add(protocol + ": the other member was rebalanced");
        for (Pod pod : List.of(first, other, second)) pod.close();
    }

    static void scaling() throws Exception {
        String topic = topic("scaling");
        Owners owners = new Owners();
        CountDownLatch stop = new CountDownLatch(1);
        Thread producing = produce(topic, stop);
        List<Pod> steady = new ArrayList<>();
        for (int i = 0; i < 2; i++) steady.add(new Pod(topic, "consumer", null, owners));
        until("two members share the topic", () -> steady.stream().allMatch(pod -> pod.owned.size() == 3));
        for (int round = 0; round < 2; round++) {
            List<Pod> extra = List.of(new Pod(topic, "consumer", null, owners));
            until("the newcomer has its share", () -> extra.stream().allMatch(pod -> pod.owned.size() == 2));
            for (Pod pod : extra) { pod.close(); if (pod.end != null) problems.add("a newcomer ended with " + pod.end); }
            until("the others have taken over", () -> steady.stream().mapToInt(pod -> pod.owned.size()).sum() == PARTITIONS);
        }
        for (Pod pod : steady) {
            if (pod.end != null) problems.add("a member ended with " + pod.end);
            if (pod.failedCommits.get() > 0) problems.add(pod.failedCommits + " of " + pod.commits + " commits failed");
            if (pod.commits.get() == 0) problems.add("a member did not commit anything");
        }
        finish(owners, steady, stop, producing);
    }

    static void rolling() throws Exception {
        String topic = topic("rolling");
        Owners owners = new Owners();
        CountDownLatch stop = new CountDownLatch(1);
        Thread producing = produce(topic, stop);
        List<Pod> pods = new ArrayList<>();
        for (int i = 0; i < 2; i++) pods.add(new Pod(topic, "classic", null, owners));
        until("two classic members share the topic", () -> pods.stream().allMatch(pod -> pod.owned.size() == 3));
        for (String protocol : List.of("consumer", "classic")) {
            for (int i = 0; i < 2; i++) {
                pods.remove(0).close();
                pods.add(new Pod(topic, protocol, null, owners));
                until("all partitions are owned by two members", () -> owners.count() == PARTITIONS && pods.stream().noneMatch(pod -> pod.owned.isEmpty()));
            }
            try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
                until("the group is listed as " + protocol, () -> admin.listGroups().all().get().stream()
                    .anyMatch(group -> group.groupId().equals(topic) && group.type().get().toString().equalsIgnoreCase(protocol)));
            }
        }
        for (Pod pod : pods) if (pod.end != null) problems.add("a member ended with " + pod.end);
        finish(owners, pods, stop, producing);
    }

    static void finish(Owners owners, List<Pod> pods, CountDownLatch stop, Thread producing) throws Exception {
        stop.countDown();
        producing.join();
        for (Pod pod : pods) pod.close();
        if (owners.longestGapMs > 10_000) problems.add("a partition had no owner for " + owners.longestGapMs + " ms");
        System.out.println("longest gap " + owners.longestGapMs + " ms, " + owners.repeated + " records read again");
    }

    static void restarts() throws Exception {
        List<Pod> pods = new ArrayList<>();
        for (String protocol : List.of("classic", "consumer")) {
            String topic = topic("restarts-" + protocol);
            for (int i = 0; i < 3; i++) pods.add(new Pod(topic, protocol, "i" + i, new Owners()));
        }
        until("all members share their topics", () -> pods.stream().allMatch(pod -> pod.owned.size() == 2));
        Map<Pod, String> before = new LinkedHashMap<>();
        for (Pod pod : pods) before.put(pod, identity(pod));
        List<Long> calm = pods.stream().map(pod -> pod.rebalances.get()).toList();
        System.out.println("READY");
        Scanner commands = new Scanner(System.in);
        while (!commands.nextLine().equals("STOP")) { }
        // Many heartbeats; clients are connected again by then.
        Thread.sleep(3_000);
        for (Pod pod : pods) {
            if (pod.end != null) problems.add("a member ended with " + pod.end);
            else if (!identity(pod).equals(before.get(pod))) problems.add("was " + before.get(pod) + ", is " + identity(pod));
        }
        if (!pods.stream().map(pod -> pod.rebalances.get()).toList().equals(calm)) problems.add("there was a rebalance");
    }

    /** Member id and generation. */
    static String identity(Pod pod) {
        ConsumerGroupMetadata metadata = pod.seen;
        return metadata.memberId() + " at " + metadata.generationId();
    }
}
