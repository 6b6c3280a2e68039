import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.*;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.errors.UnsupportedVersionException;

import java.io.EOFException;
import java.net.*;
import java.util.*;

/**
 * Sends the same random requests to two brokers, one after the other, and compares the answers.
 * Arguments: HOST:PORT of the broker under test, HOST:PORT of the reference, first seed, histories, requests in each, [trace].
 * A history has topics, groups and producers of its own; it ends with the first answer that differs.
 */
final class Beside {
    private static final int PATIENCE_MS = 10_000;
    /** COORDINATOR_LOAD_IN_PROGRESS, CONCURRENT_TRANSACTIONS: how long they last is nobody's rule. */
    private static final Set<String> AGAIN = Set.of("14", "51");

    /** A broker, and what its own values are called here. */
    record Side(String name, Wire wire, Names names) {
        static Side of(String name, String at) {
            String[] hostAndPort = at.split(":");
            return new Side(name, new Wire(hostAndPort[0], Integer.parseInt(hostAndPort[1])), new Names());
        }
    }

    /** One request; the body has `@kind:name` where the brokers' own values belong. */
    record Move(String api, int version, ObjectNode body) {
        @Override public String toString() { return api + " " + version + " " + body; }
    }

    private final List<Side> sides;
    private final boolean trace;
    private final Map<String, int[]> versions;
    private final Map<String, Integer> sent = new TreeMap<>(), seen = new TreeMap<>();

    private Beside(List<Side> sides, boolean trace) throws Exception {
        this.sides = sides;
        this.trace = trace;
        versions = new HashMap<>(range(sides.get(0)));
        Map<String, int[]> theirs = range(sides.get(1));
        versions.keySet().retainAll(theirs.keySet());
        versions.replaceAll((api, ours) -> new int[] {Math.max(ours[0], theirs.get(api)[0]), Math.min(ours[1], theirs.get(api)[1])});
    }

    public static void main(String[] args) throws Exception {
        List<Side> sides = List.of(Side.of("ours", args[0]), Side.of("Kafka", args[1]));
        long first = Long.parseLong(args[2]), histories = Long.parseLong(args[3]);
        int length = Integer.parseInt(args[4]);
        Beside beside = new Beside(sides, List.of(args).contains("trace"));
        beside.coordinators();
        int parted = 0;
        for (long seed = first; seed < first + histories; seed++) if (!beside.history(seed, length)) parted++;
        System.out.println("requests: " + beside.sent + "\nerrors: " + beside.seen);
        System.out.println("BESIDE " + histories + " histories from " + first + ", " + parted + " parted");
        System.exit(parted == 0 ? 0 : 1);
    }

    private static Map<String, int[]> range(Side side) throws Exception {
        Map<String, int[]> range = new HashMap<>();
        for (JsonNode api : side.wire.call("ApiVersions", 3, Wire.JSON.readTree("{clientSoftwareName: 't', clientSoftwareVersion: '1'}".replace('\'', '"').replaceAll("(\\w+):", "\"$1\":"))).get("apiKeys"))
            range.put(ApiMessageType.fromApiKey((short) api.get("apiKey").asInt()).name, new int[] {api.get("minVersion").asInt(), api.get("maxVersion").asInt()});
        return range;
    }

    /** Makes the topics of the coordinators, and waits until they serve. */
    private void coordinators() throws Exception {
        for (Side side : sides) for (int type = 0; type < 2; type++) {
            ObjectNode body = Wire.JSON.createObjectNode().put("keyType", type);
            body.putArray("coordinatorKeys").add("beside");
            while (side.wire.call("FindCoordinator", 4, body).at("/coordinators/0/errorCode").asInt() != 0) Thread.sleep(100);
        }
        // The first producer id is the one that answers have in which there is none.
        for (Side side : sides) while (side.wire.call("InitProducerId", 4, Wire.JSON.createObjectNode().putNull("transactionalId")).get("errorCode").asInt() != 0) Thread.sleep(100);
    }

