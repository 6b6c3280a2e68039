import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.serialization.*;

/**
 * Copies one topic to another in transactions that include the consumer's offsets, while somebody kills the broker. One
 * transaction in four is aborted on purpose and done again. Prints READY when transactions are committed, then reads lines:
 * STOP ends the production, and the accounts are made: every record that was acknowledged is in the output exactly once.
 *
 * Arguments: bootstrap servers, group protocol. Prints PASS or FAIL as its last line.
 */
public class Ledger {
    static final int PARTITIONS = 3;
    static final Random random = new Random(7);
    static final AtomicLong commits = new AtomicLong(), aborts = new AtomicLong(), restarts = new AtomicLong();

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], protocol = args[1], app = "ledger-" + UUID.randomUUID(), in = app + "-in", out = app + "-out";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(in, PARTITIONS, (short) 1), new NewTopic(out, PARTITIONS, (short) 1))).all().get();
        }
        Set<Long> acknowledged = ConcurrentHashMap.newKeySet();
        CountDownLatch stop = new CountDownLatch(1), done = new CountDownLatch(1);
        Thread producing = new Thread(() -> produce(bootstrap, in, acknowledged, stop));
        Thread copying = new Thread(() -> copy(bootstrap, protocol, app, in, out, done));
        producing.start();
        copying.start();
        while (commits.get() < 2) Thread.sleep(20);
        System.out.println("READY");
        Scanner commands = new Scanner(System.in);
        while (!commands.nextLine().equals("STOP")) { }
        stop.countDown();
        producing.join();
        Map<Long, Integer> output = count(bootstrap, out, acknowledged);
        done.countDown();
        copying.join();
        System.out.println("acknowledged " + acknowledged.size() + ", " + commits + " commits, " + aborts + " aborts, " + restarts + " restarts of the producer");

        List<String> problems = new ArrayList<>();
        long lost = acknowledged.stream().filter(n -> !output.containsKey(n)).count();
        long repeated = output.values().stream().filter(times -> times > 1).count();
        if (acknowledged.isEmpty()) problems.add("nothing was acknowledged");
        if (lost > 0) problems.add(lost + " acknowledged records are not in the output");
        if (repeated > 0) problems.add(repeated + " records are in the output more than once");
        if (aborts.get() == 0) problems.add("nothing was aborted");
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    static void produce(String bootstrap, String topic, Set<Long> acknowledged, CountDownLatch stop) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "delivery.timeout.ms", 120_000, "linger.ms", 2);
        try (var producer = new KafkaProducer<>(config, new LongSerializer(), new LongSerializer())) {
            for (long n = 0; stop.getCount() > 0; n++) {
                long number = n;
                producer.send(new ProducerRecord<>(topic, number, number), (metadata, error) -> {
                    if (error == null) acknowledged.add(number);
                });
                if (n % 4 == 0) Thread.sleep(1);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** A producer that fails for good is replaced by another one with the same transactional id. */
    static void copy(String bootstrap, String protocol, String app, String in, String out, CountDownLatch done) {
        Map<String, Object> reading = Map.of("bootstrap.servers", bootstrap, "group.id", app, "group.protocol", protocol, "auto.offset.reset", "earliest", "isolation.level", "read_committed", "enable.auto.commit", false, "max.poll.records", 50);
        Map<String, Object> writing = Map.of("bootstrap.servers", bootstrap, "transactional.id", app, "delivery.timeout.ms", 60_000, "request.timeout.ms", 5_000, "linger.ms", 2);
        try (var consumer = new KafkaConsumer<>(reading, new LongDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(in));
            while (done.getCount() > 0) {
                try (var producer = new KafkaProducer<>(writing, new LongSerializer(), new LongSerializer())) {
                    producer.initTransactions();
                    while (done.getCount() > 0) transaction(consumer, producer, out);
                } catch (KafkaException failed) {
                    System.out.println("another producer is needed: " + failed);
                    restarts.incrementAndGet();
                    rewind(consumer);
                }
            }
        }
    }

    static void transaction(KafkaConsumer<Long, Long> consumer, KafkaProducer<Long, Long> producer, String out) {
        ConsumerRecords<Long, Long> records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) return;
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<Long, Long> record : records) {
                producer.send(new ProducerRecord<>(out, record.key(), record.value()));
                offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            if (random.nextInt(4) == 0) throw new TransactionAbortableException("on purpose");
            producer.commitTransaction();
            commits.incrementAndGet();
        } catch (ProducerFencedException | InvalidProducerEpochException | OutOfOrderSequenceException | AuthorizationException fatal) {
            throw fatal;
        } catch (KafkaException abortable) {
            producer.abortTransaction();
            aborts.incrementAndGet();
            rewind(consumer);
        }
    }

    /** Back to what is committed. */
    static void rewind(KafkaConsumer<Long, Long> consumer) {
        while (true) {
            try {
                Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
                for (TopicPartition partition : consumer.assignment()) {
                    OffsetAndMetadata offset = committed.get(partition);
                    if (offset == null) consumer.seekToBeginning(List.of(partition));
                    else consumer.seek(partition, offset);
                }
                return;
            } catch (RetriableException later) {
                System.out.println("the committed offsets are not to be had yet: " + later);
            }
        }
    }

    /** How often each number is in committed transactions; waits until all of `wanted` were seen, or for two minutes. */
    static Map<Long, Integer> count(String bootstrap, String topic, Set<Long> wanted) {
        Map<Long, Integer> times = new HashMap<>();
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(config, new LongDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
            while (System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> times.merge(record.key(), 1, Integer::sum));
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                boolean all = partitions.stream().allMatch(p -> consumer.position(p) >= ends.get(p));
                if (all && times.keySet().containsAll(wanted)) break;
            }
        }
        return times;
    }
}
