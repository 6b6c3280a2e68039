//! Keys of group resources (type 32, S 9.6, end of C 0.3). Their bounds depend on the broker's settings and are checked by
//! `coordinator::config`; this table holds what can be said without them.

use super::super::key::{Check, Key, Kind, same};
use super::keys;

keys! {
    CONSUMER_ASSIGNMENT_INTERVAL_MS = Key::int("consumer.assignment.interval.ms", "1000").group().at_least(0)
        .synonyms(&[same("group.consumer.assignment.interval.ms")])
        .doc("Shortest time between two assignments of the consumer group.");
    CONSUMER_ASSIGNOR_OFFLOAD_ENABLE = Key::boolean("consumer.assignor.offload.enable", "true").group().internal()
        .synonyms(&[same("group.consumer.assignor.offload.enable")])
        .doc("Stored only: large groups are always assigned aside.");
    CONSUMER_HEARTBEAT_INTERVAL_MS = Key::int("consumer.heartbeat.interval.ms", "5000").group().at_least(1)
        .synonyms(&[same("group.consumer.heartbeat.interval.ms")])
        .doc("Heartbeat interval of the consumer group's members. Set to any value, it switches the adaptive interval off.");
    CONSUMER_SESSION_TIMEOUT_MS = Key::int("consumer.session.timeout.ms", "45000").group().at_least(1)
        .synonyms(&[same("group.consumer.session.timeout.ms")])
        .doc("Silence after which a member of the consumer group counts as dead.");
    DLQ_COPY_RECORD_ENABLE = Key::boolean("errors.deadletterqueue.copy.record.enable", "false").group()
        .doc("Stored only: there are no share groups here.");
    DLQ_TOPIC_NAME = Key::string("errors.deadletterqueue.topic.name", "").group()
        .doc("Stored only: there are no share groups here.");
    SHARE_ASSIGNMENT_INTERVAL_MS = Key::int("share.assignment.interval.ms", "1000").group().check(Check::Between(0, 15000))
        .synonyms(&[same("group.share.assignment.interval.ms")])
        .doc("Stored only: there are no share groups here.");
    SHARE_ASSIGNOR_OFFLOAD_ENABLE = Key::boolean("share.assignor.offload.enable", "true").group().internal()
        .synonyms(&[same("group.share.assignor.offload.enable")])
        .doc("Stored only: there are no share groups here.");
    SHARE_AUTO_OFFSET_RESET = Key::string("share.auto.offset.reset", "latest").group().check(Check::OffsetReset)
        .doc("Stored only: there are no share groups here.");
    SHARE_DELIVERY_COUNT_LIMIT = Key::int("share.delivery.count.limit", "5").group().check(Check::Between(2, 10))
        .synonyms(&[same("group.share.delivery.count.limit")])
        .doc("Stored only: there are no share groups here.");
    SHARE_HEARTBEAT_INTERVAL_MS = Key::int("share.heartbeat.interval.ms", "5000").group().check(Check::Between(5000, 15000))
        .synonyms(&[same("group.share.heartbeat.interval.ms")])
        .doc("Stored only: there are no share groups here.");
    SHARE_ISOLATION_LEVEL = Key::string("share.isolation.level", "read_uncommitted").group()
        .check(Check::OneOf(&["read_committed", "read_uncommitted"]))
        .doc("Stored only: there are no share groups here.");
    SHARE_PARTITION_MAX_RECORD_LOCKS = Key::int("share.partition.max.record.locks", "2000").group().check(Check::Between(100, 4000))
        .synonyms(&[same("group.share.partition.max.record.locks")])
        .doc("Stored only: there are no share groups here.");
    SHARE_RECORD_LOCK_DURATION_MS = Key::int("share.record.lock.duration.ms", "30000").group().check(Check::Between(15000, 60000))
        .synonyms(&[same("group.share.record.lock.duration.ms")])
        .doc("Stored only: there are no share groups here.");
    SHARE_RENEW_ACKNOWLEDGE_ENABLE = Key::boolean("share.renew.acknowledge.enable", "true").group()
        .doc("Stored only: there are no share groups here.");
    SHARE_SESSION_TIMEOUT_MS = Key::int("share.session.timeout.ms", "45000").group().check(Check::Between(45000, 60000))
        .synonyms(&[same("group.share.session.timeout.ms")])
        .doc("Stored only: there are no share groups here.");
    STREAMS_ACCEPTABLE_RECOVERY_LAG = Key::long("streams.acceptable.recovery.lag", "10000").group().at_least(0).internal()
        .synonyms(&[same("group.streams.acceptable.recovery.lag")])
        .doc("Lag, in records, at which a warm-up task counts as caught up.");
    STREAMS_ASSIGNMENT_INTERVAL_MS = Key::int("streams.assignment.interval.ms", "1000").group().at_least(0)
        .synonyms(&[same("group.streams.assignment.interval.ms")])
        .doc("Shortest time between two assignments of the streams group.");
    STREAMS_ASSIGNOR_NAME = Key::unset("streams.assignor.name", Kind::String).group()
        .doc("Task assignor of the group: one of group.streams.assignors; unset, the first of them.");
    STREAMS_ASSIGNOR_OFFLOAD_ENABLE = Key::boolean("streams.assignor.offload.enable", "true").group().internal()
        .synonyms(&[same("group.streams.assignor.offload.enable")])
        .doc("Stored only: large groups are always assigned aside.");
    STREAMS_HEARTBEAT_INTERVAL_MS = Key::int("streams.heartbeat.interval.ms", "5000").group().at_least(1)
        .synonyms(&[same("group.streams.heartbeat.interval.ms")])
        .doc("Heartbeat interval of the streams group's members. Set to any value, it switches the adaptive interval off.");
    STREAMS_INITIAL_REBALANCE_DELAY_MS = Key::int("streams.initial.rebalance.delay.ms", "3000").group().at_least(0)
        .synonyms(&[same("group.streams.initial.rebalance.delay.ms")])
        .doc("Time that a new or empty streams group waits for more members before its first assignment.");
    STREAMS_NUM_STANDBY_REPLICAS = Key::int("streams.num.standby.replicas", "0").group().at_least(0)
        .synonyms(&[same("group.streams.num.standby.replicas")])
        .doc("Standby tasks per stateful task.");
    STREAMS_NUM_WARMUP_REPLICAS = Key::int("streams.num.warmup.replicas", "2").group().at_least(0).internal()
        .synonyms(&[same("group.streams.num.warmup.replicas")])
        .doc("Warm-up tasks that the group may run at once; 0 moves tasks without a warm-up.");
    STREAMS_RACK_AWARE_TAGS = Key::list("streams.rack.aware.assignment.tags", "").group().low().check(Check::Distinct)
        .synonyms(&[same("group.streams.rack.aware.assignment.tags")])
        .doc("Client tags over whose values the standby tasks are spread.");
    STREAMS_SESSION_TIMEOUT_MS = Key::int("streams.session.timeout.ms", "45000").group().at_least(1)
        .synonyms(&[same("group.streams.session.timeout.ms")])
        .doc("Silence after which a member of the streams group counts as dead.");
    STREAMS_TASK_OFFSET_INTERVAL_MS = Key::int("streams.task.offset.interval.ms", "60000").group().at_least(1).internal()
        .synonyms(&[same("group.streams.task.offset.interval.ms")])
        .doc("How often members report the offsets of their tasks.");
}
