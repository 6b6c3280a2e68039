//! What the transaction coordinator is told by configuration (T-6).

/// `transaction.version` from which on every transaction raises the producer's epoch (KIP-890).
pub const PROTOCOL_2: i16 = 2;

/// Times in milliseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// Finalized level of the feature `transaction.version`; decides how the coordinator itself aborts (T-4).
    pub transaction_version: i16,
    pub max_timeout_ms: i32,
    /// How often transactions that are over time are looked for (E-11).
    pub abort_check_interval_ms: u64,
    /// Idle time after which a transactional id is forgotten (E-13).
    pub id_expiration_ms: i64,
    pub expiry_check_interval_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            transaction_version: PROTOCOL_2,
            max_timeout_ms: 900_000,
            abort_check_interval_ms: 10_000,
            id_expiration_ms: 604_800_000,
            expiry_check_interval_ms: 3_600_000,
        }
    }
}

/// The surroundings of one command.
#[derive(Debug)]
pub struct Env<'a> {
    pub config: &'a Config,
}
