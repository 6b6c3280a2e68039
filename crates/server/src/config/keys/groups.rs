//! Broker keys of the group coordinator (S 9.7, C 0.3). Where a default is adaptive, the one named here is what
//! `group.heartbeat.adaptive=false` brings back; any configured value, also the default, is obeyed as given.

use super::super::key::{Check, Key};
use super::keys;

keys! {
    REBALANCE_PROTOCOLS = Key::list("group.coordinator.rebalance.protocols", "classic,consumer,streams")
        .check(Check::OneOf(&["consumer", "classic", "share", "streams"]))
        .doc("Group protocols that are served; `classic` always is, `share` is not built.");
    HEARTBEAT_ADAPTIVE = Key::boolean("group.heartbeat.adaptive", "true").high()
        .doc("Whether intervals and delays that nobody configured follow what the group needs. `false` makes each Kafka's constant.");
    HEARTBEAT_CPU_SHARE = Key::double("group.heartbeat.cpu.share", "0.15").check(Check::Between(0, 1))
        .doc("Share of one core that heartbeats may cost; bounds the adaptive interval from below.");

    CLASSIC_MIN_SESSION_TIMEOUT_MS = Key::int("group.min.session.timeout.ms", "6000")
        .doc("Shortest session timeout that a member of a classic group may ask for.");
    CLASSIC_MAX_SESSION_TIMEOUT_MS = Key::int("group.max.session.timeout.ms", "1800000")
        .doc("Longest session timeout that a member of a classic group may ask for.");
    CLASSIC_INITIAL_REBALANCE_DELAY_MS = Key::int("group.initial.rebalance.delay.ms", "3000")
        .doc("Time that an empty classic group waits for more members. Unset: until joins are quiet, 3 s at the latest.");
    CLASSIC_MAX_SIZE = Key::int("group.max.size", "2147483647").at_least(1)
        .doc("Members of one classic group.");

    CONSUMER_SESSION_TIMEOUT_MS = Key::int("group.consumer.session.timeout.ms", "45000").at_least(1)
        .doc("Silence after which a member of a consumer group counts as dead.");
    CONSUMER_MIN_SESSION_TIMEOUT_MS = Key::int("group.consumer.min.session.timeout.ms", "45000").at_least(1)
        .doc("Smallest consumer.session.timeout.ms of a group.");
    CONSUMER_MAX_SESSION_TIMEOUT_MS = Key::int("group.consumer.max.session.timeout.ms", "60000").at_least(1)
        .doc("Largest consumer.session.timeout.ms of a group.");
    CONSUMER_HEARTBEAT_INTERVAL_MS = Key::int("group.consumer.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Heartbeat interval of members of consumer groups. Unset: adaptive.");
    CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = Key::int("group.consumer.min.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Smallest consumer.heartbeat.interval.ms of a group.");
    CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = Key::int("group.consumer.max.heartbeat.interval.ms", "15000").at_least(1)
        .doc("Largest consumer.heartbeat.interval.ms of a group.");
    CONSUMER_ASSIGNMENT_INTERVAL_MS = Key::int("group.consumer.assignment.interval.ms", "1000").at_least(0).cluster_wide()
        .doc("Shortest time between two assignments of a consumer group. Unset: what the assignor costs.");
    CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS = Key::int("group.consumer.min.assignment.interval.ms", "0").at_least(0)
        .doc("Smallest consumer.assignment.interval.ms of a group.");
    CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS = Key::int("group.consumer.max.assignment.interval.ms", "15000").at_least(0)
        .doc("Largest consumer.assignment.interval.ms of a group.");
    CONSUMER_MAX_SIZE = Key::int("group.consumer.max.size", "2147483647").at_least(1)
        .doc("Members of one consumer group.");
    CONSUMER_ASSIGNORS = Key::list("group.consumer.assignors", "uniform,range").check(Check::NotEmpty)
        .doc("Assignors of consumer groups, by name; the first is the default.");
    CONSUMER_MIGRATION_POLICY = Key::string("group.consumer.migration.policy", "bidirectional")
        .check(Check::OneOfAnyCase(&["DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"]))
        .doc("Whether classic groups become consumer groups when a consumer joins (upgrade), and back (downgrade).");
    CONSUMER_REGEX_REFRESH_INTERVAL_MS = Key::int("group.consumer.regex.refresh.interval.ms", "600000").at_least(10_000).internal()
        .doc("How often regular expressions of subscriptions are matched again without a change of the topics.");
    CONSUMER_ASSIGNOR_OFFLOAD_ENABLE = Key::boolean("group.consumer.assignor.offload.enable", "true").internal().cluster_wide()
        .doc("Default of consumer.assignor.offload.enable.");

    STREAMS_SESSION_TIMEOUT_MS = Key::int("group.streams.session.timeout.ms", "45000").at_least(1)
        .doc("Silence after which a member of a streams group counts as dead.");
    STREAMS_MIN_SESSION_TIMEOUT_MS = Key::int("group.streams.min.session.timeout.ms", "45000").at_least(1)
        .doc("Smallest streams.session.timeout.ms of a group.");
    STREAMS_MAX_SESSION_TIMEOUT_MS = Key::int("group.streams.max.session.timeout.ms", "60000").at_least(1)
        .doc("Largest streams.session.timeout.ms of a group.");
    STREAMS_HEARTBEAT_INTERVAL_MS = Key::int("group.streams.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Heartbeat interval of members of streams groups. Unset: adaptive.");
    STREAMS_MIN_HEARTBEAT_INTERVAL_MS = Key::int("group.streams.min.heartbeat.interval.ms", "5000").at_least(1)
        .doc("Smallest streams.heartbeat.interval.ms of a group.");
    STREAMS_MAX_HEARTBEAT_INTERVAL_MS = Key::int("group.streams.max.heartbeat.interval.ms", "15000").at_least(1)
        .doc("Largest streams.heartbeat.interval.ms of a group.");
    STREAMS_MAX_SIZE = Key::int("group.streams.max.size", "2147483647").at_least(1)
        .doc("Members of one streams group.");
    STREAMS_NUM_STANDBY_REPLICAS = Key::int("group.streams.num.standby.replicas", "0").at_least(0)
        .doc("Standby tasks per stateful task.");
    STREAMS_MAX_STANDBY_REPLICAS = Key::int("group.streams.max.standby.replicas", "2").at_least(0)
        .doc("Largest streams.num.standby.replicas of a group.");
    STREAMS_INITIAL_REBALANCE_DELAY_MS = Key::int("group.streams.initial.rebalance.delay.ms", "3000").at_least(0)
        .doc("Time that an empty streams group waits for more members. Unset: until joins are quiet, 3 s at the latest.");
    STREAMS_ASSIGNMENT_INTERVAL_MS = Key::int("group.streams.assignment.interval.ms", "1000").at_least(0).cluster_wide()
        .doc("Shortest time between two assignments of a streams group. Unset: what the assignor costs.");
    STREAMS_MIN_ASSIGNMENT_INTERVAL_MS = Key::int("group.streams.min.assignment.interval.ms", "0").at_least(0)
        .doc("Smallest streams.assignment.interval.ms of a group.");
    STREAMS_MAX_ASSIGNMENT_INTERVAL_MS = Key::int("group.streams.max.assignment.interval.ms", "15000").at_least(0)
        .doc("Largest streams.assignment.interval.ms of a group.");
    STREAMS_ASSIGNORS = Key::list("group.streams.assignors", "sticky,balanced").check(Check::NotEmpty)
        .doc("Task assignors of streams groups, by name; the first is the default.");
    STREAMS_RACK_AWARE_TAGS = Key::list("group.streams.rack.aware.assignment.tags", "").low().check(Check::Distinct)
        .doc("Client tags over whose values standby tasks are spread.");
    STREAMS_TASK_OFFSET_INTERVAL_MS = Key::int("group.streams.task.offset.interval.ms", "60000").at_least(1).internal()
        .doc("How often members report the offsets of their tasks. Unset: more often while tasks warm up.");
    STREAMS_MIN_TASK_OFFSET_INTERVAL_MS = Key::int("group.streams.min.task.offset.interval.ms", "15000").at_least(1).internal()
        .doc("Smallest streams.task.offset.interval.ms of a group.");
    STREAMS_NUM_WARMUP_REPLICAS = Key::int("group.streams.num.warmup.replicas", "2").at_least(0).internal()
        .doc("Warm-up tasks that a group may run at once.");
    STREAMS_MAX_WARMUP_REPLICAS = Key::int("group.streams.max.warmup.replicas", "20").at_least(0).internal()
        .doc("Largest streams.num.warmup.replicas of a group.");
    STREAMS_ACCEPTABLE_RECOVERY_LAG = Key::long("group.streams.acceptable.recovery.lag", "10000").at_least(0).internal()
        .doc("Lag, in records, at which a warm-up task counts as caught up.");
    STREAMS_ASSIGNOR_OFFLOAD_ENABLE = Key::boolean("group.streams.assignor.offload.enable", "true").internal().cluster_wide()
        .doc("Default of streams.assignor.offload.enable.");

    OFFSET_METADATA_MAX_BYTES = Key::int("offset.metadata.max.bytes", "4096").high()
        .doc("Characters of metadata that may come with a committed offset.");
    OFFSETS_RETENTION_MINUTES = Key::int("offsets.retention.minutes", "10080").at_least(1).high()
        .doc("How long offsets of a group without members are kept.");
    OFFSETS_RETENTION_CHECK_INTERVAL_MS = Key::long("offsets.retention.check.interval.ms", "600000").at_least(1).high()
        .doc("How often expired offsets are looked for.");
    OFFSETS_TOPIC_NUM_PARTITIONS = Key::int("offsets.topic.num.partitions", "16").at_least(1).high()
        .doc("Partitions of __consumer_offsets when it is created. Kafka's default is 50; fewer files let one sync serve more groups.");
    OFFSETS_TOPIC_REPLICATION_FACTOR = Key::short("offsets.topic.replication.factor", "1").at_least(1).high()
        .doc("Replication factor of __consumer_offsets; one node has one replica.");
    OFFSETS_TOPIC_SEGMENT_BYTES = Key::int("offsets.topic.segment.bytes", "104857600").at_least(1).high()
        .doc("Segment size of __consumer_offsets.");
}
