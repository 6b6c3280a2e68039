//! The promises of the runtime, on a state machine that is as small as they allow: a map of bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::{Called, Cell, Decision, Position, StateMachine, Unavailable, listing_order};
use crate::command::Ticket;
use crate::config::GroupConfigs;
use crate::env::{Env, Moment, SeededIds};
use crate::state_log::{EndMarker, LogEntry, LogError, Producer, RawRecord, StateLog};
use crate::testing::{Durability, MemoryLog};
use crate::timer::Timers;
use crate::topics::TopicImage;

/// Values by key, with the log end after each.
#[derive(Default)]
struct Toy {
    values: BTreeMap<u8, (u8, u64)>,
    markers: Vec<(u64, Producer, bool)>,
    parked: Vec<Ticket>,
    timers: Timers<u8>,
    fired: Vec<u8>,
    refusals: usize,
    loads: usize,
}

#[derive(Clone, Copy)]
enum Do {
    Set(u8, u8),
    Get(u8),
    /// Parks, and writes the value if there is one.
    Park(Option<u8>),
    /// Writes to key 0 and answers everything that is parked.
    Finish(u8),
    /// A record that has no encoding.
    Unencodable,
    InTransaction(Producer, u8),
    End(Producer, bool),
    Sleep(u8, u64),
    Tick,
}

/// Says which command it answers and what it shows.
#[derive(Clone, Debug, PartialEq)]
struct Shown(&'static str, u8);

impl StateMachine for Toy {
    type Command = Do;
    type Reply = Shown;
    type Record = (u8, Option<u8>);
    type Event = std::convert::Infallible;
    type Effect = ();
    type Env<'e> = Env<'e>;

    fn handle(&mut self, at: Moment, _env: &mut Env<'_>, ticket: Ticket, command: Do, out: &mut Decision<Toy>) {
        match command {
            Do::Set(key, value) => {
                out.records.push((key, Some(value)));
                out.reply(ticket, Shown("set", value));
            }
            Do::Get(key) => {
                let (value, end) = self.values.get(&key).copied().unwrap_or_default();
                out.wait_for = end;
                out.reply(ticket, Shown("get", value));
            }
            Do::Park(write) => {
                self.parked.push(ticket);
                out.records.extend(write.map(|value| (0, Some(value))));
            }
            Do::Finish(value) => {
                out.records.push((0, Some(value)));
                out.reply(ticket, Shown("finish", value));
                for ticket in self.parked.drain(..) {
                    out.reply(ticket, Shown("parked", value));
                }
            }
            Do::Unencodable => {
                out.records.push((0, None));
                out.reply(ticket, Shown("unencodable", 0));
            }
            Do::InTransaction(producer, value) => {
                out.producer = Some(producer);
                out.records.push((0, Some(value)));
                out.reply(ticket, Shown("txn", value));
            }
            Do::End(producer, commit) => {
                out.marker = Some(EndMarker { producer, commit, coordinator_epoch: 0, raises_epoch: true });
                out.reply(ticket, Shown("end", 0));
            }
            Do::Sleep(name, ms) => {
                self.timers.set(&name, at.mono_ms + ms);
                out.reply(ticket, Shown("sleep", name));
            }
            Do::Tick => {
                if let Some(name) = self.timers.pop_due(at.mono_ms) {
                    self.fired.push(name);
                    // The first one to fire silences the second.
                    self.timers.cancel(&(name + 1));
                }
                out.reply(ticket, Shown("tick", 0));
            }
        }
    }

    fn replay(&mut self, position: Position, (key, value): (u8, Option<u8>)) {
        self.values.insert(key, (value.unwrap_or(0), position.offset + 1));
    }

    fn replay_marker(&mut self, position: Position, producer: Producer, commit: bool) {
        self.markers.push((position.offset, producer, commit));
    }

    fn loaded(&mut self, _at: Moment, _env: &mut Env<'_>) {
        self.loads += 1;
    }

    fn refused(&mut self, _at: Moment, _env: &mut Env<'_>) {
        self.refusals += 1;
    }

    fn next_wakeup(&self) -> Option<u64> {
        self.timers.next()
    }

    fn wakeup() -> Do {
        Do::Tick
    }

    fn encode((key, value): &(u8, Option<u8>)) -> Result<RawRecord, String> {
        let value = value.ok_or("no encoding")?;
        Ok(RawRecord { key: Bytes::copy_from_slice(&[*key]), value: Some(Bytes::copy_from_slice(&[value])) })
    }

    fn decode(raw: &RawRecord) -> Result<Option<(u8, Option<u8>)>, String> {
        match (&raw.key[..], raw.value.as_deref()) {
            ([255], _) => Ok(None),
            ([key], Some([value])) => Ok(Some((*key, Some(*value)))),
            _ => Err("not a byte".into()),
        }
    }
}

type Late = Vec<(u8, Result<Shown, Unavailable>)>;

struct Rig {
    cell: Cell<Toy, MemoryLog>,
    now_ms: u64,
    late: Arc<Mutex<Late>>,
    topics: Arc<TopicImage>,
    config: Arc<GroupConfigs>,
    ids: SeededIds,
}

impl Rig {
    fn unloaded() -> Rig {
        Rig {
            cell: Cell::new(Toy::default(), MemoryLog::default()),
            now_ms: 0,
            late: Arc::default(),
            topics: Arc::default(),
            config: Arc::default(),
            ids: SeededIds::default(),
        }
    }

    fn new(durability: Durability) -> Rig {
        let mut rig = Rig::unloaded();
        rig.cell.log_mut().set_durability(durability);
        rig.load().unwrap();
        rig
    }

    fn load(&mut self) -> Result<(), LogError> {
        let mut env = Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total: 0 };
        self.cell.load(Toy::default(), Moment { mono_ms: self.now_ms, wall_ms: 0 }, &mut env)
    }

    /// The reply at once, or none; a late one is filed under `name`.
    fn call(&mut self, name: u8, command: Do) -> Option<Result<Shown, Unavailable>> {
        let late = Arc::clone(&self.late);
        let at = Moment { mono_ms: self.now_ms, wall_ms: 7 };
        let mut env = Env { topics: &self.topics, config: &self.config, ids: &mut self.ids, members_total: 0 };
        let Called { reply, released, .. } =
            self.cell.call(at, &mut env, command, move |reply| late.lock().unwrap().push((name, reply)));
        released.deliver();
        reply
    }

    fn make_durable(&mut self) {
        self.cell.log_mut().make_durable();
        self.cell.durable().deliver();
    }

    fn late(&mut self) -> Late {
        std::mem::take(&mut *self.late.lock().unwrap())
    }
}

