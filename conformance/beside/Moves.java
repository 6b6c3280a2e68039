import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.utils.Utils;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;

/** The random requests of one history: mostly right, about few topics, groups and producers, so that they meet. */
final class Moves {
    private static final long SENT_AT = 1_700_000_000_000L;
    private static final String NO_TOPIC = "AAAAAAAAAAAAAAAAAAAAAA";
    private static final String[] ACTIONS = {
        "CreateTopics", "CreateTopics", "DeleteTopics", "CreatePartitions", "Metadata", "DescribeTopicPartitions", "DescribeConfigs", "DescribeConfigs", "IncrementalAlterConfigs", "IncrementalAlterConfigs",
        "AlterConfigs", "Produce", "Produce", "Produce", "Produce", "Produce", "Produce", "Produce", "Produce", "Fetch", "Fetch", "Fetch", "Fetch", "Fetch", "ListOffsets", "ListOffsets", "ListOffsets",
        "OffsetForLeaderEpoch", "DeleteRecords", "InitProducerId", "InitProducerId", "AddPartitionsToTxn", "AddPartitionsToTxn", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "TxnOffsetCommit",
        "EndTxn", "EndTxn", "EndTxn", "WriteTxnMarkers", "DescribeTransactions", "ListTransactions", "DescribeProducers", "OffsetCommit", "OffsetCommit", "OffsetFetch", "OffsetFetch", "OffsetDelete",
        "DeleteGroups", "DescribeGroups", "ListGroups", "FindCoordinator", "ElectLeaders", "AlterPartitionReassignments", "ListPartitionReassignments", "DescribeLogDirs", "DescribeClientQuotas",
        "AlterClientQuotas", "DescribeUserScramCredentials", "DescribeCluster", "ListConfigResources", "Heartbeat", "SyncGroup", "LeaveGroup", "JoinGroup", "ConsumerGroupDescribe", "StreamsGroupDescribe",
    };
    private static final String[] TOPIC_CONFIGS = {
        "retention.ms", "cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas", "compression.type", "segment.bytes", "retention.bytes", "delete.retention.ms",
        "message.timestamp.after.max.ms", "message.timestamp.before.max.ms", "segment.ms", "flush.messages", "min.cleanable.dirty.ratio", "no.such.key", "leader.replication.throttled.replicas", "segment.jitter.ms",
        "remote.storage.enable", "unclean.leader.election.enable", "index.interval.bytes", "preallocate", "file.delete.delay.ms", "max.compaction.lag.ms", "min.compaction.lag.ms", "compression.gzip.level",
    };
    private static final String[] GROUP_CONFIGS = {
        "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "streams.session.timeout.ms", "streams.num.standby.replicas", "share.session.timeout.ms", "streams.heartbeat.interval.ms", "nothing",
        "share.auto.offset.reset", "streams.initial.rebalance.delay.ms",
    };
    private static final String[] VALUES = {"-1", "0", "1", "100", "60000", "45000", "5000", "1048588", "86400000", "compact", "delete", "compact,delete", "LogAppendTime", "CreateTime", "gzip", "zstd", "producer", "true", "false", "0.5", "x", "", "latest"};

    /** A transactional or idempotent producer. */
    private static final class Producer {
        String id, producerId;
        int epoch;
        final Map<String, Integer> sequences = new HashMap<>();
    }

    private final Random random;
    private final String prefix;
    private final Map<String, int[]> versions;
    private final Map<String, String> topicIds = new TreeMap<>();
    private final Map<String, String> gone = new TreeMap<>();
    private final List<Producer> producers = new ArrayList<>();
    private final Map<String, Integer> partitions = new HashMap<>();
    private String session = null;
    private int sessionEpoch = 0;
    private Producer writing;

    Moves(long seed, Map<String, int[]> versions) {
        random = new Random(seed);
        // Brokers remember what an earlier run left.
        prefix = "b" + seed + "-" + Long.toString(System.currentTimeMillis() % 1_000_000, 36) + "-";
        this.versions = versions;
    }

    String prefix() { return prefix; }