    /** False if the brokers differ. */
    private boolean history(long seed, int length) throws Exception {
        Moves moves = new Moves(seed, versions);
        sides.forEach(side -> side.names.forget());
        Names.Scope scope = new Names.Scope(moves.prefix());
        for (int step = 0; step < length; step++) {
            Move move = moves.next();
            List<JsonNode> answers = new ArrayList<>();
            try {
                for (Side side : sides) answers.add(side.names.plain(scope, move.api, answer(side, move)));
            } catch (UnsupportedVersionException e) {
                // This version has no place for what the move says.
                continue;
            }
            sent.merge(move.api, 1, Integer::sum);
            Names.errors(answers.get(1), seen);
            if (trace) System.out.println(step + " " + move + "\n    " + answers.get(0));
            List<String> differences = new ArrayList<>();
            Names.differences("", answers.get(0), answers.get(1), differences);
            if (!differences.isEmpty()) {
                System.out.println("seed " + seed + " step " + step + ": " + move + "\n  ours  " + answers.get(0) + "\n  Kafka " + answers.get(1));
                differences.forEach(difference -> System.out.println("  DIFFERS " + move.api + " " + difference));
                moves.cleanUp(this::quietly);
                return false;
            }
            moves.learn(move, answers.get(0));
            settle(moves, move);
        }
        moves.cleanUp(this::quietly);
        return true;
    }

    private void quietly(Move move) throws Exception {
        for (Side side : sides) answer(side, move);
        Thread.sleep(100);
    }

    private JsonNode answer(Side side, Move move) throws Exception {
        ObjectNode body = (ObjectNode) side.names.own(move.body);
        ApiMessageType api = Wire.api(TextNode.valueOf(move.api));
        for (int attempt = 0; ; attempt++) {
            try {
                Wire.Sent request = side.wire.send("main", "beside", api, (short) move.version, body);
                if (api == ApiMessageType.PRODUCE && body.get("acks").asInt() == 0) {
                    // There is no answer but the end of the connection.
                    side.wire.receive(side.wire.send("main", "beside", ApiMessageType.DESCRIBE_CLUSTER, (short) 0, Wire.JSON.createObjectNode()), PATIENCE_MS);
                    return NullNode.instance;
                }
                JsonNode answer = side.wire.receive(request, PATIENCE_MS);
                Map<String, Integer> errors = new TreeMap<>();
                Names.errors(answer, errors);
                if (attempt == 100 || Collections.disjoint(errors.keySet(), AGAIN)) return answer;
                Thread.sleep(10);
            } catch (EOFException | SocketException e) {
                side.wire.closeConn("main");
                return TextNode.valueOf("closed");
            } catch (SocketTimeoutException e) {
                side.wire.closeConn("main");
                return TextNode.valueOf("silent");
            }
        }
    }

    /** Some changes reach all parts of a broker a moment after their answer. */
    private void settle(Moves moves, Move move) throws Exception {
        switch (move.api) {
            case "CreateTopics", "DeleteTopics", "CreatePartitions", "Metadata" -> {
                if (move.api.equals("Metadata")) return;
                for (Side side : sides) {
                    JsonNode metadata = side.wire.call("Metadata", 12, moves.everything());
                    for (int i = 0; i < 100 && !moves.settled(metadata); i++) {
                        Thread.sleep(20);
                        metadata = side.wire.call("Metadata", 12, moves.everything());
                    }
                    moves.learnIds(side.names, metadata);
                    // A new partition has no leader at first.
                    for (int i = 0; i < 100 && side.wire.call("ListOffsets", 7, moves.ends()).toString().contains("\"errorCode\":6"); i++) Thread.sleep(20);
                }
                Thread.sleep(50);
            }
            case "IncrementalAlterConfigs", "AlterConfigs", "AlterClientQuotas" -> Thread.sleep(150);
            // Without acks=all the answer does not wait until readers can see the records.
            case "Produce" -> Thread.sleep(move.body.get("acks").asInt() == -1 ? 0 : 60);
            case "EndTxn", "InitProducerId" -> {
                for (Side side : sides) for (int i = 0; i < 100 && !moves.ended(side.wire.call("DescribeTransactions", 0, moves.transactions())); i++) Thread.sleep(10);
            }
            default -> { }
        }
    }
}