const PRODUCER: Producer = Producer { id: 9, epoch: 1 };

#[test]
fn the_reply_to_a_write_waits_until_it_is_durable() {
    let mut rig = Rig::new(Durability::Manual);
    assert_eq!(rig.call(1, Do::Set(1, 5)), None);
    assert_eq!(rig.late(), []);
    rig.make_durable();
    assert_eq!(rig.late(), [(1, Ok(Shown("set", 5)))]);
}

#[test]
fn the_state_moves_before_the_log_is_durable() {
    let mut rig = Rig::new(Durability::Manual);
    rig.call(1, Do::Set(1, 5));
    assert_eq!(rig.cell.machine().values[&1], (5, 1));
}

#[test]
fn a_read_waits_for_the_last_record_of_what_it_shows() {
    let mut rig = Rig::new(Durability::Manual);
    rig.call(1, Do::Set(1, 5));
    rig.make_durable();
    rig.late();
    rig.call(2, Do::Set(2, 6));
    assert_eq!(rig.call(3, Do::Get(2)), None, "it would show what a crash undoes");
    assert_eq!(rig.call(4, Do::Get(1)), Some(Ok(Shown("get", 5))), "what it shows is durable");
    rig.make_durable();
    assert_eq!(rig.late(), [(2, Ok(Shown("set", 6))), (3, Ok(Shown("get", 6)))]);
}

#[test]
fn replies_leave_in_the_order_of_the_log() {
    let mut rig = Rig::new(Durability::Manual);
    for n in 1..=4 {
        rig.call(n, Do::Set(n, n));
    }
    rig.call(5, Do::Get(2));
    rig.make_durable();
    let order: Vec<_> = rig.late().into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, [1, 2, 5, 3, 4]);
}

#[test]
fn only_what_is_durable_by_then_is_released() {
    let mut rig = Rig::new(Durability::Manual);
    rig.call(1, Do::Set(1, 1));
    rig.cell.log_mut().make_durable();
    rig.call(2, Do::Set(2, 2));
    rig.cell.durable().deliver();
    assert_eq!(rig.late(), [(1, Ok(Shown("set", 1)))]);
}

#[test]
fn a_parked_command_is_answered_by_a_later_one_and_waits_for_its_records() {
    let mut rig = Rig::new(Durability::Manual);
    assert_eq!(rig.call(1, Do::Park(None)), None);
    rig.make_durable();
    assert_eq!(rig.late(), []);
    assert_eq!(rig.call(2, Do::Finish(8)), None);
    assert_eq!(rig.late(), [], "the record that it depends on is not durable");
    rig.make_durable();
    assert_eq!(rig.late(), [(2, Ok(Shown("finish", 8))), (1, Ok(Shown("parked", 8)))]);
    assert!(rig.cell.open.is_empty(), "nobody is left behind");
}

