//! Fetch sessions (F-11 to F-16): what a client has asked for before, so that it need only say what changed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wire::messages::fetch_request::{FetchPartition, FetchRequest};
use wire::{ErrorCode, KStr, Uuid};

use super::FETCH_NAMES_UNTIL;
use crate::ids::fill_random;

/// A session that nobody used for so long may make room for another (F-15).
const EVICTABLE_AFTER: Duration = Duration::from_secs(120);

/// Epochs of a fetch request: a new session, and no session.
const INITIAL_EPOCH: i32 = 0;
const FINAL_EPOCH: i32 = -1;

/// A partition as a session knows it: by name up to version 12, by id from 13 on; the other one is empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FetchKey {
    pub topic: KStr,
    pub topic_id: Uuid,
    pub partition: i32,
}

/// What the client wants of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub current_leader_epoch: i32,
    pub fetch_offset: i64,
    pub last_fetched_epoch: i32,
    pub max_bytes: i32,
}

/// What the client was last told of a partition, -1 for nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub high_watermark: i64,
    pub log_start_offset: i64,
}

const NOTHING_SEEN: Seen = Seen { high_watermark: -1, log_start_offset: -1 };

#[derive(Clone, Debug)]
pub(crate) struct PlannedPartition {
    pub key: FetchKey,
    /// The topic: for a key with an id, the one that had it when the client first asked. `None`: no topic ever had it (F-16).
    pub name: Option<KStr>,
    pub planned: Planned,
    pub seen: Seen,
}

/// One request, resolved: what to read, in this order, and how to answer.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    /// 0: without a session.
    pub session_id: i32,
    /// Answer only what changed (F-13).
    pub incremental: bool,
    pub partitions: Vec<PlannedPartition>,
}

/// The sessions of this broker.
#[derive(Debug)]
pub(crate) struct FetchSessions {
    slots: usize,
    sessions: Mutex<HashMap<i32, Session>>,
}

#[derive(Debug)]
struct Session {
    /// Of the next request.
    epoch: i32,
    by_id: bool,
    used_at: Instant,
    partitions: IndexMap<FetchKey, Cached>,
}

#[derive(Debug)]
struct Cached {
    name: Option<KStr>,
    planned: Planned,
    seen: Seen,
}

impl FetchSessions {
    /// `slots`: `max.incremental.fetch.session.cache.slots`.
    pub fn new(slots: usize) -> Self {
        FetchSessions { slots, sessions: Mutex::default() }
    }

    /// Resolves a request; `names` says which topic has an id. The error is one for the top level of the answer.
    pub fn plan(
        &self,
        request: &FetchRequest,
        version: i16,
        now: Instant,
        names: impl Fn(&Uuid) -> Option<KStr>,
    ) -> Result<FetchPlan, ErrorCode> {
        let by_id = version > FETCH_NAMES_UNTIL;
        let mut plan = match request.session_epoch {
            FINAL_EPOCH => {
                self.lock().remove(&request.session_id);
                FetchPlan { session_id: 0, incremental: false, partitions: full(request, by_id) }
            }
            INITIAL_EPOCH => self.open(request, by_id, now, &names),
            _ => self.continue_session(request, by_id, now, &names)?,
        };
        if by_id && plan.session_id == 0 {
            plan.partitions.iter_mut().for_each(|partition| partition.name = names(&partition.key.topic_id));
        }
        Ok(plan)
    }

