import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;

/**
 * A Kafka Streams application with exactly_once_v2 that counts what an idempotent producer writes, while somebody kills the
 * broker and instances come and go. Prints READY when counts come out, then reads lines: JOIN starts another instance, LEAVE
 * closes the oldest, STOP ends the production and makes the accounts: for every key, the committed output is 1, 2, 3 ... up to the
 * number of its records in the input, each count once and in order.
 *
 * Arguments: bootstrap servers, group protocol. Prints PASS or FAIL as its last line.
 */
public class Counting {
    static final int PARTITIONS = 3, KEYS = 12;
    static String bootstrap, protocol, app, in, out;
    static final Deque<KafkaStreams> instances = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        protocol = args[1];
        app = "counting-" + UUID.randomUUID();
        in = app + "-in";
        out = app + "-out";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(in, PARTITIONS, (short) 1), new NewTopic(out, PARTITIONS, (short) 1))).all().get();
        }
        instances.add(instance());
        CountDownLatch stop = new CountDownLatch(1);
        Thread producing = new Thread(() -> produce(stop));
        producing.start();
        read(out, 60, counts -> !counts.isEmpty());
        System.out.println("READY");
        Scanner commands = new Scanner(System.in);
        for (String command = commands.nextLine(); !command.equals("STOP"); command = commands.nextLine()) {
            if (command.equals("JOIN")) instances.add(instance());
            if (command.equals("LEAVE") && instances.size() > 1) instances.remove().close(Duration.ofSeconds(20));
        }
        stop.countDown();
        producing.join();
        List<String> problems = accounts();
        for (KafkaStreams instance : instances) {
            if (!instance.state().isRunningOrRebalancing()) problems.add("an instance is " + instance.state());
            if (!instance.close(Duration.ofSeconds(30))) problems.add("an instance does not close");
        }
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    static List<String> accounts() {
        List<String> problems = new ArrayList<>();
        Map<Integer, List<Long>> input = read(in, 60, all -> true);
        int records = input.values().stream().mapToInt(List::size).sum();
        System.out.println("records in the input " + records);
        if (records == 0) problems.add("the input is empty");
        Map<Integer, List<Long>> output = read(out, 120, all -> input.entrySet().stream().allMatch(e -> all.getOrDefault(e.getKey(), List.of()).size() >= e.getValue().size()));
        for (int key : input.keySet()) {
            List<Long> counts = output.getOrDefault(key, List.of());
            int wanted = input.get(key).size();
            if (counts.size() != wanted) problems.add("key " + key + " has " + wanted + " records and " + counts.size() + " counts");
            for (int i = 0; i < counts.size(); i++) {
                if (counts.get(i) == i + 1) continue;
                problems.add("key " + key + ": count " + counts.get(i) + " at place " + (i + 1));
                break;
            }
        }
        return problems;
    }

    static KafkaStreams instance() throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(in, Consumed.with(Serdes.Integer(), Serdes.Long()))
            .groupByKey()
            .count(Materialized.with(Serdes.Integer(), Serdes.Long()))
            .toStream()
            .to(out, Produced.with(Serdes.Integer(), Serdes.Long()));
        Properties config = new Properties();
        config.put("application.id", app);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", protocol);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", 100);
        config.put("num.stream.threads", 2);
        // Without a cache every record gives a count of its own.
        config.put("statestore.cache.max.bytes", 0);
        config.put("state.dir", Files.createTempDirectory("millstream-counting").toString());
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("a thread is replaced: " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        return streams;
    }

    static void produce(CountDownLatch stop) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "enable.idempotence", true, "delivery.timeout.ms", 120_000, "linger.ms", 2);
        try (var producer = new KafkaProducer<>(config, new IntegerSerializer(), new LongSerializer())) {
            for (long n = 0; !stop.await(2, TimeUnit.MILLISECONDS); n++) producer.send(new ProducerRecord<>(in, (int) (n % KEYS), n));
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    interface Enough {
        boolean holds(Map<Integer, List<Long>> seen);
    }

    /** What committed readers see of a topic, by key; up to its end, and until it is enough or the time is over. */
    static Map<Integer, List<Long>> read(String topic, int seconds, Enough enough) {
        Map<Integer, List<Long>> seen = new TreeMap<>();
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(config, new IntegerDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
            while (System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.computeIfAbsent(record.key(), key -> new ArrayList<>()).add(record.value()));
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                if (partitions.stream().allMatch(p -> consumer.position(p) >= ends.get(p)) && enough.holds(seen)) break;
            }
        }
        return seen;
    }
}