    Beside.Move next() {
        while (true) {
            String api = topicIds.isEmpty() && chance(70) ? "CreateTopics" : of(ACTIONS);
            int[] range = versions.get(api);
            if (range == null) continue;
            int version = chance(50) ? range[1] : range[0] + random.nextInt(range[1] - range[0] + 1);
            return new Beside.Move(api, version, body(api, version));
        }
    }

    private ObjectNode body(String api, int version) {
        return switch (api) {
            case "CreateTopics" -> o("topics", some(1, 2, this::newTopic), "timeoutMs", 10_000, "validateOnly", version > 0 && chance(15));
            case "DeleteTopics" -> version < 6 ? o("topicNames", some(1, 2, this::topic), "timeoutMs", 10_000)
                : o("topics", some(1, 2, () -> chance(50) ? o("name", topic()) : chance(90) ? o("name", null, "topicId", topicId(topic())) : o("name", topic(), "topicId", topicId(topic()))), "timeoutMs", 10_000);
            case "CreatePartitions" -> o("topics", some(1, 2, () -> o("name", topic(), "count", random.nextInt(6) - 1, "assignments",
                chance(70) ? null : some(0, 2, () -> o("brokerIds", some(0, 2, this::broker))))), "timeoutMs", 10_000, "validateOnly", chance(30));
            case "Metadata" -> metadata(version);
            case "DescribeTopicPartitions" -> o("topics", some(1, 3, () -> o("name", topic())), "responsePartitionLimit", chance(50) ? 2000 : random.nextInt(4), "cursor",
                chance(75) ? null : o("topicName", topic(), "partitionIndex", random.nextInt(4) - 1));
            case "DescribeConfigs" -> o("resources", some(1, 2, this::describedResource), "includeSynonyms", version > 0 && chance(50), "includeDocumentation", false);
            case "IncrementalAlterConfigs" -> o("resources", some(1, 1, () -> { int type = of(2, 2, 2, 2, 32, 32, 4, 7); return o("resourceType", type, "resourceName", resource(type),
                "configs", chance(10) ? a(alteredKey(type, 9)) : some(1, 2, () -> alteredKey(type, of(0, 0, 0, 1, 2, 3)))); }), "validateOnly", chance(15));
            case "AlterConfigs" -> o("resources", some(1, 1, () -> o("resourceType", 2, "resourceName", topic(), "configs", some(0, 2, () -> o("name", key(2), "value", of(VALUES))))), "validateOnly", chance(30));
            case "Produce" -> produce(version);
            case "Fetch" -> fetch(version);
            case "ListOffsets" -> o("replicaId", -1, "isolationLevel", version >= 2 ? random.nextInt(2) : 0, "topics", some(1, 2, () -> o("name", topic(), "partitions",
                some(1, 2, () -> o("partitionIndex", partition(), "currentLeaderEpoch", version >= 4 ? epoch() : -1, "timestamp", of(-1, -1, -2, -2, -3, -4, -5, -6, -7, SENT_AT, SENT_AT + 3, SENT_AT + 1000, 0L))))));
            case "OffsetForLeaderEpoch" -> o("replicaId", -1, "topics", some(1, 1, () -> o("topic", topic(), "partitions", some(1, 2, () -> o("partition", partition(), "currentLeaderEpoch", epoch(), "leaderEpoch", random.nextInt(4) - 1)))));
            case "DeleteRecords" -> o("topics", some(1, 1, () -> o("name", topic(), "partitions", some(1, 1, () -> o("partitionIndex", partition(), "offset", of(-1, 0, 1, 2, 3, 5, 100, -2))))), "timeoutMs", 10_000);
            case "InitProducerId" -> initProducerId(version);
            case "AddPartitionsToTxn" -> addPartitions(version);
            case "AddOffsetsToTxn" -> { Producer p = producer(); yield o("transactionalId", idOf(p), "producerId", p.producerId, "producerEpoch", epochOf(p), "groupId", group()); }
            case "TxnOffsetCommit" -> { Producer p = producer(); yield o("transactionalId", idOf(p), "groupId", group(), "producerId", p.producerId, "producerEpoch", epochOf(p),
                "topics", some(1, 2, () -> committed(version >= 6)), "memberId", version >= 3 && chance(10) ? "m" : ""); }
            case "EndTxn" -> { Producer p = producer(); yield o("transactionalId", idOf(p), "producerId", p.producerId, "producerEpoch", epochOf(p), "committed", chance(60)); }
            case "WriteTxnMarkers" -> { Producer p = producer(); yield o("markers", some(1, 1, () -> o("producerId", p.producerId, "producerEpoch", epochOf(p), "transactionResult", chance(50), "topics",
                some(1, 1, () -> o("name", topic(), "partitionIndexes", some(1, 2, this::partition))), "coordinatorEpoch", of(0, 0, 1, -1), "transactionVersion", version >= 2 ? random.nextInt(3) : 0))); }
            case "DescribeTransactions" -> o("transactionalIds", some(1, 2, this::transactionalId));
            case "ListTransactions" -> o("stateFilters", some(0, 2, () -> of("Ongoing", "CompleteCommit", "CompleteAbort", "Empty", "Unknown")), "producerIdFilters", chance(70) ? a() : a(producer().producerId),
                "durationFilter", version >= 1 && chance(10) ? 0 : -1, "transactionalIdPattern", version >= 2 && chance(30) ? of(prefix + ".*", "[", "") : null);
            case "DescribeProducers" -> o("topics", some(1, 1, () -> o("name", topic(), "partitionIndexes", some(1, 2, this::partition))));
            case "OffsetCommit" -> o("groupId", group(), "generationIdOrMemberEpoch", version >= 1 ? of(-1, -1, -1, -1, 0, 5) : -1, "memberId", chance(90) ? "" : "m", "topics", some(1, 2, () -> committed(version >= 10)));
            case "OffsetFetch" -> offsetFetch(version);
            case "OffsetDelete" -> o("groupId", group(), "topics", some(1, 1, () -> o("name", topic(), "partitions", some(1, 2, () -> o("partitionIndex", partition())))));
            case "DeleteGroups" -> o("groupsNames", some(1, 2, this::group));
            case "DescribeGroups" -> o("groups", some(1, 2, this::group), "includeAuthorizedOperations", version >= 3 && chance(30));
            case "ConsumerGroupDescribe", "StreamsGroupDescribe" -> o("groupIds", some(1, 2, this::group), "includeAuthorizedOperations", chance(30));
            case "ListGroups" -> o("statesFilter", version >= 4 ? some(0, 2, () -> of("Stable", "Empty", "empty", "Dead", "Foo")) : a(), "typesFilter", version >= 5 ? some(0, 1, () -> of("classic", "consumer", "streams", "Foo")) : a());
            case "FindCoordinator" -> version < 4 ? o("key", group(), "keyType", version >= 1 ? of(0, 1, 1, 2, 3) : 0) : o("keyType", of(0, 1, 1, 2, 3), "coordinatorKeys", some(1, 2, this::group));
            case "ElectLeaders" -> o("electionType", version >= 1 ? random.nextInt(2) : 0, "topicPartitions", chance(20) ? null : some(1, 1, () -> o("topic", topic(), "partitions", some(1, 2, this::partition))), "timeoutMs", 10_000);
            case "AlterPartitionReassignments" -> o("timeoutMs", 10_000, "topics", some(1, 1, () -> o("name", topic(), "partitions", some(1, 2, () -> o("partitionIndex", partition(), "replicas", chance(30) ? null : some(0, 2, this::broker))))));
            case "ListPartitionReassignments" -> o("timeoutMs", 10_000, "topics", chance(30) ? null : some(1, 1, () -> o("name", topic(), "partitionIndexes", some(1, 2, this::partition))));
            case "DescribeLogDirs" -> o("topics", some(1, 2, () -> o("topic", topic(), "partitions", some(1, 2, this::partition))));
            case "DescribeClientQuotas" -> o("components", some(0, 2, () -> { int match = of(0, 0, 1, 2, 3); return o("entityType", of("user", "client-id", "ip", "x"), "matchType", match, "match", match == 0 ? quotaName() : null); }), "strict", chance(50));
            case "AlterClientQuotas" -> o("entries", some(1, 2, () -> o("entity", some(1, 2, () -> o("entityType", of("user", "client-id", "client-id", "ip", "x"), "entityName", chance(80) ? quotaName() : null)), "ops",
                some(1, 2, () -> o("key", of("producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate", "controller_mutation_rate", "x"), "value", of(1e9, 2e9, 1e8, 0.0, -1.0), "remove", chance(30))))), "validateOnly", chance(20));
            case "DescribeUserScramCredentials" -> o("users", chance(50) ? null : some(1, 2, () -> o("name", prefix + "u")));
            case "DescribeCluster" -> o("includeClusterAuthorizedOperations", chance(50), "endpointType", version >= 1 ? of(1, 1, 2, 3) : 1);
            case "ListConfigResources" -> o("resourceTypes", version >= 1 ? some(0, 2, () -> of(2, 32, 16, 4, 8, 99)) : a());
            case "Heartbeat" -> o("groupId", group(), "generationId", random.nextInt(3) - 1, "memberId", of("", "m"));
            case "SyncGroup" -> o("groupId", group(), "generationId", random.nextInt(3) - 1, "memberId", of("", "m"), "protocolType", version >= 5 ? "consumer" : null, "protocolName", version >= 5 ? "range" : null);
            case "LeaveGroup" -> version < 3 ? o("groupId", group(), "memberId", of("", "m")) : o("groupId", group(), "members", some(0, 2, () -> o("memberId", of("", "m"), "groupInstanceId", of(null, "i"))));
            case "JoinGroup" -> o("groupId", chance(20) ? "" : group(), "sessionTimeoutMs", of(1, 100_000_000, 10_000), "rebalanceTimeoutMs", version >= 1 ? 1000 : -1, "memberId", "m", "protocolType", of("", "consumer"), "protocols",
                chance(50) ? a() : a(o("name", "range", "metadata", "AAA=")));
            default -> throw new IllegalStateException(api);
        };
    }

