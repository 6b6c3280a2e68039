import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/**
 * A small application on unmodified Kafka Streams clients: orders come in keyed by number, are re-keyed by customer
 * (a repartition topic) and summed up in a store (a changelog topic) with one standby, over two instances of two threads.
 * Checks the sums, where tasks run, what interactive queries say, and how the group is described.
 *
 * Arguments: bootstrap servers, processing guarantee, group protocol. Prints PASS or FAIL as its last line.
 */
public class Orders {
    static final int ORDERS = 900, CUSTOMERS = 9, PARTITIONS = 4, THREADS = 2;
    static final List<String> problems = new ArrayList<>();

    static void expect(boolean holds, String what) {
        System.out.println((holds ? "   ok " : "WRONG ") + what);
        if (!holds) problems.add(what);
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    /** Polls until the condition holds; the time limit is only there so that a broken broker ends the test. */
    static boolean eventually(int seconds, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        do {
            try {
                if (condition.holds()) return true;
            } catch (org.apache.kafka.streams.errors.InvalidStateStoreException moving) {
                // A store on its way between instances; asked again.
            }
            Thread.sleep(20);
        } while (System.nanoTime() < end);
        return false;
    }

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0], guarantee = args[1], protocol = args[2];
        String app = "orders-" + UUID.randomUUID();
        boolean streams = protocol.equals("streams");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic(app + "-placed", PARTITIONS, (short) 1), new NewTopic(app + "-totals", PARTITIONS, (short) 1))).all().get();
            if (streams) {
                var group = new ConfigResource(ConfigResource.Type.GROUP, app);
                var standby = new AlterConfigOp(new ConfigEntry("streams.num.standby.replicas", "1"), AlterConfigOp.OpType.SET);
                admin.incrementalAlterConfigs(Map.of(group, List.of(standby))).all().get();
            }
            placeOrders(bootstrap, app);
            long start = System.nanoTime();
            List<KafkaStreams> instances = List.of(instance(bootstrap, app, guarantee, protocol, 0), instance(bootstrap, app, guarantee, protocol, 1));
            Map<String, Long> totals = totals(bootstrap, app);
            System.out.println("totals complete after " + (System.nanoTime() - start) / 1_000_000 + " ms");
            Map<String, Long> right = IntStream.range(0, ORDERS).boxed().collect(Collectors.groupingBy(n -> "customer-" + n % CUSTOMERS, TreeMap::new, Collectors.summingLong(n -> n)));
            expect(totals.equals(right), "totals " + totals);
            placement(instances);
            queries(instances, right);
            if (streams) description(admin, app);
            for (KafkaStreams instance : instances) expect(instance.close(Duration.ofSeconds(30)), "instance closes");
        }
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    static void placeOrders(String bootstrap, String app) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "compression.type", "zstd", "linger.ms", 5);
        try (var producer = new KafkaProducer<>(config, new IntegerSerializer(), new LongSerializer())) {
            for (int n = 0; n < ORDERS; n++) producer.send(new ProducerRecord<>(app + "-placed", n, (long) n));
        }
    }

    static KafkaStreams instance(String bootstrap, String app, String guarantee, String protocol, int number) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(app + "-placed", Consumed.with(Serdes.Integer(), Serdes.Long()))
            .groupBy((order, amount) -> "customer-" + order % CUSTOMERS, Grouped.with("by-customer", Serdes.String(), Serdes.Long()))
            .reduce(Long::sum, Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("totals")).withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(app + "-totals", Produced.with(Serdes.String(), Serdes.Long()));
        Properties config = new Properties();
        config.put("application.id", app);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", protocol);
        config.put("processing.guarantee", guarantee);
        config.put("num.stream.threads", THREADS);
        config.put("commit.interval.ms", 100);
        config.put("state.dir", Files.createTempDirectory("millstream-orders").toString());
        config.put("application.server", "localhost:" + (9500 + number));
        if (!protocol.equals("streams")) config.put("num.standby.replicas", 1);
        KafkaStreams instance = new KafkaStreams(builder.build(), config);
        instance.start();
        return instance;
    }

    static Map<String, Long> totals(String bootstrap, String app) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "group.id", app + "-auditor", "group.protocol", "consumer", "auto.offset.reset", "earliest", "isolation.level", "read_committed");
        Map<String, Long> latest = new TreeMap<>();
        long sum = LongStream.range(0, ORDERS).sum();
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(app + "-totals"));
            eventually(60, () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> latest.merge(record.key(), record.value(), Math::max));
                return latest.values().stream().mapToLong(Long::longValue).sum() >= sum;
            });
        }
        return latest;
    }

    static List<String> tasks(KafkaStreams instance, boolean active) {
        return instance.metadataForLocalThreads().stream().flatMap(t -> (active ? t.activeTasks() : t.standbyTasks()).stream()).map(t -> t.taskId().toString()).sorted().toList();
    }

    static void placement(List<KafkaStreams> instances) throws Exception {
        KafkaStreams a = instances.get(0), b = instances.get(1);
        boolean settled = eventually(60, () -> {
            List<String> active = Stream.concat(tasks(a, true).stream(), tasks(b, true).stream()).sorted().toList();
            return active.size() == 2 * PARTITIONS && new HashSet<>(active).size() == active.size()
                && tasks(a, true).size() == PARTITIONS && tasks(b, true).size() == PARTITIONS
                && stateful(tasks(a, true)).equals(tasks(b, false)) && stateful(tasks(b, true)).equals(tasks(a, false))
                && a.state() == KafkaStreams.State.RUNNING && b.state() == KafkaStreams.State.RUNNING;
        });
        expect(settled, "each task is active once, halves are equal, and standbys are on the other instance: " + tasks(a, true) + tasks(a, false) + " " + tasks(b, true) + tasks(b, false));
    }

    static List<String> stateful(List<String> tasks) {
        return tasks.stream().filter(task -> task.startsWith("1_")).toList();
    }

    static void queries(List<KafkaStreams> instances, Map<String, Long> right) throws Exception {
        for (String customer : right.keySet()) {
            boolean found = eventually(30, () -> {
                KeyQueryMetadata where = instances.get(0).queryMetadataForKey("totals", customer, new StringSerializer());
                int number = where.activeHost().port() - 9500;
                if (number < 0 || number > 1 || where.standbyHosts().size() != 1) return false;
                ReadOnlyKeyValueStore<String, Long> store = instances.get(number).store(StoreQueryParameters.fromNameAndType("totals", QueryableStoreTypes.keyValueStore()));
                return right.get(customer).equals(store.get(customer));
            });
            expect(found, "interactive query finds " + customer + " at its active host, and names one standby host");
        }
    }

    static void description(Admin admin, String app) throws Exception {
        boolean stable = eventually(30, () -> admin.describeStreamsGroups(List.of(app)).all().get().get(app).groupState().toString().equals("Stable"));
        expect(stable, "the group is described as Stable");
        var group = admin.describeStreamsGroups(List.of(app)).all().get().get(app);
        expect(group.members().size() == 2 * THREADS, "members " + group.members().size());
        expect(group.subtopologies().size() == 2, "subtopologies " + group.subtopologies().size());
        Set<String> topics = admin.listTopics().names().get();
        expect(topics.contains(app + "-by-customer-repartition") && topics.contains(app + "-totals-changelog"), "internal topics were created");
    }
}
