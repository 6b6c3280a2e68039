import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.*;
import org.apache.kafka.streams.kstream.*;

/**
 * Two applications that nothing should excite: one whose static member is restarted within its session, and one with an endpoint
 * whose source topic does not exist.
 *
 * Arguments: bootstrap servers. Prints PASS or FAIL as its last line.
 */
public class Settled {
    static final List<String> problems = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            missingSource(bootstrap);
            staticRestart(bootstrap, admin);
        }
        System.out.println(problems.isEmpty() ? "PASS" : "FAIL " + problems);
        System.exit(problems.isEmpty() ? 0 : 1);
    }

    /** KIP-1071: a static member that was away for less than its session comes back to the same tasks, at the same epoch. */
    static void staticRestart(String bootstrap, Admin admin) throws Exception {
        String app = "settled-" + UUID.randomUUID();
        admin.createTopics(List.of(new NewTopic(app + "-in", 4, (short) 1))).all().get();
        KafkaStreams a = counting(bootstrap, app, "a"), b = counting(bootstrap, app, "b");
        StreamsGroupDescription before = await(admin, app, d -> d.groupState() == org.apache.kafka.common.GroupState.STABLE
            && d.members().size() == 2 && d.members().stream().noneMatch(m -> m.assignment().activeTasks().isEmpty()));
        b.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP).withTimeout(Duration.ofSeconds(30)));
        b = counting(bootstrap, app, "b");
        String old = memberId(before, "b");
        StreamsGroupDescription after = await(admin, app, d -> !memberId(d, "b").equals(old) && tasks(d).equals(tasks(before)));
        if (after.groupEpoch() != before.groupEpoch()) problems.add("the group epoch went from " + before.groupEpoch() + " to " + after.groupEpoch());
        if (!tasks(after).equals(tasks(before))) problems.add("tasks were " + tasks(before) + " and are " + tasks(after));
        b.close(Duration.ofSeconds(30));
        a.close(Duration.ofSeconds(30));
    }

    static String memberId(StreamsGroupDescription group, String instance) {
        return group.members().stream().filter(m -> m.instanceId().map(id -> id.startsWith(instance)).orElse(false))
            .map(StreamsGroupMemberDescription::memberId).findFirst().orElse("");
    }

    static Map<String, Set<String>> tasks(StreamsGroupDescription group) {
        return group.members().stream().collect(Collectors.toMap(m -> m.instanceId().orElse("?"), m -> m.assignment().activeTasks().stream()
            .flatMap(t -> t.partitions().stream().map(p -> t.subtopologyId() + "_" + p)).collect(Collectors.toCollection(TreeSet::new))));
    }

    static StreamsGroupDescription await(Admin admin, String group, java.util.function.Predicate<StreamsGroupDescription> wanted) throws Exception {
        long limit = System.nanoTime() + TimeUnit.SECONDS.toNanos(40);
        while (true) {
            StreamsGroupDescription now = null;
            try {
                now = admin.describeStreamsGroups(List.of(group)).all().get().get(group);
                if (wanted.test(now)) return now;
            } catch (ExecutionException notYet) {
                if (!(notYet.getCause() instanceof org.apache.kafka.common.errors.GroupIdNotFoundException)) throw notYet;
            }
            if (System.nanoTime() > limit) throw new IllegalStateException("the group does not settle: " + now);
            Thread.sleep(50);
        }
    }

    static KafkaStreams counting(String bootstrap, String app, String instance) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(app + "-in", Consumed.with(Serdes.String(), Serdes.String())).groupByKey().count();
        Properties config = config(bootstrap, app);
        config.put("group.instance.id", instance);
        // The process id is in the state directory: the same process comes back.
        config.put("state.dir", System.getProperty("java.io.tmpdir") + "/" + app + "-" + instance);
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        return streams;
    }

    /** The application hears of the topic that is missing, in words, after the time that its client gives it. */
    static void missingSource(String bootstrap) throws Exception {
        String app = "unsettled-" + UUID.randomUUID();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(app + "-absent", Consumed.with(Serdes.String(), Serdes.String())).groupByKey().count();
        Properties config = config(bootstrap, app);
        config.put("application.server", "localhost:7070");
        config.put("state.dir", Files.createTempDirectory("millstream-settled").toString());
        BlockingQueue<Throwable> failures = new LinkedBlockingQueue<>();
        long start = System.nanoTime();
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.setUncaughtExceptionHandler(failure -> {
                failures.add(failure);
                return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            Throwable failure = failures.poll(60, TimeUnit.SECONDS);
            long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
            Throwable cause = failure;
            while (cause != null && !(cause instanceof MissingSourceTopicException)) cause = cause.getCause();
            if (cause == null) problems.add("the application with a missing source got " + failure + " after " + seconds + " s");
            // Twice the full heartbeat interval of 5 s, whatever shorter one is in use elsewhere.
            else if (seconds < 9) problems.add("the application was given " + seconds + " s only");
        }
    }

    static Properties config(String bootstrap, String app) {
        Properties config = new Properties();
        config.put("application.id", app);
        config.put("bootstrap.servers", bootstrap);
        config.put("group.protocol", "streams");
        config.put("num.stream.threads", 1);
        return config;
    }
}