#[test]
fn a_released_command_is_answered_at_once_if_the_log_is_durable() {
    let mut rig = Rig::new(Durability::Immediate);
    rig.call(1, Do::Park(Some(3)));
    assert_eq!(rig.late(), []);
    assert_eq!(rig.call(2, Do::Finish(8)), Some(Ok(Shown("finish", 8))));
    assert_eq!(rig.late(), [(1, Ok(Shown("parked", 8)))]);
}

#[test]
fn a_clean_refusal_fails_the_command_and_nothing_else() {
    for error in [LogError::TooLarge, LogError::NoSpace, LogError::Refused(7)] {
        let mut rig = Rig::new(Durability::Immediate);
        rig.call(1, Do::Set(1, 1));
        rig.cell.log_mut().fail_next_append(error.clone());
        assert_eq!(rig.call(2, Do::Set(1, 2)), Some(Err(Unavailable::Refused(error))));
        assert_eq!(rig.cell.machine().refusals, 1, "the machine is told");
        assert_eq!(rig.call(3, Do::Get(1)), Some(Ok(Shown("get", 1))), "nothing of it happened");
        assert_eq!(rig.call(4, Do::Set(1, 3)), Some(Ok(Shown("set", 3))), "the shard goes on");
        assert_eq!(rig.cell.log().end(), 2);
    }
}

#[test]
fn a_clean_refusal_fails_every_reply_of_the_outcome() {
    let mut rig = Rig::new(Durability::Immediate);
    rig.call(1, Do::Park(None));
    rig.cell.log_mut().fail_next_append(LogError::TooLarge);
    let refused = Err(Unavailable::Refused(LogError::TooLarge));
    assert_eq!(rig.call(2, Do::Finish(1)), Some(refused.clone()));
    assert_eq!(rig.late(), [(1, refused)]);
    assert!(rig.cell.open.is_empty());
}

#[test]
fn a_command_that_parks_is_answered_if_its_record_is_refused() {
    let mut rig = Rig::new(Durability::Immediate);
    rig.cell.log_mut().fail_next_append(LogError::NoSpace);
    assert_eq!(rig.call(1, Do::Park(Some(1))), Some(Err(Unavailable::Refused(LogError::NoSpace))));
    assert!(rig.cell.open.is_empty());
}

#[test]
fn a_refusal_leaves_those_alone_that_wait_for_earlier_records() {
    let mut rig = Rig::new(Durability::Manual);
    rig.call(1, Do::Set(1, 1));
    rig.cell.log_mut().fail_next_append(LogError::TooLarge);
    rig.call(2, Do::Set(1, 2));
    rig.make_durable();
    assert_eq!(rig.late(), [(1, Ok(Shown("set", 1)))]);
}

#[test]
fn a_record_that_cannot_be_encoded_refuses_the_command_only() {
    let mut rig = Rig::new(Durability::Immediate);
    assert_eq!(rig.call(1, Do::Unencodable), Some(Err(Unavailable::Refused(LogError::Refused(-1)))));
    assert_eq!(rig.cell.machine().refusals, 1);
    assert_eq!(rig.call(2, Do::Set(1, 1)), Some(Ok(Shown("set", 1))));
}

#[test]
fn a_failed_log_poisons_the_shard_until_it_loads_again() {
    let mut rig = Rig::new(Durability::Manual);
    rig.call(1, Do::Park(None));
    rig.call(2, Do::Set(1, 1));
    rig.make_durable();
    rig.late();
    rig.call(3, Do::Set(1, 2));
    rig.call(4, Do::Sleep(1, 5));
    rig.cell.log_mut().fail_next_append(LogError::Failed("disk".into()));
    let gone = || Err(Unavailable::NotCoordinator);
    assert_eq!(rig.call(5, Do::Set(1, 3)), Some(gone()));
    assert_eq!(rig.late(), [(3, gone()), (1, gone())], "those that wait and those that are parked");
    assert!(rig.cell.is_poisoned());
    assert_eq!(rig.cell.next_wakeup(), None, "no timer fires");
    assert_eq!(rig.call(6, Do::Get(1)), Some(gone()));
    assert_eq!(rig.cell.machine().refusals, 0, "it is not a clean refusal");

    rig.cell.log_mut().lose_unsynced();
    rig.load().unwrap();
    assert_eq!(rig.call(7, Do::Get(1)), Some(Ok(Shown("get", 1))), "what was durable is back");
    assert_eq!(rig.cell.machine().loads, 1);
}