    // --- bodies

    private ObjectNode newTopic() {
        ObjectNode topic = o("name", chance(90) ? topic() : of("", "..", "a b", "x".repeat(250)), "numPartitions", of(1, 2, 3, 3, -1, 0), "replicationFactor", of(1, 1, 1, 1, -1, 2, 0), "assignments", a(), "configs",
            some(0, 2, () -> o("name", key(2), "value", chance(5) ? null : of(VALUES))));
        if (chance(20)) topic.put("numPartitions", chance(90) ? -1 : 1).put("replicationFactor", -1).set("assignments", some(1, 2, () -> o("partitionIndex", random.nextInt(2), "brokerIds", some(0, 2, this::broker))));
        if (chance(60)) topic.set("configs", a());
        return topic;
    }

    private ObjectNode metadata(int version) {
        JsonNode topics = some(0, 3, () -> version >= 10 && chance(40) ? o("topicId", topicId(topic()), "name", null) : o("name", chance(95) ? topic() : "a b", "topicId", NO_TOPIC));
        // All topics are an empty list in version 0; to ask for none takes nobody by surprise.
        return o("topics", topics, "allowAutoTopicCreation", version < 4, "includeTopicAuthorizedOperations", version >= 8 && chance(30));
    }

    private JsonNode describedResource() {
        int type = of(2, 2, 2, 32, 4, 16, 9);
        return o("resourceType", type, "resourceName", resource(type), "configurationKeys", type == 2 && chance(50) ? null : some(1, 3, () -> key(type)));
    }

