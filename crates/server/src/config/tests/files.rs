//! Files as people have them.

use std::path::PathBuf;

use super::{refusal, start, started};
use crate::config::source::{self, Setting};
use crate::config::{ConfigError, Format, ServerConfig, Sources, load, load_text, properties};

/// What Kafka ships as `config/server.properties` for one combined node, without its comments.
const KAFKAS_SERVER_PROPERTIES: &str = "\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
";

#[test]
fn decision_29_an_unmodified_server_properties_of_one_kraft_node_starts() {
    let (config, findings) = start(KAFKAS_SERVER_PROPERTIES).expect("starts");
    assert_eq!(findings.unknown, []);
    assert_eq!(
        findings.inert,
        [
            "process.roles",
            "controller.quorum.bootstrap.servers",
            "inter.broker.listener.name",
            "num.network.threads",
            "num.io.threads",
            "socket.send.buffer.bytes",
            "socket.receive.buffer.bytes",
            "num.recovery.threads.per.data.dir",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
        ]
    );
    assert_eq!(config.listeners.len(), 1);
    assert_eq!((config.listeners[0].host.as_str(), config.listeners[0].port), ("", 9092));
    assert_eq!(config.listeners[0].advertised_host, "localhost");
    assert_eq!(config.data_dir, PathBuf::from("/tmp/kraft-combined-logs"));
}

#[test]
fn the_properties_of_the_reference_suites_start() {
    let reference = "\
        process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:29093\n\
        listeners=PLAINTEXT://localhost:29092,CONTROLLER://localhost:29093\n\
        advertised.listeners=PLAINTEXT://localhost:29092\ncontroller.listener.names=CONTROLLER\n\
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\nnum.partitions=4\n\
        offsets.topic.num.partitions=10\ngroup.min.session.timeout.ms=1000\n\
        group.consumer.min.session.timeout.ms=1000\ngroup.consumer.min.heartbeat.interval.ms=100\n\
        group.consumer.heartbeat.interval.ms=1000\ngroup.streams.initial.rebalance.delay.ms=0\n";
    let config = started(reference);
    assert_eq!(config.topics.num_partitions, 4);
    assert_eq!(config.offsets_topic.partitions, 10);
    assert_eq!(config.groups.consumer_heartbeat_interval_ms, Some(1000));
    assert_eq!(config.groups.streams_initial_rebalance_delay_ms, Some(0));
    assert_eq!(config.groups.streams_heartbeat_interval_ms, None);
    assert_eq!(config.listeners[0].port, 29092);
}

#[test]
fn decision_29_unknown_keys_are_a_warning_in_properties_and_refused_elsewhere() {
    let (_, findings) = start("num.partitons=4\ncompletely.else=1\n").expect("starts");
    assert_eq!(
        findings.unknown,
        [("num.partitons".to_owned(), Some("num.partitions")), ("completely.else".to_owned(), None)]
    );
    let strict = load_text(Format::Toml, vec![Setting { name: "num.partitons".into(), value: "4".into() }]);
    assert_eq!(
        strict.unwrap_err().to_string(),
        "unknown configuration key num.partitons; did you mean num.partitions?"
    );
    let set = load(&Sources { file: None, set: vec!["whatever=1".into()] });
    assert_eq!(set.unwrap_err().to_string(), "unknown configuration key whatever");
}

#[test]
fn decision_29_what_was_meant_to_be_closed_is_never_served_in_the_open() {
    let refused = [
        "ssl.keystore.location=/x",
        "ssl.client.auth=none",
        "sasl.enabled.mechanisms=PLAIN",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:admin",
        "allow.everyone.if.no.acl.found=true",
        "security.inter.broker.protocol=SSL",
        "connections.max.reauth.ms=1000",
        "create.topic.policy.class.name=Mine",
        "principal.builder.class=Mine",
        "delegation.token.secret.key=s",
        "listener.name.plaintext.sasl.jaas.config=x",
        "listener.name.clients.scram-sha-256.sasl.jaas.config=x",
        "listener.name.clients.ssl.keystore.location=x",
        "config.providers=file",
        "listeners=SSL://:9093",
        "listeners=CLIENTS://:9093\nlistener.security.protocol.map=CLIENTS:SASL_PLAINTEXT",
    ];
    for text in refused {
        assert!(matches!(start(text), Err(ConfigError::Security { .. })), "{text}");
    }
    for text in ["authorizer.class.name=", "security.inter.broker.protocol=PLAINTEXT", "connections.max.reauth.ms=0"] {
        assert!(start(text).is_ok(), "{text}");
    }
}

#[test]
fn without_any_argument_it_listens_on_localhost_and_stores_beside_itself() {
    let config = ServerConfig::default();
    let listener = &config.listeners[0];
    assert_eq!((listener.host.as_str(), listener.port), ("localhost", 9092));
    assert_eq!((listener.advertised_host.as_str(), listener.advertised_port), ("localhost", 9092));
    assert_eq!(config.data_dir, PathBuf::from("./millstream-data"));
    assert_eq!(config.node_id, 1);
    assert!(config.topics.auto_create);
    assert_eq!(config.topics.num_partitions, 1);
    assert_eq!((config.offsets_topic.partitions, config.transactions.state_topic.partitions), (16, 16));
    assert_eq!(load(&Sources::default()).expect("nothing to refuse").0.len(), 0);
}

