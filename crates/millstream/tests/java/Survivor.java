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
import org.apache.kafka.streams.kstream.*;

/**
 * Keeps an idempotent producer and a Kafka Streams application busy while somebody kills the broker. Prints READY when
 * records flow, then reads lines: STOP ends the production, and the accounts are made: every record that was acknowledged is
 * in the input exactly once and in the output at least once.
 *
 * Arguments: bootstrap servers. Prints PASS or FAIL as its last line.
 */
public class Survivor {
    static final int PARTITIONS = 3;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], app = "survivor-" + UUID.randomUUID(), in = app + "-in", out = app + "-out";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(in, PARTITIONS, (short) 1), new NewTopic(out, PARTITIONS, (short) 1))).all().get();
        }
        KafkaStreams streams = application(bootstrap, app, in, out);
        Set<Long> acknowledged = ConcurrentHashMap.newKeySet();
        CountDownLatch flowing = new CountDownLatch(1), stop = new CountDownLatch(1);
        Thread producing = new Thread(() -> produce(bootstrap, in, acknowledged, flowing, stop));
        producing.start();
        flowing.await();
        while (streams.state() != KafkaStreams.State.RUNNING) Thread.sleep(20);
        System.out.println("READY");
        Scanner commands = new Scanner(System.in);
        while (!commands.nextLine().equals("STOP")) { }
        stop.countDown();
        producing.join();
        System.out.println("acknowledged " + acknowledged.size());

        List<String> problems = new ArrayList<>();
        Map<Long, Integer> input = count(bootstrap, in, Set.of());
        Map<Long, Integer> output = count(bootstrap, out, acknowledged);
        long lost = acknowledged.stream().filter(n -> !input.containsKey(n)).count();
        long repeated = input.values().stream().filter(times -> times > 1).count();
        long unprocessed = acknowledged.stream().filter(n -> !output.containsKey(n)).count();
        if (acknowledged.isEmpty()) problems.add("nothing was acknowledged");
        if (lost > 0) problems.add(lost + " acknowledged records are not in the input");
        if (repeated > 0) problems.add(repeated + " records are in the input more than once");
        if (unprocessed > 0) problems.add(unprocessed + " acknowledged records are not in the output");
        if (!streams.state().isRunningOrRebalancing()) problems.add("the application is " + streams.state());
        if (!streams.close(Duration.ofSeconds(30))) problems.add("the application does not close");
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    static KafkaStreams application(String bootstrap, String app, String in, String out) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(in, Consumed.with(Serdes.Long(), Serdes.Long())).mapValues(n -> n + 1).to(out, Produced.with(Serdes.Long(), Serdes.Long()));
        Properties config = new Properties();
        config.put("application.id", app);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", "streams");
        config.put("commit.interval.ms", 100);
        config.put("num.stream.threads", 2);
        config.put("state.dir", Files.createTempDirectory("millstream-survivor").toString());
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        return streams;
    }

    static void produce(String bootstrap, String topic, Set<Long> acknowledged, CountDownLatch flowing, CountDownLatch stop) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "enable.idempotence", true, "delivery.timeout.ms", 120_000, "linger.ms", 2);
        try (var producer = new KafkaProducer<>(config, new LongSerializer(), new LongSerializer())) {
            for (long n = 0; stop.getCount() > 0; n++) {
                long number = n;
                producer.send(new ProducerRecord<>(topic, number, number), (metadata, error) -> {
                    if (error != null) return;
                    acknowledged.add(number);
                    flowing.countDown();
                });
                if (n % 10 == 0) Thread.sleep(1);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** How often each number is in the topic; waits until all of `wanted` were seen, or for a minute. */
    static Map<Long, Integer> count(String bootstrap, String topic, Set<Long> wanted) {
        Map<Long, Integer> times = new HashMap<>();
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(config, new LongDeserializer(), new LongDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
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
