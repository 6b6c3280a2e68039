import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

/**
 * Scales a stateful application from one instance to two while records flow, and says how long each task was without an owner
 * that processed it, and which tasks the second instance had warmed up before it got them.
 *
 * Arguments: bootstrap servers, size of the store in MiB, size of a value in bytes, `warm` to require that every task that moved was warm.
 * Prints PASS or FAIL as its last line; before it one line `HANDOVER {...}` in JSON.
 */
public class Handover {
    static final int PARTITIONS = 6;
    static final String STORE = "latest";

    /** By partition: when a record was last processed, the longest time between two, and by which instance the last one was. */
    static final AtomicLongArray lastNanos = new AtomicLongArray(PARTITIONS), longestNanos = new AtomicLongArray(PARTITIONS);
    static final AtomicIntegerArray owner = new AtomicIntegerArray(PARTITIONS);
    static final AtomicLong preloaded = new AtomicLong();
    static volatile boolean watched;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], app = "handover-" + UUID.randomUUID(), in = app + "-in";
        int valueBytes = Integer.parseInt(args[2]);
        long records = (Long.parseLong(args[1]) << 20) / valueBytes;
        boolean warm = args.length > 3 && args[3].equals("warm");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(in, PARTITIONS, (short) 1))).all().get();
        }
        Set<Integer> promotedIgnored = ConcurrentHashMap.newKeySet(), promoted = ConcurrentHashMap.newKeySet();
        KafkaStreams first = instance(bootstrap, app, in, 1, promotedIgnored);
        preload(bootstrap, in, records, valueBytes);
        while (preloaded.get() < records) Thread.sleep(50);

        CountDownLatch stop = new CountDownLatch(1);
        Thread flow = new Thread(() -> flow(bootstrap, in, stop));
        flow.start();
        Thread.sleep(2_000);
        watched = true;
        long started = System.nanoTime();
        KafkaStreams second = instance(bootstrap, app, in, 2, promoted);
        long limit = started + TimeUnit.MINUTES.toNanos(10);
        while (owned(2) < PARTITIONS / 2 && System.nanoTime() < limit) Thread.sleep(5);
        long handedOver = System.nanoTime() - started;
        Thread.sleep(3_000);
        watched = false;
        stop.countDown();
        flow.join();

        List<String> problems = new ArrayList<>();
        long longest = 0;
        Set<Integer> moved = new TreeSet<>();
        for (int p = 0; p < PARTITIONS; p++) {
            longest = Math.max(longest, longestNanos.get(p));
            if (owner.get(p) == 2) moved.add(p);
        }
        if (moved.size() != PARTITIONS / 2) problems.add("the second instance has " + moved + " after " + handedOver / 1_000_000 + " ms");
        if (warm && !promoted.containsAll(moved)) problems.add("moved " + moved + ", but warmed up only " + promoted);
        System.out.printf("HANDOVER {\"longest_gap_ms\": %d, \"handed_over_ms\": %d, \"moved\": %s, \"warm\": %s}%n",
            longest / 1_000_000, handedOver / 1_000_000, moved, new TreeSet<>(promoted));
        if (!second.close(Duration.ofSeconds(60)) | !first.close(Duration.ofSeconds(60))) problems.add("an instance does not close");
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    static int owned(int instance) {
        int count = 0;
        for (int p = 0; p < PARTITIONS; p++) if (owner.get(p) == instance) count++;
        return count;
    }

    /** Keeps the latest value of each key, and notes when which partition was processed where. */
    static final class Keep implements Processor<Integer, byte[], Void, Void> {
        private final int instance;
        private KeyValueStore<Integer, byte[]> store;
        private int partition;

        Keep(int instance) { this.instance = instance; }

        @Override public void init(ProcessorContext<Void, Void> context) {
            store = context.getStateStore(STORE);
            partition = context.taskId().partition();
        }

        @Override public void process(Record<Integer, byte[]> record) {
            store.put(record.key(), record.value());
            if (record.key() >= 0) preloaded.incrementAndGet();
            long now = System.nanoTime(), before = lastNanos.getAndSet(partition, now);
            if (watched && before != 0) longestNanos.accumulateAndGet(partition, now - before, Math::max);
            owner.set(partition, instance);
        }
    }

    static KafkaStreams instance(String bootstrap, String app, String in, int number, Set<Integer> promoted) throws Exception {
        Topology topology = new Topology();
        topology.addSource("source", new IntegerDeserializer(), new ByteArrayDeserializer(), in);
        topology.addProcessor("keep", () -> new Keep(number), "source");
        topology.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Integer(), Serdes.ByteArray()), "keep");
        Properties config = new Properties();
        config.put("application.id", app);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", "streams");
        config.put("commit.interval.ms", 200);
        config.put("num.stream.threads", 1);
        config.put("state.dir", Files.createTempDirectory("millstream-handover").toString());
        config.put("auto.offset.reset", "earliest");
        KafkaStreams streams = new KafkaStreams(topology, config);
        streams.setStandbyUpdateListener(new StandbyUpdateListener() {
            @Override public void onUpdateStart(TopicPartition partition, String store, long offset) { }
            @Override public void onBatchLoaded(TopicPartition partition, String store, TaskId task, long end, long size, long offset) { }
            @Override public void onUpdateSuspended(TopicPartition partition, String store, long offset, long end, SuspendReason reason) {
                if (reason == SuspendReason.PROMOTED) promoted.add(partition.partition());
            }
        });
        streams.start();
        long limit = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        while (number == 1 && streams.state() != KafkaStreams.State.RUNNING && System.nanoTime() < limit) Thread.sleep(20);
        return streams;
    }

    static void preload(String bootstrap, String topic, long records, int valueBytes) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "linger.ms", 5, "batch.size", 256 << 10, "acks", "1");
        byte[] value = new byte[valueBytes];
        Random random = new Random(1);
        try (var producer = new KafkaProducer<>(config, new IntegerSerializer(), new ByteArraySerializer())) {
            for (int n = 0; n < records; n++) {
                random.nextBytes(value);
                producer.send(new ProducerRecord<>(topic, n % PARTITIONS, n, value.clone()));
            }
        }
    }

    /** A record for each partition every 5 ms. */
    static void flow(String bootstrap, String topic, CountDownLatch stop) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "linger.ms", 0, "acks", "1");
        try (var producer = new KafkaProducer<>(config, new IntegerSerializer(), new ByteArraySerializer())) {
            for (int n = 0; !stop.await(5, TimeUnit.MILLISECONDS); n++) {
                for (int p = 0; p < PARTITIONS; p++) producer.send(new ProducerRecord<>(topic, p, -1 - n % 100, new byte[20]));
                producer.flush();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
