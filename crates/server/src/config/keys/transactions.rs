//! Broker keys of the transaction coordinator (T-6).

use super::super::key::Key;
use super::keys;

keys! {
    TRANSACTIONAL_ID_EXPIRATION_MS = Key::int("transactional.id.expiration.ms", "604800000").at_least(1).high()
        .doc("Idle time after which a transactional id is forgotten.");
    MAX_TIMEOUT_MS = Key::int("transaction.max.timeout.ms", "900000").at_least(1).high()
        .doc("Longest transaction timeout that a producer may ask for.");
    ABORT_CHECK_INTERVAL_MS = Key::int("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000").at_least(1).low()
        .doc("How often transactions that are over time are looked for.");
    EXPIRE_CHECK_INTERVAL_MS = Key::int("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000").at_least(1).low()
        .doc("How often expired transactional ids are looked for.");
    PARTITION_VERIFICATION_ENABLE = Key::boolean("transaction.partition.verification.enable", "true").low()
        .doc("Whether partitions ask the coordinator before the first batch of a transaction.");
    STATE_LOG_NUM_PARTITIONS = Key::int("transaction.state.log.num.partitions", "16").at_least(1).high()
        .doc("Partitions of __transaction_state when it is created. Kafka's default is 50; fewer files let one sync serve more producers.");
    STATE_LOG_REPLICATION_FACTOR = Key::short("transaction.state.log.replication.factor", "1").at_least(1).high()
        .doc("Replication factor of __transaction_state; one node has one replica.");
    STATE_LOG_MIN_ISR = Key::int("transaction.state.log.min.isr", "1").at_least(1).high()
        .doc("min.insync.replicas of __transaction_state; never more than the one replica counts.");
    STATE_LOG_SEGMENT_BYTES = Key::int("transaction.state.log.segment.bytes", "104857600").at_least(1).high()
        .doc("Segment size of __transaction_state.");
    ADD_PARTITIONS_RETRY_BACKOFF_MS = Key::int("add.partitions.to.txn.retry.backoff.ms", "20").at_least(1).high()
        .doc("Pause before a produce request asks the transaction coordinator again (V-6).");
    ADD_PARTITIONS_RETRY_BACKOFF_MAX_MS = Key::int("add.partitions.to.txn.retry.backoff.max.ms", "100").at_least(0).high()
        .doc("Time after which it gives up (V-6).");
}