#[test]
fn an_append_behind_a_newer_term_poisons_the_shard() {
    let mut rig = Rig::new(Durability::Immediate);
    rig.call(1, Do::Set(1, 1));
    rig.cell.log_mut().fence();
    assert_eq!(rig.call(2, Do::Set(1, 2)), Some(Err(Unavailable::NotCoordinator)));
    assert!(rig.cell.is_poisoned());
}

#[test]
fn nothing_is_served_before_the_log_is_loaded() {
    let mut rig = Rig::unloaded();
    assert_eq!(rig.call(1, Do::Get(1)), Some(Err(Unavailable::Loading)));
    assert_eq!(rig.cell.next_wakeup(), None);
}

#[test]
fn an_entry_that_cannot_be_read_fails_the_load_and_an_unknown_type_does_not() {
    let entry = |key: &[u8]| RawRecord { key: Bytes::copy_from_slice(key), value: Some(Bytes::from_static(b"x")) };
    let mut rig = Rig::new(Durability::Immediate);
    rig.cell.log_mut().append(1, 0, 0, None, &[entry(&[255])]).unwrap();
    rig.load().unwrap();
    assert_eq!(rig.call(1, Do::Get(255)), Some(Ok(Shown("get", 0))), "skipped");

    rig.cell.log_mut().append(2, 1, 0, None, &[entry(&[1, 2])]).unwrap();
    let error = rig.load().unwrap_err();
    assert!(matches!(&error, LogError::Failed(text) if text.contains("offset 1")), "{error}");
}

#[test]
fn records_of_a_transaction_carry_their_producer_and_its_end_is_replayed() {
    let mut rig = Rig::new(Durability::Manual);
    assert_eq!(rig.call(1, Do::InTransaction(PRODUCER, 4)), None);
    assert_eq!(rig.call(2, Do::End(PRODUCER, true)), None, "the marker has to be durable as well");
    assert_eq!(rig.cell.machine().markers, [(1, PRODUCER, true)]);
    rig.make_durable();
    assert_eq!(rig.late().len(), 2);
    assert!(matches!(rig.cell.log().entries()[0], LogEntry::Record { producer: Some(PRODUCER), timestamp_ms: 7, .. }));
    assert_eq!(rig.call(3, Do::Set(1, 1)), None, "the marker took an offset of its own");
    rig.load().unwrap();
    assert_eq!(rig.cell.machine().markers, [(1, PRODUCER, true)], "loading sees the same");
    assert_eq!(rig.cell.machine().values[&1], (1, 3));
}

#[test]
fn loading_leads_to_the_state_that_the_records_led_to() {
    let mut rig = Rig::new(Durability::Immediate);
    for n in 0..20 {
        rig.call(n, Do::Set(n % 3, n));
    }
    let live = rig.cell.machine().values.clone();
    rig.load().unwrap();
    assert_eq!(rig.cell.machine().values, live);
}

#[test]
fn one_wakeup_fires_one_timer_which_may_silence_the_next() {
    let mut rig = Rig::new(Durability::Immediate);
    for (name, ms) in [(2, 20), (1, 10), (5, 20)] {
        rig.call(0, Do::Sleep(name, ms));
    }
    assert_eq!(rig.cell.next_wakeup(), Some(10));
    rig.now_ms = 50;
    rig.call(0, Do::Tick);
    assert_eq!(rig.cell.machine().fired, [1]);
    while rig.cell.next_wakeup().is_some_and(|at| at <= rig.now_ms) {
        rig.call(0, Do::Tick);
    }
    assert_eq!(rig.cell.machine().fired, [1, 5], "1 silenced 2 although both were due");
}

#[test]
fn c_r1_the_partition_of_a_key_is_that_of_java() {
    // `Math.abs(key.hashCode()) % 50`, worked out beside this code; the hash of "polygenelubricants" has no absolute value.
    let known = [
        ("", 0),
        ("a", 47),
        ("orders-app", 5),
        ("my-group", 12),
        ("console-consumer-12345", 6),
        ("größe\u{1F600}", 14),
        ("polygenelubricants", 0),
    ];
    for (key, partition) in known {
        assert_eq!(wire::partition_of(key, 50), partition, "{key}");
    }
}

#[test]
fn c_d4_ids_are_listed_in_the_order_of_kafkas_tables() {
    // Both pairs as Kafka's own tests see them.
    for (first, second) in [("grp-4", "grp-1"), ("member-2", "member-1")] {
        assert!(listing_order(first) < listing_order(second), "{first}");
    }
    assert!(listing_order("Aa") < listing_order("BB"), "the same hash");
}