    /// Notes what the client has been told, and moves partitions with records to the end, so that each has its turn (F-6).
    pub fn answered(&self, session_id: i32, told: impl IntoIterator<Item = (FetchKey, Seen, bool)>) {
        let mut sessions = self.lock();
        let Some(session) = sessions.get_mut(&session_id) else { return };
        for (key, seen, had_records) in told {
            let Some((index, _, state)) = session.partitions.get_full_mut(&key) else { continue };
            state.seen = seen;
            if had_records {
                let last = session.partitions.len() - 1;
                session.partitions.move_index(index, last);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i32, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A full request that asks for a session; it gets none if there is no room (id 0).
    fn open(
        &self,
        request: &FetchRequest,
        by_id: bool,
        now: Instant,
        names: impl Fn(&Uuid) -> Option<KStr>,
    ) -> FetchPlan {
        let mut partitions = full(request, by_id);
        let mut sessions = self.lock();
        sessions.remove(&request.session_id);
        if !make_room(&mut sessions, self.slots, now) {
            return FetchPlan { session_id: 0, incremental: false, partitions };
        }
        let session_id = fresh_id(&sessions);
        if by_id {
            partitions.iter_mut().for_each(|partition| partition.name = names(&partition.key.topic_id));
        }
        let cached = partitions.iter().map(cached).collect();
        sessions.insert(session_id, Session { epoch: 1, by_id, used_at: now, partitions: cached });
        FetchPlan { session_id, incremental: false, partitions }
    }

    fn continue_session(
        &self,
        request: &FetchRequest,
        by_id: bool,
        now: Instant,
        names: impl Fn(&Uuid) -> Option<KStr>,
    ) -> Result<FetchPlan, ErrorCode> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(&request.session_id).ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if session.epoch != request.session_epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.by_id != by_id {
            return Err(ErrorCode::FetchSessionTopicIdError);
        }
        session.epoch = if session.epoch == i32::MAX { 1 } else { session.epoch + 1 };
        session.used_at = now;
        for partition in full(request, by_id) {
            match session.partitions.get_mut(&partition.key) {
                Some(state) => state.planned = partition.planned,
                None => {
                    let (key, state) = cached(&partition);
                    session.partitions.insert(key, state);
                }
            }
        }
        for forgotten in &request.forgotten_topics_data {
            for &partition in &forgotten.partitions {
                let key = key(&forgotten.topic, &forgotten.topic_id, partition, by_id);
                session.partitions.shift_remove(&key);
            }
        }
        if session.partitions.is_empty() {
            // F-14.
            sessions.remove(&request.session_id);
            return Ok(FetchPlan { session_id: 0, incremental: true, partitions: Vec::new() });
        }
        let partitions = session.partitions.iter_mut().map(|(key, state)| {
            if by_id && state.name.is_none() {
                state.name = names(&key.topic_id);
            }
            PlannedPartition { key: key.clone(), name: state.name.clone(), planned: state.planned, seen: state.seen }
        });
        Ok(FetchPlan { session_id: request.session_id, incremental: true, partitions: partitions.collect() })
    }
}

/// True if there is a free slot, perhaps now.
fn make_room(sessions: &mut HashMap<i32, Session>, slots: usize, now: Instant) -> bool {
    if sessions.len() < slots {
        return true;
    }
    let oldest = sessions.iter().min_by_key(|(_, session)| session.used_at).map(|(&id, session)| (id, session.used_at));
    match oldest {
        Some((id, used_at)) if now.saturating_duration_since(used_at) >= EVICTABLE_AFTER => {
            sessions.remove(&id);
            true
        }
        _ => false,
    }
}

/// Positive and unused.
fn fresh_id(sessions: &HashMap<i32, Session>) -> i32 {
    loop {
        let mut bytes = [0; 4];
        fill_random(&mut bytes);
        let id = i32::from_be_bytes(bytes) & i32::MAX;
        if id != 0 && !sessions.contains_key(&id) {
            return id;
        }
    }
}

fn full(request: &FetchRequest, by_id: bool) -> Vec<PlannedPartition> {
    let mut partitions = Vec::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let key = key(&topic.topic, &topic.topic_id, partition.partition, by_id);
            let name = (!by_id).then(|| key.topic.clone());
            partitions.push(PlannedPartition { key, name, planned: planned(partition), seen: NOTHING_SEEN });
        }
    }
    partitions
}

fn planned(partition: &FetchPartition) -> Planned {
    Planned {
        current_leader_epoch: partition.current_leader_epoch,
        fetch_offset: partition.fetch_offset,
        last_fetched_epoch: partition.last_fetched_epoch,
        max_bytes: partition.partition_max_bytes,
    }
}

fn key(topic: &KStr, topic_id: &Uuid, partition: i32, by_id: bool) -> FetchKey {
    if by_id {
        FetchKey { topic: KStr::default(), topic_id: *topic_id, partition }
    } else {
        FetchKey { topic: topic.clone(), topic_id: Uuid::default(), partition }
    }
}

/// Out of the frame of the request, which a session would else keep alive.
fn cached(partition: &PlannedPartition) -> (FetchKey, Cached) {
    let key = FetchKey { topic: partition.key.topic.to_owned_detached(), ..partition.key.clone() };
    let name = partition.name.as_ref().map(KStr::to_owned_detached);
    (key, Cached { name, planned: partition.planned, seen: partition.seen })
}

#[cfg(test)]
mod tests {
    use wire::messages::fetch_request::{FetchTopic, ForgottenTopic};

    use super::*;

    fn request(session_id: i32, session_epoch: i32, partitions: &[(i32, i64)]) -> FetchRequest {
        let partitions = partitions.iter().map(|&(partition, fetch_offset)| FetchPartition {
            partition,
            fetch_offset,
            ..Default::default()
        });
        let topic = FetchTopic { topic: "t".into(), partitions: partitions.collect(), ..Default::default() };
        let topics = if topic.partitions.is_empty() { Vec::new() } else { vec![topic] };
        FetchRequest { session_id, session_epoch, topics, ..Default::default() }
    }

    fn no_ids(_: &Uuid) -> Option<KStr> {
        None
    }

    fn offsets(plan: &FetchPlan) -> Vec<(i32, i64)> {
        plan.partitions.iter().map(|p| (p.key.partition, p.planned.fetch_offset)).collect()
    }

