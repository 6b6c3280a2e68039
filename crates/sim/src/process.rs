//! A process of an application: an instance of Kafka Streams with its threads and its state directory, or some consumers.

use std::collections::BTreeMap;

use coordinator::assign::{StreamsTarget, TaskAssignment, TaskId, tasks_of};
use wire::KStr;

use crate::app;
use crate::event::MemberNo;
use crate::settings::Protocol;

/// Members come and go with its starts; identity and state directory stay.
#[derive(Debug)]
pub struct Process {
    pub id: KStr,
    pub zone: KStr,
    /// Number of its group.
    pub group: usize,
    pub protocol: Protocol,
    /// Server-side assignor that its consumers ask for.
    pub assignor: Option<KStr>,
    /// Client-side assignors of its classic consumers that are eager, in their order.
    pub assignors: &'static [&'static str],
    /// Of StreamsGroupHeartbeat, or of JoinGroup.
    pub api_version: i16,
    /// Of the application.
    pub app_version: i32,
    pub threads: usize,
    /// Its members are static.
    pub is_static: bool,
    /// Records per second that it restores.
    pub restore_rate: i64,
    pub state: State,
    /// It does not start before that.
    pub not_before_ms: u64,
    /// Positions of the state on its disk.
    pub store: BTreeMap<TaskId, i64>,
    /// Of the present start.
    pub members: Vec<MemberNo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Up,
    /// Does nothing until it is resumed; a zombie if its session ends meanwhile.
    Paused,
    Down,
}

impl Process {
    /// Instance ids of its members, by thread.
    pub fn instance_id(&self, thread: usize) -> Option<KStr> {
        self.is_static.then(|| KStr::from(format!("{}-{thread}", self.id)))
    }

    /// Restores copies and runs active tasks for `elapsed_ms`.
    pub fn work(&mut self, assigned: &TaskAssignment, now_ms: u64, elapsed_ms: u64) {
        for task in tasks_of(&assigned.active) {
            let end = app::end_offset(&task, now_ms);
            self.store.insert(task, end);
        }
        for task in tasks_of(&assigned.standby).chain(tasks_of(&assigned.warmup)) {
            let end = app::end_offset(&task, now_ms);
            let position = self.store.entry(task).or_default();
            *position = (*position + self.restore_rate * elapsed_ms as i64 / 1000).min(end);
        }
    }
}

/// What members hold, by member id; for comparison with what the coordinator says.
pub type Held = StreamsTarget;
