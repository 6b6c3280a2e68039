import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/**
 * Gives groups causes to rebalance, one for each line of its input, and prints `DONE` and the line when the client's call is back.
 *
 * Arguments: bootstrap servers. Input, words apart by spaces:
 *   topic NAME PARTITIONS | grow TOPIC PARTITIONS | delete TOPIC | group-config GROUP KEY=VALUE
 *   consume CLIENT GROUP PROTOCOL TOPIC,... [INSTANCE]   a consumer that polls on a thread of its own
 *   subscribe CLIENT TOPIC,...   from now on
 *   stop-polling CLIENT          it stays, and does not poll any more
 *   close CLIENT
 *   application CLIENT GROUP TOPIC   an instance of a stateful Kafka Streams application, with local state of its own
 *   records TOPIC COUNT          over all its partitions, by key
 */
public class Causes {
    static final Map<String, Consuming> consumers = new HashMap<>();
    static final Map<String, KafkaStreams> applications = new HashMap<>();
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        Scanner input = new Scanner(System.in);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            while (input.hasNextLine()) {
                String line = input.nextLine();
                run(admin, line.split(" "));
                System.out.println("DONE " + line);
            }
        }
        System.exit(0);
    }

    static void run(Admin admin, String[] words) throws Exception {
        switch (words[0]) {
            case "topic" -> admin.createTopics(List.of(new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1))).all().get();
            case "grow" -> admin.createPartitions(Map.of(words[1], NewPartitions.increaseTo(Integer.parseInt(words[2])))).all().get();
            case "delete" -> admin.deleteTopics(List.of(words[1])).all().get();
            case "group-config" -> {
                String[] setting = words[2].split("=");
                var set = new AlterConfigOp(new ConfigEntry(setting[0], setting[1]), AlterConfigOp.OpType.SET);
                admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, words[1]), List.of(set))).all().get();
            }
            case "consume" -> consumers.put(words[1], new Consuming(words));
            case "subscribe" -> consumers.get(words[1]).topics = List.of(words[2].split(","));
            case "stop-polling" -> consumers.get(words[1]).polls.set(false);
            case "close" -> consumers.remove(words[1]).close();
            case "application" -> applications.put(words[1], application(words));
            case "records" -> records(words[1], Integer.parseInt(words[2]));
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    static final class Consuming {
        final KafkaConsumer<byte[], byte[]> consumer;
        final AtomicBoolean polls = new AtomicBoolean(true), closing = new AtomicBoolean();
        volatile List<String> topics;
        final Thread thread = new Thread(this::run);

        Consuming(String[] words) {
            Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "client.id", words[1], "group.id", words[2],
                "group.protocol", words[3], "max.poll.interval.ms", 3_000, "enable.auto.commit", false));
            if (words.length > 5) config.put("group.instance.id", words[5]);
            topics = List.of(words[4].split(","));
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            thread.start();
        }

        private void run() {
            List<String> subscribed = List.of();
            while (!closing.get()) {
                if (!polls.get()) {
                    try {
                        Thread.sleep(20);
                    } catch (InterruptedException stopped) {
                        break;
                    }
                    continue;
                }
                if (!topics.equals(subscribed)) consumer.subscribe(subscribed = topics);
                consumer.poll(Duration.ofMillis(50));
            }
            consumer.close();
        }

        void close() throws InterruptedException {
            closing.set(true);
            thread.join();
        }
    }

    static KafkaStreams application(String[] words) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(words[3], Consumed.with(Serdes.Integer(), Serdes.ByteArray())).groupByKey().count();
        Properties config = new Properties();
        config.put("application.id", words[2]);
        config.put("client.id", words[1]);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", "streams");
        config.put("num.stream.threads", 1);
        config.put("commit.interval.ms", 100);
        config.put("statestore.cache.max.bytes", 0);
        config.put("state.dir", Files.createTempDirectory("millstream-causes").toString());
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        return streams;
    }

    static void records(String topic, int count) {
        try (var producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap, "linger.ms", 5), new IntegerSerializer(), new ByteArraySerializer())) {
            for (int n = 0; n < count; n++) producer.send(new ProducerRecord<>(topic, n, new byte[10]));
        }
    }
}