    #[test]
    fn f_11_a_session_is_opened_continued_and_closed() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let first = sessions.plan(&request(0, 0, &[(0, 5), (1, 6)]), 12, now, no_ids).unwrap();
        assert!(first.session_id > 0 && !first.incremental);
        let id = first.session_id;
        let second = sessions.plan(&request(id, 1, &[(1, 9), (2, 0)]), 12, now, no_ids).unwrap();
        assert!(second.incremental);
        assert_eq!(offsets(&second), [(0, 5), (1, 9), (2, 0)]);
        let closed = sessions.plan(&request(id, -1, &[]), 12, now, no_ids).unwrap();
        assert_eq!(closed.session_id, 0);
        assert_eq!(
            sessions.plan(&request(id, 2, &[]), 12, now, no_ids).unwrap_err(),
            ErrorCode::FetchSessionIdNotFound
        );
    }

    #[test]
    fn f_16_a_session_keeps_the_name_that_a_topic_id_had() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let names = |plan: &FetchPlan| plan.partitions.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        let known = |_: &Uuid| Some(KStr::from_static("t"));
        let first = sessions.plan(&request(0, 0, &[(0, 0)]), 13, now, no_ids).unwrap();
        assert_eq!(names(&first), [None]);
        let id = first.session_id;
        let second = sessions.plan(&request(id, 1, &[]), 13, now, known).unwrap();
        assert_eq!(names(&second), [Some("t".into())]);
        // Also when the client says anew what it wants of the partition.
        let third = sessions.plan(&request(id, 2, &[(0, 5)]), 13, now, no_ids).unwrap();
        assert_eq!(names(&third), [Some("t".into())]);
        assert_eq!(names(&sessions.plan(&request(0, -1, &[(0, 0)]), 13, now, known).unwrap()), [Some("t".into())]);
    }

    #[test]
    fn f_12_errors_do_not_advance_the_session() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let id = sessions.plan(&request(0, 0, &[(0, 0)]), 12, now, no_ids).unwrap().session_id;
        assert_eq!(
            sessions.plan(&request(id, 2, &[]), 12, now, no_ids).unwrap_err(),
            ErrorCode::InvalidFetchSessionEpoch
        );
        assert_eq!(
            sessions.plan(&request(id, 1, &[]), 13, now, no_ids).unwrap_err(),
            ErrorCode::FetchSessionTopicIdError
        );
        assert!(sessions.plan(&request(id, 1, &[]), 12, now, no_ids).is_ok());
    }

    #[test]
    fn f_11_the_epoch_wraps_to_1() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let id = sessions.plan(&request(0, 0, &[(0, 0)]), 12, now, no_ids).unwrap().session_id;
        sessions.lock().get_mut(&id).unwrap().epoch = i32::MAX;
        sessions.plan(&request(id, i32::MAX, &[]), 12, now, no_ids).unwrap();
        assert!(sessions.plan(&request(id, 1, &[]), 12, now, no_ids).is_ok());
    }

    #[test]
    fn f_11_a_session_may_begin_without_partitions() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let first = sessions.plan(&request(0, 0, &[]), 12, now, no_ids).unwrap();
        assert!(first.session_id != 0 && !first.incremental);
        let second = sessions.plan(&request(first.session_id, 1, &[(0, 0)]), 12, now, no_ids).unwrap();
        assert_eq!((second.session_id, second.partitions.len()), (first.session_id, 1));
    }

    #[test]
    fn f_14_a_session_that_becomes_empty_is_closed() {
        let (sessions, now) = (FetchSessions::new(10), Instant::now());
        let id = sessions.plan(&request(0, 0, &[(0, 0)]), 12, now, no_ids).unwrap().session_id;
        let forgotten = ForgottenTopic { topic: "t".into(), partitions: vec![0], ..Default::default() };
        let last = FetchRequest { forgotten_topics_data: vec![forgotten], ..request(id, 1, &[]) };
        assert_eq!(sessions.plan(&last, 12, now, no_ids).unwrap().session_id, 0);
        assert!(sessions.lock().is_empty());
    }

    #[test]
    fn f_15_a_full_cache_gives_no_session_until_one_is_old() {
        let (sessions, now) = (FetchSessions::new(1), Instant::now());
        assert!(sessions.plan(&request(0, 0, &[(0, 0)]), 12, now, no_ids).unwrap().session_id > 0);
        assert_eq!(sessions.plan(&request(0, 0, &[(0, 0)]), 12, now, no_ids).unwrap().session_id, 0);
        let later = now + EVICTABLE_AFTER;
        assert!(sessions.plan(&request(0, 0, &[(0, 0)]), 12, later, no_ids).unwrap().session_id > 0);
    }

    #[test]
    fn f_6_partitions_with_records_go_to_the_end() {
        let (sessions, now) = (FetchSessions::new(1), Instant::now());
        let first = sessions.plan(&request(0, 0, &[(0, 0), (1, 0), (2, 0)]), 12, now, no_ids).unwrap();
        let seen = Seen { high_watermark: 7, log_start_offset: 0 };
        sessions.answered(first.session_id, [(first.partitions[0].key.clone(), seen, true)]);
        let second = sessions.plan(&request(first.session_id, 1, &[]), 12, now, no_ids).unwrap();
        assert_eq!(offsets(&second), [(1, 0), (2, 0), (0, 0)]);
        assert_eq!(second.partitions[2].seen, seen);
    }
}
