import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;

import java.util.*;
import java.util.regex.Pattern;

/** The values that a broker chooses itself (topic ids, producer ids, sessions), under names that are the same for every broker. */
final class Names {
    private static final String NO_TOPIC = "AAAAAAAAAAAAAAAAAAAAAA";
    private static final Set<String> PRODUCERS = Set.of("producerId", "ongoingTxnProducerId");
    /** What a broker is, has, or has just done. */
    private static final Set<String> ITS_OWN = Set.of("clusterId", "host", "port", "brokerEpoch", "logDir", "totalBytes", "usableBytes", "throttleTimeMs", "controllerId", "rack", "rawKey", "rawValue", "errorMessage");
    /** Later than every time that a move sends. */
    private static final long NOW = 1_750_000_000_000L;

    /** Only what belongs to one history is compared. */
    record Scope(String prefix) {
        private static final Pattern OTHERS = Pattern.compile("b\\d+-.*|__.*");

        boolean hides(JsonNode entry) {
            for (String field : List.of("name", "groupId", "transactionalId", "topicName", "topic", "resourceName"))
                if (entry.hasNonNull(field)) return !entry.get(field).asText().startsWith(prefix) && OTHERS.matcher(entry.get(field).asText()).matches();
            return false;
        }
    }

    private final Map<String, String> toName = new HashMap<>();
    private final Map<String, JsonNode> toValue = new HashMap<>();
    private final Map<String, Integer> counts = new HashMap<>();

    void forget() {
        toName.clear();
        toValue.clear();
        counts.clear();
    }

    String name(String kind, JsonNode value) {
        return toName.computeIfAbsent(kind + value.asText(), k -> {
            String name = "@" + kind + ":" + counts.merge(kind, 1, Integer::sum);
            toValue.put(name, value);
            return name;
        });
    }

    /** A request with this broker's own values. A name that stands for nothing here becomes a value that nobody has. */
    JsonNode own(JsonNode node) {
        if (node.isTextual() && node.asText().startsWith("@")) {
            JsonNode value = toValue.get(node.asText());
            if (value != null) return value;
            value = node.asText().startsWith("@topic") ? TextNode.valueOf(new org.apache.kafka.common.Uuid(1, node.asText().hashCode()).toString()) : IntNode.valueOf(987_654);
            toName.put((node.asText().startsWith("@topic") ? "topic" : "producer") + value.asText(), node.asText());
            return value;
        }
        if (node.isTextual() && node.asText().startsWith("records@")) return Moves.records(own(Moves.parse(node.asText().substring(8))));
        if (node.isObject()) {
            ObjectNode out = Wire.JSON.createObjectNode();
            node.fields().forEachRemaining(field -> out.set(field.getKey(), own(field.getValue())));
            return out;
        }
        if (node.isArray()) {
            ArrayNode out = Wire.JSON.createArrayNode();
            node.forEach(element -> out.add(own(element)));
            return out;
        }
        return node;
    }

    /** An answer without what differs by nature; lists in one order, since most of them come out of hash maps. */
    JsonNode plain(Scope scope, String api, JsonNode node) {
        if (node.isObject()) {
            ObjectNode out = Wire.JSON.createObjectNode();
            node.fields().forEachRemaining(field -> {
                JsonNode value = plain(scope, api, field.getKey(), field.getValue());
                if (value != null) out.set(field.getKey(), value);
            });
            return out;
        }
        if (!node.isArray()) return node;
        List<JsonNode> elements = new ArrayList<>();
        for (JsonNode element : node) if (!scope.hides(element)) elements.add(plain(scope, api, element));
        if (api.equals("Fetch")) merge(elements);
        elements.sort(Comparator.comparing(JsonNode::toString));
        return Wire.JSON.createArrayNode().addAll(elements);
    }

    /** A fetch session may name a topic more than once. */
    private static void merge(List<JsonNode> topics) {
        Map<String, JsonNode> first = new HashMap<>();
        topics.removeIf(topic -> {
            if (!topic.has("partitions")) return false;
            JsonNode before = first.putIfAbsent(topic.path("topicId").asText() + topic.path("topic").asText(), topic);
            if (before == null) return false;
            List<JsonNode> all = new ArrayList<>();
            before.get("partitions").forEach(all::add);
            topic.get("partitions").forEach(all::add);
            all.sort(Comparator.comparing(JsonNode::toString));
            ((ArrayNode) before.get("partitions")).removeAll().addAll(all);
            return true;
        });
    }

    private JsonNode plain(Scope scope, String api, String field, JsonNode value) {
        if (ITS_OWN.contains(field)) return null;
        if (field.equals("brokers") || field.equals("nodeEndpoints")) return null;
        if (field.equals("topicId")) return value.asText().equals(NO_TOPIC) ? value : TextNode.valueOf(name("topic", value));
        if (PRODUCERS.contains(field)) return value.asLong() <= 0 ? value : TextNode.valueOf(name("producer", value));
        if (field.equals("sessionId") && value.asInt() != 0) return TextNode.valueOf(name("session", value));
        if (value.isNumber() && value.asLong() > NOW && value.asLong() < Long.MAX_VALUE / 2) return TextNode.valueOf("now");
        return plain(scope, api, value);
    }

    /** Counts the error codes of an answer. */
    static void errors(JsonNode node, Map<String, Integer> into) {
        node.fields().forEachRemaining(field -> {
            if (field.getKey().endsWith("rrorCode") && field.getValue().isNumber()) into.merge(field.getValue().asText(), 1, Integer::sum);
        });
        node.forEach(child -> errors(child, into));
    }

    /** Paths with both values. */
    static void differences(String path, JsonNode ours, JsonNode theirs, List<String> into) {
        if (ours.equals(theirs)) return;
        if (ours.isObject() && theirs.isObject()) {
            Set<String> fields = new TreeSet<>();
            ours.fieldNames().forEachRemaining(fields::add);
            theirs.fieldNames().forEachRemaining(fields::add);
            for (String field : fields) differences(path + "/" + field, ours.path(field), theirs.path(field), into);
        } else if (ours.isArray() && theirs.isArray() && ours.size() == theirs.size()) {
            for (int i = 0; i < ours.size(); i++) differences(path, ours.get(i), theirs.get(i), into);
        } else into.add(path + ": " + ours + " | " + theirs);
    }
}