    private ObjectNode alteredKey(int type, int operation) { return o("name", key(type), "configOperation", operation, "value", chance(5) ? null : of(VALUES)); }

    private String resource(int type) {
        return switch (type) { case 2 -> topic(); case 4 -> of("1", "1", "", "2", "x"); case 32 -> group(); default -> prefix + "client"; };
    }

    private String key(int type) {
        return switch (type) { case 32 -> of(GROUP_CONFIGS); case 4 -> of("log.retention.ms", "num.partitions", "log.segment.bytes", "no.such.key", "max.connections"); default -> of(TOPIC_CONFIGS); };
    }

    private ObjectNode produce(int version) {
        writing = !producers.isEmpty() && chance(60) ? of(producers.toArray(Producer[]::new)) : null;
        boolean transactional = writing != null && writing.id != null && chance(90);
        JsonNode data = some(1, 2, () -> {
            String topic = topic();
            return o("name", topic, "topicId", topicId(topic), "partitionData", some(1, 2, () -> { int partition = partition(); return o("index", partition, "records", batch(topic, partition, transactional)); }));
        });
        return o("transactionalId", transactional ? idOf(writing) : null, "acks", of(-1, -1, -1, 1, 1, 0, 2), "timeoutMs", 10_000, "topicData", data);
    }

