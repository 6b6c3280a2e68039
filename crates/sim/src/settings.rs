//! What a run is like: drawn from its seed.

use coordinator::config::BrokerConfig;
use wire::KStr;

use crate::app;
use crate::member::Timeouts;
use crate::rng::Rng;

/// Which groups there are in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    Streams,
    Consumer,
    Classic,
    /// A group of each type.
    Mixed,
    /// A group of consumers that change their protocol, one process after the other, to and fro.
    Migration,
}

impl Cast {
    pub const ALL: [(&'static str, Cast); 5] = [
        ("streams", Cast::Streams),
        ("consumer", Cast::Consumer),
        ("classic", Cast::Classic),
        ("mixed", Cast::Mixed),
        ("migration", Cast::Migration),
    ];

    /// The groups, with the protocol that their members start with.
    pub fn groups(self) -> &'static [(&'static str, Protocol)] {
        match self {
            Cast::Streams => &[(app::GROUP, Protocol::Streams)],
            Cast::Consumer => &[("readers", Protocol::Consumer)],
            Cast::Classic => &[("workers", Protocol::Classic)],
            Cast::Mixed => {
                &[(app::GROUP, Protocol::Streams), ("readers", Protocol::Consumer), ("workers", Protocol::Classic)]
            }
            Cast::Migration => &[("movers", Protocol::Classic)],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Streams,
    Consumer,
    Classic,
}

/// How bad the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weather {
    /// Requests and answers lost, each, in 1000.
    pub lost: u64,
    /// Requests and answers that arrive twice, each, in 1000.
    pub repeated: u64,
    /// One way, at most.
    pub delay_ms: u64,
}

impl Weather {
    pub const FAIR: Weather = Weather { lost: 0, repeated: 0, delay_ms: 20 };
    pub const STORM: Weather = Weather { lost: 400, repeated: 200, delay_ms: 1500 };
}

/// Times in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    pub weather: Weather,
    /// From a write until it is durable, at most.
    pub flush_ms: u64,
    /// Between two operations, at most.
    pub operation_ms: u64,
    pub request_timeout_ms: u64,
    /// Of members.
    pub rebalance_timeout_ms: i32,
    pub processes: usize,
    /// Per process, at most.
    pub threads: usize,
    /// Processes with static members, in 1000.
    pub static_members: u64,
    /// Processes that speak version 0, in 1000.
    pub old_clients: u64,
    /// Classic consumers are cooperative rather than eager.
    pub cooperative: bool,
    /// Commits of clients that are behind, in 1000 operations.
    pub strays: u64,
    pub broker: BrokerConfig,
}

/// Makes another sequence of chance of a seed.
const APART: u64 = 0x51_7cc1_b727_220a;

impl Settings {
    pub fn random(rng: &mut Rng, cast: Cast) -> Settings {
        let mut settings = Settings::of_streams(rng);
        if cast != Cast::Streams {
            settings.vary_consumers(rng);
        }
        settings
    }

    /// Drawn apart, so that a run that has none of it stays what it was when its seed was noted.
    pub fn vary_apart(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ APART);
        self.strays = rng.pick(&[0, 0, 300, 600]);
        if rng.chance(400) {
            self.broker.offsets_retention_ms = rng.pick(&[20_000, 120_000]);
            self.broker.offsets_retention_check_interval_ms = 5_000;
        }
    }

    fn vary_consumers(&mut self, rng: &mut Rng) {
        let broker = &mut self.broker;
        let session_timeout_ms = broker.streams_session_timeout_ms;
        broker.consumer_session_timeout_ms = session_timeout_ms;
        broker.consumer_min_session_timeout_ms = session_timeout_ms;
        broker.consumer_min_heartbeat_interval_ms = 100;
        broker.consumer_heartbeat_interval_ms = rng.pick(&[None, None, Some(500), Some(2_000)]);
        broker.consumer_assignment_interval_ms = rng.pick(&[None, Some(0), Some(1_000)]);
        broker.consumer_assignors = rng.pick(&[["uniform", "range"], ["range", "uniform"]]).map(KStr::from).to_vec();
        broker.classic_initial_rebalance_delay_ms = rng.pick(&[None, Some(0), Some(3_000)]);
        self.cooperative = rng.chance(500);
    }

    fn of_streams(rng: &mut Rng) -> Settings {
        let session_timeout_ms = rng.pick(&[6_000, 10_000, 45_000]);
        let broker = BrokerConfig {
            streams_session_timeout_ms: session_timeout_ms,
            streams_min_session_timeout_ms: session_timeout_ms,
            streams_heartbeat_interval_ms: rng.pick(&[None, None, Some(500), Some(2_000)]),
            streams_min_heartbeat_interval_ms: 100,
            streams_initial_rebalance_delay_ms: rng.pick(&[None, Some(0), Some(3_000)]),
            streams_assignment_interval_ms: rng.pick(&[None, Some(0), Some(1_000)]),
            streams_num_standby_replicas: rng.pick(&[0, 1, 1, 2]),
            streams_num_warmup_replicas: rng.pick(&[0, 1, 2, 5]),
            streams_acceptable_recovery_lag: rng.pick(&[100, 10_000]),
            streams_assignors: rng.pick(&[["sticky", "balanced"], ["balanced", "sticky"]]).map(KStr::from).to_vec(),
            streams_rack_aware_assignment_tags: rng
                .pick(&[&[][..], &["zone"]])
                .iter()
                .copied()
                .map(KStr::from)
                .collect(),
            ..BrokerConfig::default()
        };
        Settings {
            weather: Weather {
                lost: rng.pick(&[0, 5, 30]),
                repeated: rng.pick(&[0, 5, 30]),
                delay_ms: rng.pick(&[2, 20, 200]),
            },
            flush_ms: rng.pick(&[0, 3, 30]),
            operation_ms: rng.pick(&[1_000, 4_000, 15_000]),
            request_timeout_ms: rng.pick(&[1_000, 5_000]),
            rebalance_timeout_ms: rng.pick(&[3_000, 20_000]),
            processes: rng.between(1, 6) as usize,
            threads: rng.between(1, 3) as usize,
            static_members: rng.pick(&[0, 300, 1000]),
            old_clients: rng.pick(&[0, 200, 1000]),
            cooperative: false,
            strays: 0,
            broker,
        }
    }

    pub fn timeouts(&self) -> Timeouts {
        Timeouts {
            request_ms: self.request_timeout_ms,
            rebalance_ms: self.rebalance_timeout_ms,
            session_ms: self.broker.streams_session_timeout_ms,
        }
    }

    /// Within this time after the last fault every group has to be at rest.
    pub fn patience_ms(&self) -> u64 {
        2 * self.broker.streams_session_timeout_ms as u64 + 4 * self.rebalance_timeout_ms as u64 + 120_000
    }
}
