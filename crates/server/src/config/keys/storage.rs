//! Broker keys: topics and their logs. Most are what topics fall back to.

use super::super::key::{Check, Key, Kind, same, scaled};
use super::keys;

const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const HOUR_MS: i64 = 3_600_000;

keys! {
    LOG_DIRS = Key::unset("log.dirs", Kind::List).check(Check::NotEmpty).high()
        .doc("Data directory; one. Unset, log.dir.");
    LOG_DIR = Key::list("log.dir", "./millstream-data").check(Check::NotEmpty).high()
        .doc("Data directory when log.dirs is unset.");

    AUTO_CREATE_TOPICS_ENABLE = Key::boolean("auto.create.topics.enable", "true").high()
        .doc("Whether a Metadata request that allows it creates the topics that it names.");
    DELETE_TOPIC_ENABLE = Key::boolean("delete.topic.enable", "true").high()
        .doc("Whether topics may be deleted.");
    NUM_PARTITIONS = Key::int("num.partitions", "1").at_least(1)
        .doc("Partitions of topics that are created without saying how many.");
    DEFAULT_REPLICATION_FACTOR = Key::int("default.replication.factor", "1")
        .doc("Replication factor of topics that are created without saying it. One node has one replica: see replication.factor.clamp.");
    REPLICATION_FACTOR_CLAMP = Key::boolean("replication.factor.clamp", "false")
        .doc("Lower replication factors above 1 to 1, with a log line, instead of refusing them.");
    MIN_INSYNC_REPLICAS = Key::int("min.insync.replicas", "1").at_least(1).high().cluster_wide()
        .doc("Default of the topic key of this name.");
    UNCLEAN_LEADER_ELECTION_ENABLE = Key::boolean("unclean.leader.election.enable", "false").high().cluster_wide()
        .doc("Default of the topic key of this name.");
    COMPRESSION_TYPE = Key::string("compression.type", "producer").check(Check::OneOf(CODECS)).high().cluster_wide()
        .doc("Default of the topic key of this name.");
    COMPRESSION_GZIP_LEVEL = Key::int("compression.gzip.level", "-1").check(Check::BetweenOr(1, 9, -1)).cluster_wide()
        .doc("Default of the topic key of this name.");
    COMPRESSION_LZ4_LEVEL = Key::int("compression.lz4.level", "9").check(Check::Between(1, 17)).cluster_wide()
        .doc("Default of the topic key of this name.");
    COMPRESSION_ZSTD_LEVEL = Key::int("compression.zstd.level", "3").check(Check::Between(-131_072, 22)).cluster_wide()
        .doc("Default of the topic key of this name.");
    MESSAGE_MAX_BYTES = Key::int("message.max.bytes", "1048588").at_least(0).high().cluster_wide()
        .doc("Default of max.message.bytes.");
    MAX_DECOMPRESSED_MESSAGE_BYTES = Key::int("max.decompressed.message.bytes", "2147483639").check(Check::Between(1, 2_147_483_639)).cluster_wide()
        .doc("Default of the topic key of this name.");

    LOG_FLUSH_POLICY = Key::string("log.flush.policy", "always").check(Check::OneOf(&["always", "interval", "never"])).high()
        .doc("When data is synced to the disk. `always`: before it is acknowledged with acks=all; nothing acknowledged is lost. \
              `interval`: within log.flush.interval.ms (a second if unset); a failing machine loses at most that. \
              `never`: when the operating system likes, as Kafka does by default.");
    LOG_FLUSH_INTERVAL_MESSAGES = Key::long("log.flush.interval.messages", "9223372036854775807").at_least(1).high().cluster_wide()
        .doc("Default of flush.messages.");
    LOG_FLUSH_INTERVAL_MS = Key::unset("log.flush.interval.ms", Kind::Long).high().cluster_wide()
        .synonyms(&[same("log.flush.scheduler.interval.ms")])
        .doc("Default of flush.ms; looked at under log.flush.policy=interval.");
    LOG_FLUSH_SCHEDULER_INTERVAL_MS = Key::long("log.flush.scheduler.interval.ms", "9223372036854775807").high()
        .doc("Used when log.flush.interval.ms is unset.");
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = Key::int("log.flush.offset.checkpoint.interval.ms", "60000").at_least(0).high()
        .doc("How often recovery points are written.");

    LOG_CLEANUP_POLICY = Key::list("log.cleanup.policy", "delete").check(Check::OneOf(&["compact", "delete"])).cluster_wide()
        .doc("Default of cleanup.policy.");
    LOG_RETENTION_BYTES = Key::long("log.retention.bytes", "-1").high().cluster_wide()
        .doc("Default of retention.bytes.");
    LOG_RETENTION_MS = Key::unset("log.retention.ms", Kind::Long).high().cluster_wide()
        .synonyms(&[scaled("log.retention.minutes", 60_000), scaled("log.retention.hours", HOUR_MS)])
        .doc("Default of retention.ms.");
    LOG_RETENTION_MINUTES = Key::unset("log.retention.minutes", Kind::Int).high()
        .doc("Used when log.retention.ms is unset.");
    LOG_RETENTION_HOURS = Key::int("log.retention.hours", "168").high()
        .doc("Used when log.retention.ms and log.retention.minutes are unset.");
    LOG_RETENTION_CHECK_INTERVAL_MS = Key::long("log.retention.check.interval.ms", "300000").at_least(1)
        .doc("How often old segments are looked for.");
    LOG_ROLL_MS = Key::unset("log.roll.ms", Kind::Long).high().cluster_wide()
        .synonyms(&[scaled("log.roll.hours", HOUR_MS)])
        .doc("Default of segment.ms.");
    LOG_ROLL_HOURS = Key::int("log.roll.hours", "168").at_least(1).high()
        .doc("Used when log.roll.ms is unset.");
    LOG_ROLL_JITTER_MS = Key::unset("log.roll.jitter.ms", Kind::Long).high().cluster_wide()
        .synonyms(&[scaled("log.roll.jitter.hours", HOUR_MS)])
        .doc("Default of segment.jitter.ms.");
    LOG_ROLL_JITTER_HOURS = Key::int("log.roll.jitter.hours", "0").at_least(0).high()
        .doc("Used when log.roll.jitter.ms is unset.");
    LOG_SEGMENT_BYTES = Key::int("log.segment.bytes", "1073741824").at_least(1_048_576).high().cluster_wide()
        .doc("Default of segment.bytes.");
    LOG_SEGMENT_DELETE_DELAY_MS = Key::long("log.segment.delete.delay.ms", "60000").at_least(0).high().cluster_wide()
        .doc("Default of file.delete.delay.ms.");
    LOG_INDEX_INTERVAL_BYTES = Key::int("log.index.interval.bytes", "4096").at_least(0).cluster_wide()
        .doc("Default of index.interval.bytes.");
    LOG_INDEX_SIZE_MAX_BYTES = Key::int("log.index.size.max.bytes", "10485760").at_least(4).cluster_wide()
        .doc("Default of segment.index.bytes.");
    LOG_MESSAGE_TIMESTAMP_TYPE = Key::string("log.message.timestamp.type", "CreateTime").check(Check::OneOf(&["CreateTime", "LogAppendTime"])).cluster_wide()
        .doc("Default of message.timestamp.type.");
    LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = Key::long("log.message.timestamp.before.max.ms", "9223372036854775807").at_least(0).cluster_wide()
        .doc("Default of message.timestamp.before.max.ms.");
    LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = Key::long("log.message.timestamp.after.max.ms", "3600000").at_least(0).cluster_wide()
        .doc("Default of message.timestamp.after.max.ms.");
    LOG_PREALLOCATE = Key::boolean("log.preallocate", "false").cluster_wide()
        .doc("Default of preallocate.");
    LOG_LOCAL_RETENTION_BYTES = Key::long("log.local.retention.bytes", "-2").at_least(-2).cluster_wide()
        .doc("Default of local.retention.bytes.");
    LOG_LOCAL_RETENTION_MS = Key::long("log.local.retention.ms", "-2").at_least(-2).cluster_wide()
        .doc("Default of local.retention.ms.");
    LOG_REMOTE_COPY_LAG_BYTES = Key::long("log.remote.copy.lag.bytes", "-1").at_least(-1).cluster_wide()
        .doc("Default of remote.copy.lag.bytes.");
    LOG_REMOTE_COPY_LAG_MS = Key::long("log.remote.copy.lag.ms", "0").at_least(-1).cluster_wide()
        .doc("Default of remote.copy.lag.ms.");

    LOG_CLEANER_BACKOFF_MS = Key::long("log.cleaner.backoff.ms", "15000").at_least(0).cluster_wide()
        .doc("How often partitions that are due for compaction are looked for.");
    LOG_CLEANER_DEDUPE_BUFFER_SIZE = Key::long("log.cleaner.dedupe.buffer.size", "134217728")
        .doc("Memory for the key map of one compaction.");
    LOG_CLEANER_DELETE_RETENTION_MS = Key::long("log.cleaner.delete.retention.ms", "86400000").at_least(0).cluster_wide()
        .doc("Default of delete.retention.ms.");
    LOG_CLEANER_MIN_CLEANABLE_RATIO = Key::double("log.cleaner.min.cleanable.ratio", "0.5").check(Check::Between(0, 1)).cluster_wide()
        .doc("Default of min.cleanable.dirty.ratio.");
    LOG_CLEANER_MIN_COMPACTION_LAG_MS = Key::long("log.cleaner.min.compaction.lag.ms", "0").at_least(0).cluster_wide()
        .doc("Default of min.compaction.lag.ms.");
    LOG_CLEANER_MAX_COMPACTION_LAG_MS = Key::long("log.cleaner.max.compaction.lag.ms", "9223372036854775807").at_least(1).cluster_wide()
        .doc("Default of max.compaction.lag.ms.");

    PRODUCER_ID_EXPIRATION_MS = Key::int("producer.id.expiration.ms", "86400000").at_least(1).low()
        .doc("Idle time after which a partition forgets a producer.");
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = Key::int("producer.id.expiration.check.interval.ms", "600000").at_least(1).low().internal()
        .doc("Pause between two searches for producers to forget.");
}