    private String batch(String topic, int partition, boolean transactional) {
        int count = 1 + random.nextInt(3);
        ObjectNode spec = o("values", some(count, count, () -> chance(90) ? "v" + random.nextInt(100) : null), "keys", some(count, count, () -> chance(70) ? "k" + random.nextInt(3) : null),
            "at", SENT_AT + random.nextInt(10), "compression", of("none", "none", "none", "gzip", "snappy", "lz4", "zstd"), "damage", chance(88) ? "" : of("crc", "short", "twice", "empty", "attributes", "length", "offsets"));
        if (writing != null && chance(95)) {
            int expected = writing.sequences.getOrDefault(topic + partition, 0);
            spec.put("producerId", writing.producerId).put("producerEpoch", chance(95) ? writing.epoch : Math.max(0, writing.epoch + of(1, -1))).put("sequence", chance(88) ? expected : Math.max(0, expected + of(-1, -2, 1, 5))).put("transactional", chance(97) == transactional);
        }
        return "records@" + spec;
    }

    private ObjectNode fetch(int version) {
        boolean resumed = session != null && version >= 7 && chance(40);
        boolean opens = !resumed && version >= 7 && chance(25);
        String topic = topic();
        JsonNode topics = some(resumed ? 0 : 1, 2, () -> {
            String name = topic();
            return o("topic", name, "topicId", topicId(name), "partitions", some(1, 2, () -> o("partition", partition(), "currentLeaderEpoch", version >= 9 ? epoch() : -1, "fetchOffset", of(0, 0, 0, 1, 2, 3, 4, 6, 100, -1),
                "lastFetchedEpoch", -1, "logStartOffset", -1, "partitionMaxBytes", of(1, 100, 200, 1 << 20, 1 << 20, 1 << 20, 0))));
        });
        return o("replicaId", -1, "maxWaitMs", 0, "minBytes", of(0, 1), "maxBytes", of(1 << 20, 1 << 20, 1, 150), "isolationLevel", version >= 4 ? random.nextInt(2) : 0, "sessionId", resumed ? session : 0,
            "sessionEpoch", resumed ? chance(90) ? sessionEpoch : of(0, -1, sessionEpoch + 1) : opens ? 0 : -1, "topics", topics, "forgottenTopicsData",
            resumed && chance(20) ? a(o("topic", topic, "topicId", topicId(topic), "partitions", a(0))) : a());
    }

    private ObjectNode initProducerId(int version) {
        Producer known = producers.isEmpty() || chance(60) ? null : producer();
        return o("transactionalId", chance(20) ? null : known != null && chance(80) ? known.id : chance(97) ? transactionalId() : "", "transactionTimeoutMs", chance(92) ? 600_000 : of(0, -1, 1_000_000),
            "producerId", version >= 3 && known != null && chance(50) ? known.producerId : -1, "producerEpoch", version >= 3 && known != null && chance(60) ? epochOf(known) : -1);
    }

