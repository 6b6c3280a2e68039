import java.time.Duration;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * Static instances of a Kafka Streams application, driven by lines on standard input: see bounce.py. Streams tells no generation; an
 * instance says {@code rebalances} whenever it is asked to join again.
 */
public class Streams {
    static final Map<String, Streams> members = new ConcurrentHashMap<>();
    volatile boolean stop;

    public static void main(String[] args) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            if (words[0].equals("start")) {
                Streams member = new Streams();
                members.put(words[1], member);
                new Thread(() -> member.count(words[1], words[2], args)).start();
            } else {
                members.get(words[1]).stop = true;
            }
        }
        System.exit(0);
    }

    void count(String name, String instance, String[] args) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String())).groupByKey().count();
        Properties config = new Properties();
        config.putAll(Map.of("bootstrap.servers", args[0], "application.id", args[1], "group.instance.id", instance, "session.timeout.ms", 30000,
            "group.protocol", args[3].equals("consumer") ? "streams" : "classic", "auto.offset.reset", "earliest",
            "state.dir", System.getProperty("java.io.tmpdir") + "/" + args[1] + "-" + name));
        if (args[3].equals("consumer")) config.remove("session.timeout.ms");
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.setStateListener((now, before) -> { if (now == KafkaStreams.State.REBALANCING) say(name + " rebalances"); });
        streams.setUncaughtExceptionHandler(error -> {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            say(name + " failed " + cause.getClass().getSimpleName());
            stop = true;
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        String before = "";
        while (!stop) {
            String tasks = streams.metadataForLocalThreads().stream().flatMap(thread -> thread.activeTasks().stream()).map(task -> task.taskId().partition())
                .sorted().map(String::valueOf).collect(Collectors.joining(","));
            String now = streams.state() == KafkaStreams.State.RUNNING ? name + " owns - " + (tasks.isEmpty() ? "-" : tasks) : "";
            if (!now.equals(before) && !now.isEmpty()) say(now);
            before = now;
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                return;
            }
        }
        streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP).withTimeout(Duration.ofSeconds(20)));
        say(name + " stopped");
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }
}
