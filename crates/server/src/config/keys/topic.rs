//! Keys of topics. Kafka 4.4 has these 37 (and a hidden one for tests); all are accepted and shown, and those that mean
//! nothing on one machine say so.

use super::super::key::{Check, Key, Kind, same, scaled};
use super::keys;

const CODECS: &[&str] = &["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"];
const HOUR_MS: i64 = 3_600_000;

keys! {
    CLEANUP_POLICY = Key::list("cleanup.policy", "delete").topic().check(Check::OneOf(&["compact", "delete"]))
        .synonyms(&[same("log.cleanup.policy")])
        .doc("What happens to old data: `delete` removes whole segments by age and size, `compact` keeps the last record of each key; both may be given.");
    COMPRESSION_TYPE = Key::string("compression.type", "producer").topic().check(Check::OneOf(CODECS))
        .synonyms(&[same("compression.type")])
        .doc("Codec in which batches are stored; `producer` stores them as they were sent.");
    COMPRESSION_GZIP_LEVEL = Key::int("compression.gzip.level", "-1").topic().check(Check::BetweenOr(1, 9, -1))
        .synonyms(&[same("compression.gzip.level")])
        .doc("Level when the broker compresses with gzip.");
    COMPRESSION_LZ4_LEVEL = Key::int("compression.lz4.level", "9").topic().check(Check::Between(1, 17))
        .synonyms(&[same("compression.lz4.level")])
        .doc("Level when the broker compresses with lz4.");
    COMPRESSION_ZSTD_LEVEL = Key::int("compression.zstd.level", "3").topic().check(Check::Between(-131_072, 22))
        .synonyms(&[same("compression.zstd.level")])
        .doc("Level when the broker compresses with zstd.");
    DELETE_RETENTION_MS = Key::long("delete.retention.ms", "86400000").topic().at_least(0)
        .synonyms(&[same("log.cleaner.delete.retention.ms")])
        .doc("How long compaction keeps tombstones, so that readers from the start see them.");
    DLQ_GROUP_ENABLE = Key::boolean("errors.deadletterqueue.group.enable", "false").topic()
        .doc("Whether share groups may use the topic as a dead letter queue. Stored only: there are no share groups here.");
    FILE_DELETE_DELAY_MS = Key::long("file.delete.delay.ms", "60000").topic().at_least(0)
        .synonyms(&[same("log.segment.delete.delay.ms")])
        .doc("Time between the moment a file leaves the log and its removal from the disk.");
    FLUSH_MESSAGES = Key::long("flush.messages", "9223372036854775807").topic().at_least(1)
        .synonyms(&[same("log.flush.interval.messages")])
        .doc("Stored only: see log.flush.policy, which by default syncs every batch.");
    FLUSH_MS = Key::long("flush.ms", "9223372036854775807").topic().at_least(0)
        .synonyms(&[same("log.flush.interval.ms"), same("log.flush.scheduler.interval.ms")])
        .doc("Longest time until data is synced under log.flush.policy=interval; the other policies do not look at it.");
    FOLLOWER_THROTTLED = Key::list("follower.replication.throttled.replicas", "").topic().check(Check::Replicas)
        .doc("Stored only: there are no followers on one node.");
    INDEX_INTERVAL_BYTES = Key::int("index.interval.bytes", "4096").topic().at_least(0)
        .synonyms(&[same("log.index.interval.bytes")])
        .doc("Bytes of log between two entries of the offset index.");
    INTERNAL_SEGMENT_BYTES = Key::unset("internal.segment.bytes", Kind::Int).topic().internal()
        .doc("Segment size for tests, without the lower limit of segment.bytes.");
    LEADER_THROTTLED = Key::list("leader.replication.throttled.replicas", "").topic().check(Check::Replicas)
        .doc("Stored only: nothing is replicated on one node.");
    LOCAL_RETENTION_BYTES = Key::long("local.retention.bytes", "-2").topic().at_least(-2)
        .synonyms(&[same("log.local.retention.bytes")])
        .doc("Stored only: there is no tiered storage here.");
    LOCAL_RETENTION_MS = Key::long("local.retention.ms", "-2").topic().at_least(-2)
        .synonyms(&[same("log.local.retention.ms")])
        .doc("Stored only: there is no tiered storage here.");
    MAX_COMPACTION_LAG_MS = Key::long("max.compaction.lag.ms", "9223372036854775807").topic().at_least(1)
        .synonyms(&[same("log.cleaner.max.compaction.lag.ms")])
        .doc("A record older than this makes its partition due for compaction.");
    MAX_DECOMPRESSED_MESSAGE_BYTES = Key::int("max.decompressed.message.bytes", "2147483639").topic().check(Check::Between(1, 2_147_483_639))
        .synonyms(&[same("max.decompressed.message.bytes")])
        .doc("Largest size of one record after decompression.");
    MAX_MESSAGE_BYTES = Key::int("max.message.bytes", "1048588").topic().at_least(0)
        .synonyms(&[same("message.max.bytes")])
        .doc("Largest record batch, compressed as it came.");
    TIMESTAMP_AFTER_MAX_MS = Key::long("message.timestamp.after.max.ms", "3600000").topic().at_least(0)
        .synonyms(&[same("log.message.timestamp.after.max.ms")])
        .doc("How far a record's own timestamp may lie ahead of the broker's clock.");
    TIMESTAMP_BEFORE_MAX_MS = Key::long("message.timestamp.before.max.ms", "9223372036854775807").topic().at_least(0)
        .synonyms(&[same("log.message.timestamp.before.max.ms")])
        .doc("How far a record's own timestamp may lie behind the broker's clock.");
    TIMESTAMP_TYPE = Key::string("message.timestamp.type", "CreateTime").topic().check(Check::OneOf(&["CreateTime", "LogAppendTime"]))
        .synonyms(&[same("log.message.timestamp.type")])
        .doc("Whether records keep the producer's timestamp or get the broker's.");
    MIN_CLEANABLE_DIRTY_RATIO = Key::double("min.cleanable.dirty.ratio", "0.5").topic().check(Check::Between(0, 1))
        .synonyms(&[same("log.cleaner.min.cleanable.ratio")])
        .doc("Share of not yet compacted bytes from which a partition is compacted.");
    MIN_COMPACTION_LAG_MS = Key::long("min.compaction.lag.ms", "0").topic().at_least(0)
        .synonyms(&[same("log.cleaner.min.compaction.lag.ms")])
        .doc("Records younger than this are not compacted.");
    MIN_INSYNC_REPLICAS = Key::int("min.insync.replicas", "1").topic().at_least(1)
        .synonyms(&[same("min.insync.replicas")])
        .doc("Replicas that must have a write before acks=all is answered; never more than there are, so 1 here.");
    PREALLOCATE = Key::boolean("preallocate", "false").topic()
        .synonyms(&[same("log.preallocate")])
        .doc("Stored only: segment files grow as they are written.");
    REMOTE_COPY_LAG_BYTES = Key::long("remote.copy.lag.bytes", "-1").topic().at_least(-1)
        .synonyms(&[same("log.remote.copy.lag.bytes")])
        .doc("Stored only: there is no tiered storage here.");
    REMOTE_COPY_LAG_MS = Key::long("remote.copy.lag.ms", "0").topic().at_least(-1)
        .synonyms(&[same("log.remote.copy.lag.ms")])
        .doc("Stored only: there is no tiered storage here.");
    REMOTE_LOG_COPY_DISABLE = Key::boolean("remote.log.copy.disable", "false").topic()
        .doc("Stored only: there is no tiered storage here.");
    REMOTE_LOG_DELETE_ON_DISABLE = Key::boolean("remote.log.delete.on.disable", "false").topic()
        .doc("Stored only: there is no tiered storage here.");
    REMOTE_STORAGE_ENABLE = Key::boolean("remote.storage.enable", "false").topic()
        .doc("Tiered storage. There is none here, so `true` is refused.");
    RETENTION_BYTES = Key::long("retention.bytes", "-1").topic()
        .synonyms(&[same("log.retention.bytes")])
        .doc("Size per partition above which the oldest segments are deleted; -1 for no limit.");
    RETENTION_MS = Key::long("retention.ms", "604800000").topic().at_least(-1)
        .synonyms(&[same("log.retention.ms"), scaled("log.retention.minutes", 60_000), scaled("log.retention.hours", HOUR_MS)])
        .doc("Age above which segments are deleted; -1 for no limit.");
    SEGMENT_BYTES = Key::int("segment.bytes", "1073741824").topic().at_least(1_048_576)
        .synonyms(&[same("log.segment.bytes")])
        .doc("Size at which a new segment file is begun.");
    SEGMENT_INDEX_BYTES = Key::int("segment.index.bytes", "10485760").topic().at_least(4)
        .synonyms(&[same("log.index.size.max.bytes")])
        .doc("Largest size of a segment's offset index; a full index begins a new segment.");
    SEGMENT_JITTER_MS = Key::long("segment.jitter.ms", "0").topic().at_least(0)
        .synonyms(&[same("log.roll.jitter.ms"), scaled("log.roll.jitter.hours", HOUR_MS)])
        .doc("Largest random time taken off segment.ms, so that not all partitions begin segments together.");
    SEGMENT_MS = Key::long("segment.ms", "604800000").topic().at_least(1)
        .synonyms(&[same("log.roll.ms"), scaled("log.roll.hours", HOUR_MS)])
        .doc("Age at which a new segment file is begun, full or not.");
    UNCLEAN_LEADER_ELECTION_ENABLE = Key::boolean("unclean.leader.election.enable", "false").topic()
        .synonyms(&[same("unclean.leader.election.enable")])
        .doc("Stored only: there is one replica, and it leads.");
}