    private ObjectNode addPartitions(int version) {
        Producer p = producer();
        JsonNode topics = some(1, 2, () -> o("name", topic(), "partitions", some(1, 2, this::partition)));
        return version < 4 ? o("v3AndBelowTransactionalId", idOf(p), "v3AndBelowProducerId", p.producerId, "v3AndBelowProducerEpoch", epochOf(p), "v3AndBelowTopics", topics)
            : o("transactions", a(o("transactionalId", idOf(p), "producerId", p.producerId, "producerEpoch", epochOf(p), "verifyOnly", chance(50), "topics", topics)));
    }

    private JsonNode committed(boolean byId) {
        String topic = topic();
        return o(byId ? "topicId" : "name", byId ? topicId(topic) : topic, "partitions", some(1, 2, () -> o("partitionIndex", partition(), "committedOffset", of(0, 1, 2, 5, -1), "committedMetadata", of("", "m", null))));
    }

    private ObjectNode offsetFetch(int version) {
        if (version < 8) return o("groupId", group(), "topics", version >= 2 && chance(30) ? null : some(1, 2, () -> o("name", topic(), "partitionIndexes", some(1, 2, this::partition))), "requireStable", version >= 7 && chance(50));
        return o("groups", some(1, 2, () -> o("groupId", group(), "topics", chance(30) ? null : some(1, 2, () -> { String topic = topic(); return o(version >= 10 ? "topicId" : "name", version >= 10 ? topicId(topic) : topic, "partitionIndexes", some(1, 2, this::partition)); }))),
            "requireStable", chance(50));
    }

    // --- what they are about

    private String topic() { return prefix + of("t", "t", "t", "u", "u", "none"); }
    private String topicId(String topic) {
        String old = chance(50) ? gone.get(topic) : null, unknown = old != null ? old : "@topic:unknown " + topic;
        return chance(95) ? topicIds.getOrDefault(topic, unknown) : unknown;
    }
    private int partition() { return of(0, 0, 0, 1, 1, 2, 9, -1); }
    private int broker() { return of(1, 1, 1, 1, 1, 2); }
    private int epoch() { return of(-1, -1, -1, 0, 0, 1); }
    private String group() { return prefix + of("g", "g", "h", "none"); }
    private String transactionalId() { return prefix + of("x", "x", "y"); }
    private String quotaName() { return prefix + of("q", "r"); }
    private Producer producer() {
        if (!producers.isEmpty() && chance(97)) return of(producers.toArray(Producer[]::new));
        Producer none = new Producer();
        none.id = transactionalId();
        none.producerId = "@producer:unknown";
        return none;
    }
    private String idOf(Producer p) { return p.id != null && chance(96) ? p.id : transactionalId(); }
    private int epochOf(Producer p) { return chance(94) ? p.epoch : Math.max(0, p.epoch + of(-1, 1)); }

    // --- what the answers teach; they are the same for both brokers

