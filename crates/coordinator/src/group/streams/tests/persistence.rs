//! The log tells everything: a shard that is built anew from it has the state of the one that wrote it, also when the
//! log was compacted (S 10.2). Random groups of stock clients, with lost members, topics that come and go, and restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::app::{App, GROUP, subtopology};
use crate::config::{BrokerConfig, GroupOverrides};
use crate::group::Group as AnyGroup;
use crate::group::streams::Group;
use crate::record::Record;
use crate::state_log::LogEntry;
use crate::testing::Bench;

/// A small generator, so that a seed names a run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

#[test]
fn the_state_is_what_the_log_says() {
    for seed in 0..20 {
        let mut run = Run::new(seed);
        for step in 0..80 {
            run.step();
            if step % 16 == 15 {
                run.compare(seed, step);
            }
        }
    }
}

struct Run {
    app: App,
    dice: Dice,
    joined: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut dice = Dice(seed);
        let mut broker = BrokerConfig {
            streams_num_standby_replicas: dice.below(3) as i32,
            streams_num_warmup_replicas: dice.below(3) as i32,
            streams_session_timeout_ms: 10_000,
            streams_min_session_timeout_ms: 1_000,
            ..BrokerConfig::default()
        };
        if dice.below(2) == 0 {
            broker.streams_initial_rebalance_delay_ms = Some(0);
            broker.streams_assignment_interval_ms = Some(0);
        }
        let mut app = App::new(broker, 4, dice.below(2) == 0);
        app.bench.set_topic("other", 3);
        app.topology.subtopologies.push(subtopology("1", "other", true));
        app.end_offset = 100_000;
        app.restore_per_ms = 50;
        Run { app, dice, joined: 0 }
    }

    fn step(&mut self) {
        let ids: Vec<String> = self.app.clients.keys().cloned().collect();
        let pick = self.dice.below(ids.len().max(1) as u64) as usize;
        match self.dice.below(20) {
            0..4 if ids.len() < 5 => self.join(),
            4 if !ids.is_empty() => _ = self.app.leave(&ids[pick], -1),
            5 if !ids.is_empty() && self.app.clients[&ids[pick]].instance.is_some() => self.come_back(&ids[pick]),
            // It is not heard of any more.
            6 if ids.len() > 1 => _ = self.app.clients.remove(&ids[pick]),
            7 => self.app.bench.restart(),
            8 => _ = self.app.bench.set_topic("in", 4 + self.dice.below(2) as i32),
            9 => {
                let standbys = Some(self.dice.below(3) as i32);
                let own = GroupOverrides { streams_num_standby_replicas: standbys, ..GroupOverrides::default() };
                self.app.bench.configure_group(GROUP, own);
            }
            10 => self.app.run_for(3_000),
            11 if !ids.is_empty() => {
                // An answer is lost.
                let request = self.app.request(&ids[pick]);
                self.app.send(1, request);
            }
            _ => self.app.run_for(200),
        }
    }

    fn join(&mut self) {
        self.joined += 1;
        let id = format!("m{}", self.joined);
        let mut client = self.app.client(&id, &format!("p{}", self.dice.below(3)));
        client.version = i16::from(self.dice.below(3) > 0);
        if self.dice.below(3) == 0 {
            client.instance = Some(format!("i{}", self.joined));
        }
        if self.dice.below(3) == 0 {
            client.endpoint = Some((format!("host{}", self.joined), 9));
        }
        self.app.add(client);
        self.app.beat(&id);
    }

    /// A static member restarts under another member id.
    fn come_back(&mut self, id: &str) {
        let client = self.app.clients[id].clone();
        self.app.leave(id, -2);
        self.joined += 1;
        let mut next = self.app.client(&format!("m{}", self.joined), &client.process);
        next.instance = client.instance;
        let id = next.id.clone();
        self.app.add(next);
        self.app.beat(&id);
    }

    fn compare(&mut self, seed: u64, step: u64) {
        let live = dump(&self.app.bench);
        let records: Vec<Record> = self
            .app
            .bench
            .log()
            .entries()
            .iter()
            .filter_map(|entry| match entry {
                LogEntry::Record { record, .. } => Record::decode(record).expect("a record can be read"),
                LogEntry::Marker { .. } => None,
            })
            .collect();
        assert_eq!(rebuilt(&records), live, "seed {seed}, step {step}");
        assert_eq!(rebuilt(&compacted(&records)), live, "compacted, seed {seed}, step {step}");
    }
}

fn rebuilt(records: &[Record]) -> String {
    let mut bench = Bench::new();
    bench.log_mut().seed(records);
    bench.restart();
    dump(&bench)
}

/// The last record of each key, tombstones left out.
fn compacted(records: &[Record]) -> Vec<Record> {
    let mut seen = BTreeSet::new();
    let key = |record: &Record| record.encode().expect("a record can be written").key.to_vec();
    let mut kept: Vec<Record> = records.iter().rev().filter(|record| seen.insert(key(record))).cloned().collect();
    kept.retain(|record| !record.is_tombstone());
    kept.reverse();
    kept
}

/// Hard state in words, whatever the order of its tables.
fn dump(bench: &Bench) -> String {
    match bench.shard().state().group(GROUP) {
        Some(AnyGroup::Streams(group)) => dump_group(group),
        None => "no group".to_owned(),
        Some(_) => "another group".to_owned(),
    }
}

fn dump_group(group: &Group) -> String {
    let mut text = String::new();
    let topology = group.topology.as_ref().map(|topology| (topology.epoch, &topology.subtopologies));
    let targets: BTreeMap<_, _> = group.targets.iter().collect();
    let statics: BTreeMap<_, _> = group.static_members.iter().collect();
    let holders = [&group.holders.active, &group.holders.standby, &group.holders.warmup].map(|index| index.sorted());
    writeln!(text, "{} {} {}", group.epoch, group.metadata_hash, group.validated_topology_epoch).expect("a string");
    writeln!(text, "{:?} {topology:?}", group.assignment_configs).expect("a string");
    writeln!(text, "{} {}", group.assignment_epoch, group.assignment_timestamp_ms).expect("a string");
    writeln!(text, "{:#?}\n{targets:#?}\n{statics:?}", group.members).expect("a string");
    writeln!(text, "{holders:?}\n{:?} {}", group.stable_by_epoch, group.warming).expect("a string");
    text
}