#[test]
fn set_wins_over_the_file_and_the_last_one_wins() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("server.properties");
    std::fs::write(&file, "num.partitions=2\nnode.id=7\n").expect("written");
    let set = vec!["num.partitions=3".to_owned(), "num.partitions = 5".to_owned()];
    let (values, _) = load(&Sources { file: Some(file), set }).expect("loads");
    let config = ServerConfig::from_values(values).expect("agrees");
    assert_eq!((config.node_id, config.topics.num_partitions), (7, 5));
}

#[test]
fn toml_has_the_same_names_as_tables_or_dotted() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("millstream.toml");
    let text = "num.partitions = 3\n\"log.dir\" = \"/data\"\nlisteners = [\"A://h:1\", \"B://h:2\"]\n\
        [listener.security.protocol]\nmap = \"A:PLAINTEXT,B:PLAINTEXT\"\n\
        [log]\nretention.ms = -1\ncleaner.min.cleanable.ratio = 0.25\n[auto.create.topics]\nenable = false\n";
    std::fs::write(&file, text).expect("written");
    let (values, _) = load(&Sources { file: Some(file.clone()), set: vec![] }).expect("loads");
    let config = ServerConfig::from_values(values).expect("agrees");
    assert_eq!(config.topics.num_partitions, 3);
    assert_eq!(config.data_dir, PathBuf::from("/data"));
    assert_eq!(config.listeners.len(), 2);
    assert!(!config.topics.auto_create);
    assert_eq!(config.layers.fixed["log.retention.ms"], "-1");
    assert_eq!(config.layers.fixed["log.cleaner.min.cleanable.ratio"], "0.25");

    std::fs::write(&file, "num.partitions = 1979-05-27\n").expect("written");
    let error = load(&Sources { file: Some(file), set: vec![] }).unwrap_err().to_string();
    assert!(
        error.ends_with("num.partitions is neither a string, a number, true, false nor a list of those"),
        "{error}"
    );
}

#[test]
fn properties_are_read_as_java_reads_them() {
    let cases = [
        ("a=b", ("a", "b")),
        ("  a = b c ", ("a", "b c ")),
        ("a:b", ("a", "b")),
        ("a b", ("a", "b")),
        ("a", ("a", "")),
        ("a=\\\n   b", ("a", "b")),
        ("a=b\\\\", ("a", "b\\")),
        ("a\\=b=c", ("a=b", "c")),
        ("a=\\u0041\\tb", ("a", "A\tb")),
        ("a==b", ("a", "=b")),
        ("a=b\r\n", ("a", "b")),
    ];
    for (text, (name, value)) in cases {
        assert_eq!(properties(text), [Setting { name: name.into(), value: value.into() }], "{text:?}");
    }
    assert_eq!(properties("# a=b\n! a=b\n\n   \n"), []);
}

#[test]
fn what_is_not_a_setting_or_a_known_kind_of_file_is_refused() {
    assert!(source::assignment("novalue").is_err());
    assert!(source::assignment("=x").is_err());
    let unknown = load(&Sources { file: Some(PathBuf::from("server.yaml")), set: vec![] });
    assert_eq!(unknown.unwrap_err().to_string(), "server.yaml is neither .toml nor .properties");
    let missing = load(&Sources { file: Some(PathBuf::from("/nonexistent/server.toml")), set: vec![] });
    assert!(missing.unwrap_err().to_string().starts_with("cannot read /nonexistent/server.toml"));
}

#[test]
fn contradictions_do_not_start() {
    let cases = [
        ("node.id=1\nbroker.id=2", "node.id is 1, but broker.id is 2"),
        ("log.dirs=/a,/b", "log.dirs: one data directory is supported, not 2"),
        (
            "listeners=A://:1,A://:2\nlistener.security.protocol.map=A:PLAINTEXT",
            "Each listener must have a different name: A",
        ),
        ("listeners=FOO://:1", "No security protocol defined for listener FOO"),
        ("listeners=nonsense", "listeners: 'nonsense' is not NAME://HOST:PORT"),
        ("listeners=PLAINTEXT://:99999", "listeners: 'PLAINTEXT://:99999' is not NAME://HOST:PORT"),
        (
            "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
            "advertised.listeners: clients cannot connect to the meta-address 0.0.0.0",
        ),
        ("advertised.listeners=FOO://h:9092", "advertised.listeners: FOO is not one of the listeners"),
        ("listeners=C://:1\ncontroller.listener.names=C", "listeners: there is no listener for clients"),
        ("process.roles=controller", "process.roles=controller: this is always a broker"),
        ("group.coordinator.rebalance.protocols=consumer", "Disabling the 'classic' protocol is not supported."),
        (
            "group.coordinator.rebalance.protocols=classic,share",
            "group.coordinator.rebalance.protocols: share groups are not built",
        ),
        (
            "group.streams.session.timeout.ms=10",
            "group.streams.session.timeout.ms must be greater than or equal to group.streams.min.session.timeout.ms",
        ),
        ("admin.http.listener=nonsense", "admin.http.listener: 'nonsense' is not HOST:PORT"),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn listeners_know_ipv6_free_ports_and_hosts_that_mean_all() {
    let config = started("listeners=PLAINTEXT://[::1]:0");
    assert_eq!((config.listeners[0].host.as_str(), config.listeners[0].port), ("::1", 0));
    let config = started("listeners=PLAINTEXT://0.0.0.0:9092");
    assert_ne!(config.listeners[0].advertised_host, "0.0.0.0");
    assert!(!config.listeners[0].advertised_host.is_empty());
}