    void learn(Beside.Move move, JsonNode answer) {
        if (!answer.isObject()) return;
        switch (move.api()) {
            case "CreateTopics" -> { if (!move.body().get("validateOnly").asBoolean()) for (JsonNode topic : answer.get("topics")) if (topic.get("errorCode").asInt() == 0) topicIds.put(topic.get("name").asText(), "@topic:unknown " + topic.get("name").asText()); }
            case "DeleteTopics" -> { for (JsonNode topic : answer.get("responses")) if (topic.get("errorCode").asInt() == 0) { String id = topicIds.remove(topic.get("name").asText()); if (id != null) gone.put(topic.get("name").asText(), id); } }
            case "Metadata" -> { if (answer.has("topics")) for (JsonNode topic : answer.get("topics")) if (topic.get("errorCode").asInt() == 0 && topic.hasNonNull("topicId")) topicIds.put(topic.get("name").asText(), topic.get("topicId").asText()); }
            case "InitProducerId" -> {
                if (answer.get("errorCode").asInt() != 0) return;
                JsonNode id = move.body().get("transactionalId");
                producers.removeIf(p -> p.id != null && p.id.equals(id.asText()));
                Producer p = new Producer();
                p.id = id.isNull() ? null : id.asText();
                p.producerId = answer.get("producerId").asText();
                p.epoch = answer.get("producerEpoch").asInt();
                producers.add(p);
                if (producers.size() > 4) producers.remove(0);
            }
            case "EndTxn" -> {
                if (answer.get("errorCode").asInt() != 0 || !answer.has("producerId") || answer.get("producerId").isNumber()) return;
                for (Producer p : producers) if (p.id != null && p.id.equals(move.body().get("transactionalId").asText())) {
                    if (p.epoch != answer.get("producerEpoch").asInt() || !p.producerId.equals(answer.get("producerId").asText())) p.sequences.clear();
                    p.producerId = answer.get("producerId").asText();
                    p.epoch = answer.get("producerEpoch").asInt();
                }
            }
            case "Produce" -> {
                if (writing == null || answer.isNull() || !answer.has("responses")) return;
                Map<String, String> names = new HashMap<>();
                topicIds.forEach((name, id) -> names.put(id, name));
                for (JsonNode topic : answer.get("responses")) for (JsonNode partition : topic.get("partitionResponses")) if (partition.get("errorCode").asInt() == 0) {
                    String name = topic.hasNonNull("name") ? topic.get("name").asText() : names.get(topic.path("topicId").asText());
                    for (JsonNode sentTopic : move.body().get("topicData")) if (sentTopic.get("name").asText().equals(name)) for (JsonNode sent : sentTopic.get("partitionData")) if (sent.get("index").equals(partition.get("index"))) {
                        JsonNode spec = parse(sent.get("records").asText().substring(8));
                        if (spec.has("sequence")) writing.sequences.put(name + partition.get("index").asInt(), spec.get("sequence").asInt() + spec.get("values").size());
                    }
                }
            }
            case "Fetch" -> {
                if (!answer.has("sessionId")) return;
                boolean resumed = move.body().get("sessionId").isTextual();
                if (answer.path("errorCode").asInt() != 0) { if (resumed && chance(50)) session = null; return; }
                if (!resumed && answer.get("sessionId").isTextual()) { session = answer.get("sessionId").asText(); sessionEpoch = 1; }
                else if (resumed) { int used = move.body().get("sessionEpoch").asInt(); if (used == -1) session = null; else if (used == 0) { session = answer.get("sessionId").isTextual() ? answer.get("sessionId").asText() : null; sessionEpoch = 1; } else sessionEpoch++; }
            }
            default -> { }
        }
    }

    /** Whether a broker's metadata has come to what the answers said. */
    boolean settled(JsonNode metadata) {
        Set<String> there = new TreeSet<>();
        for (JsonNode topic : metadata.get("topics")) if (topic.get("errorCode").asInt() == 0 && topic.get("name").asText().startsWith(prefix)) there.add(topic.get("name").asText());
        return there.equals(topicIds.keySet());
    }

    /** The ids of all topics, in the order of their names. */
    void learnIds(Names names, JsonNode metadata) {
        Map<String, JsonNode> ids = new TreeMap<>();
        for (JsonNode topic : metadata.get("topics")) ids.put(topic.get("name").asText(), topic.get("topicId"));
        topicIds.replaceAll((name, known) -> ids.containsKey(name) ? names.name("topic", ids.get(name)) : known);
    }

    /** ListOffsets of every partition that there may be. */
    ObjectNode ends() {
        ArrayNode topics = a();
        for (String topic : topicIds.keySet()) topics.add(o("name", topic, "partitions", a(o("partitionIndex", 0, "timestamp", -1), o("partitionIndex", 1, "timestamp", -1), o("partitionIndex", 2, "timestamp", -1), o("partitionIndex", 3, "timestamp", -1))));
        return o("replicaId", -1, "topics", topics);
    }

    ObjectNode everything() { return o("topics", null); }

    ObjectNode transactions() { return o("transactionalIds", a(prefix + "x", prefix + "y")); }

    boolean ended(JsonNode described) {
        for (JsonNode transaction : described.get("transactionStates")) if (transaction.get("transactionState").asText().startsWith("Prepare")) return false;
        return true;
    }

    interface Send { void move(Beside.Move move) throws Exception; }

