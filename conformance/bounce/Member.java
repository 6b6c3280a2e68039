import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Static consumers of Kafka's Java client, driven by lines on standard input: see bounce.py. */
public class Member {
    static final Map<String, Member> members = new ConcurrentHashMap<>();
    volatile boolean stop;

    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            if (words[0].equals("start")) {
                Member member = new Member();
                members.put(words[1], member);
                new Thread(() -> member.consume(words[1], words[2], args)).start();
            } else {
                members.get(words[1]).stop = true;
            }
        }
        System.exit(0);
    }

    void consume(String name, String instance, String[] args) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", args[0], "group.id", args[1], "group.instance.id", instance,
            "group.protocol", args[3], "auto.offset.reset", "earliest"));
        if (args[3].equals("classic")) config.putAll(Map.of("session.timeout.ms", 30000, "heartbeat.interval.ms", 500));
        var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Duration patience = Duration.ofSeconds(20);
        try {
            consumer.subscribe(List.of(args[2]));
            String before = "";
            while (!stop) {
                consumer.poll(Duration.ofMillis(20));
                String partitions = consumer.assignment().stream().map(TopicPartition::partition).sorted().map(String::valueOf).collect(Collectors.joining(","));
                String now = consumer.groupMetadata().generationId() + " " + (partitions.isEmpty() ? "-" : partitions);
                if (!now.equals(before)) say(name + " owns " + now);
                before = now;
            }
        } catch (ApiException e) {
            say(name + " failed " + e.getClass().getSimpleName());
            patience = Duration.ofSeconds(1);
        } finally {
            consumer.close(CloseOptions.timeout(patience));
            say(name + " stopped");
        }
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }
}
