//! Broker keys: who the broker is, where it listens, what connections may cost.

use super::super::key::{Check, Key, Kind};
use super::keys;

keys! {
    NODE_ID = Key::int("node.id", "1").at_least(0).high()
        .doc("Id of this node. broker.id is its older name.");
    BROKER_ID = Key::int("broker.id", "-1").high()
        .doc("Older name of node.id; must agree with it if both are given.");
    BROKER_RACK = Key::unset("broker.rack", Kind::String)
        .doc("Rack of this node, told to clients.");
    CLUSTER_ID = Key::unset("cluster.id", Kind::String).high()
        .doc("Cluster id of a new data directory, 22 characters; unset, a random one. An existing directory must agree.");
    LISTENERS = Key::list("listeners", "PLAINTEXT://localhost:9092").check(Check::NotEmpty).high()
        .doc("Addresses to listen on, NAME://HOST:PORT; no host listens on all interfaces. Those of controller.listener.names are left out.");
    ADVERTISED_LISTENERS = Key::unset("advertised.listeners", Kind::List).high()
        .doc("Addresses that clients are told; unset, the listeners.");
    LISTENER_SECURITY_PROTOCOL_MAP = Key::string(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    ).low()
        .doc("Security protocol of each listener name. Listeners that are used must be PLAINTEXT.");
    CONTROLLER_LISTENER_NAMES = Key::list("controller.listener.names", "").high()
        .doc("Listeners of Kafka's quorum: there is none here, so nothing listens there.");
    ADMIN_HTTP_LISTENER = Key::string("admin.http.listener", "localhost:8090")
        .doc("Address of the admin HTTP interface, HOST:PORT; empty switches it off.");
    SOCKET_REQUEST_MAX_BYTES = Key::int("socket.request.max.bytes", "104857600").at_least(1).high()
        .doc("Largest request.");
    QUEUED_MAX_REQUEST_BYTES = Key::long("queued.max.request.bytes", "-1")
        .doc("Bytes of requests that the broker holds at once; connections wait their turn. -1 for a limit by socket.request.max.bytes.");
    CONNECTIONS_MAX_IDLE_MS = Key::long("connections.max.idle.ms", "600000")
        .doc("Connections without traffic for this long are closed; negative for never.");
    MAX_CONNECTIONS = Key::int("max.connections", "2147483647").at_least(0).cluster_wide()
        .doc("Connections to the whole broker; more have to wait.");
    MAX_CONNECTIONS_PER_IP = Key::int("max.connections.per.ip", "2147483647").at_least(0).cluster_wide()
        .doc("Connections from one address; more are closed.");
    FETCH_MAX_BYTES = Key::int("fetch.max.bytes", "57671680").at_least(1024)
        .doc("Bytes in one Fetch response, whatever the request allows.");
    FETCH_SESSION_SLOTS = Key::int("max.incremental.fetch.session.cache.slots", "1000").at_least(0)
        .doc("Fetch sessions that the broker remembers; clients beyond it send full requests.");
    MAX_REQUEST_PARTITION_SIZE_LIMIT = Key::int("max.request.partition.size.limit", "2000").at_least(1)
        .doc("Partitions in one DescribeTopicPartitions response.");
}