    void cleanUp(Send send) throws Exception {
        if (!topicIds.isEmpty()) send.move(new Beside.Move("DeleteTopics", 5, o("topicNames", a(topicIds.keySet().toArray()), "timeoutMs", 10_000)));
    }

    // --- record batches

    static JsonNode parse(String json) {
        try { return Wire.JSON.readTree(json); } catch (Exception e) { throw new IllegalStateException(e); }
    }

    static JsonNode records(JsonNode spec) {
        String damage = spec.get("damage").asText();
        if (damage.equals("empty")) return bytes(new byte[0]);
        byte[] batch = batch(spec);
        if (damage.equals("crc")) batch[batch.length - 1] ^= 1;
        if (damage.equals("short")) batch = Arrays.copyOf(batch, batch.length - 2);
        if (damage.equals("twice")) { byte[] both = Arrays.copyOf(batch, 2 * batch.length); System.arraycopy(batch, 0, both, batch.length, batch.length); batch = both; }
        if (damage.equals("attributes")) { batch[22] |= 0x20; sum(batch); }
        if (damage.equals("length")) { batch[11] -= 1; }
        if (damage.equals("offsets")) { batch[26] += 1; sum(batch); }
        return bytes(batch);
    }

    private static byte[] batch(JsonNode spec) {
        List<SimpleRecord> records = new ArrayList<>();
        for (int i = 0; i < spec.get("values").size(); i++) records.add(new SimpleRecord(spec.get("at").asLong() + i, utf8(spec.get("keys").path(i)), utf8(spec.get("values").get(i))));
        Compression compression = switch (spec.get("compression").asText()) { case "gzip" -> Compression.gzip().build(); case "snappy" -> Compression.snappy().build(); case "lz4" -> Compression.lz4().build(); case "zstd" -> Compression.zstd().build(); default -> Compression.NONE; };
        return Utils.toArray(MemoryRecords.withRecords((byte) 2, 0L, compression, TimestampType.CREATE_TIME, spec.path("producerId").asLong(-1), (short) spec.path("producerEpoch").asInt(-1), spec.path("sequence").asInt(-1), -1,
            spec.path("transactional").asBoolean(false), records.toArray(SimpleRecord[]::new)).buffer());
    }

    /** The checksum is right again. */
    private static void sum(byte[] batch) {
        java.util.zip.CRC32C crc = new java.util.zip.CRC32C();
        crc.update(batch, 21, batch.length - 21);
        ByteBuffer.wrap(batch).putInt(17, (int) crc.getValue());
    }

    private static byte[] utf8(JsonNode text) { return text.isNull() || text.isMissingNode() ? null : text.asText().getBytes(StandardCharsets.UTF_8); }
    private static JsonNode bytes(byte[] bytes) { return TextNode.valueOf(Base64.getEncoder().encodeToString(bytes)); }

    // --- JSON and chance

    private boolean chance(int percent) { return random.nextInt(100) < percent; }
    @SafeVarargs private <T> T of(T... values) { return values[random.nextInt(values.length)]; }
    private interface Maker { Object make(); }

    private ArrayNode some(int least, int most, Maker maker) {
        ArrayNode list = Wire.JSON.createArrayNode();
        Set<String> made = new HashSet<>();
        for (int i = least + random.nextInt(most - least + 1); i > 0; i--) {
            Object one = maker.make();
            // Twice the same topic, partition or group says nothing new, and where it does Kafka's answer depends on hashes.
            JsonNode node = Wire.JSON.valueToTree(one);
            String key = node.isObject() && node.size() > 0 ? node.elements().next().toString() : node.toString();
            if (least == most && least > 1 || made.add(key)) list.add(node);
        }
        return list;
    }

    private static ArrayNode a(Object... values) { return Wire.JSON.valueToTree(values); }

    private static ObjectNode o(Object... fields) {
        ObjectNode out = Wire.JSON.createObjectNode();
        for (int i = 0; i < fields.length; i += 2) if (fields[i] != null) out.set((String) fields[i], Wire.JSON.valueToTree(fields[i + 1]));
        return out;
    }
}
