//! One shard: the groups of one partition of `__consumer_offsets`. Finds the room for each command; decides nothing itself.

use std::sync::Arc;

use wire::KStr;

use crate::command::{Command, Ticket};
use crate::env::{Env, Moment};
use crate::group::{self, Group};
use crate::journal;
use crate::map::Map;
use crate::offsets;
use crate::outcome::{Effect, Outcome, Reply};
use crate::plan;
use crate::record::Record;
use crate::runtime::{Position, StateMachine};
use crate::state_log::{Producer, RawRecord};
use crate::timer::Timers;
use crate::topics::TopicImage;

/// Hard state: what the log says. Changed by `replay` only.
#[derive(Debug, Default)]
pub struct State {
    pub(crate) groups: Map<KStr, Group>,
    pub(crate) offsets: offsets::Offsets,
    /// Log end after the last record of each group that exists; readers wait for it.
    last_record: Map<KStr, u64>,
    /// The same for all groups that are gone.
    last_removal: u64,
    broker_driven_members: u32,
}

impl State {
    pub fn group(&self, group_id: &str) -> Option<&Group> {
        self.groups.get(group_id)
    }

    /// Members of all groups whose heartbeats the coordinator paces, for `Env::members_total`.
    pub fn broker_driven_members(&self) -> u32 {
        self.broker_driven_members
    }

    fn broker_driven_members_of(&self, group_id: &str) -> u32 {
        self.groups.get(group_id).map_or(0, Group::broker_driven_members)
    }

    /// Group ids in ascending order.
    pub fn group_ids(&self) -> Vec<KStr> {
        let mut ids: Vec<_> = self.groups.keys().cloned().collect();
        ids.sort();
        ids
    }

    fn wait_for(&self, group_id: &str) -> u64 {
        self.last_record.get(group_id).copied().unwrap_or(self.last_removal)
    }
}

/// Soft state: never logged, rebuilt or forgotten after a failover.
#[derive(Debug, Default)]
pub struct Soft {
    pub(crate) timers: Timers<Timer>,
    pub(crate) classic: Map<KStr, group::classic::Soft>,
    /// What the command at hand made of a classic group in the belief that its records are written.
    pub(crate) classic_unconfirmed: Option<group::classic::Unconfirmed>,
    pub(crate) consumer: Map<KStr, group::consumer::Soft>,
    pub(crate) streams: Map<KStr, group::streams::Soft>,
    pub(crate) offsets: offsets::Soft,
    pub(crate) journal: journal::Soft,
    /// The topics before the latest change.
    pub(crate) topics: Arc<TopicImage>,
}

/// Everything that can come due in a shard.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Timer {
    Classic(group::classic::Timer),
    Consumer(group::consumer::Timer),
    Streams(group::streams::Timer),
    /// Offsets and empty groups are looked through (C E-1).
    Expiry,
}

/// What handlers work on: the state to read, the soft state, and the outcome to fill.
pub(crate) struct Ctx<'a, 'e> {
    pub at: Moment,
    pub env: &'a mut Env<'e>,
    pub state: &'a State,
    pub soft: &'a mut Soft,
    pub out: &'a mut Outcome,
    pub ticket: Ticket,
}

impl Ctx<'_, '_> {
    /// Answers the command at hand.
    pub fn reply(&mut self, reply: Reply) {
        self.out.reply(self.ticket, reply);
    }
}

/// A group at a glance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brief {
    /// `classic`, `consumer` or `streams`.
    pub protocol: &'static str,
    /// Or the generation.
    pub epoch: i32,
    pub members: usize,
}

#[derive(Debug, Default)]
pub struct Shard {
    state: State,
    soft: Soft,
}

impl Shard {
    pub fn new() -> Self {
        Shard::default()
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// What there is to know of a group at a glance.
    pub fn brief(&self, group_id: &str) -> Option<Brief> {
        let group = self.state.group(group_id)?;
        let (epoch, members) = match group {
            Group::Classic(group) => group.size(&self.soft, group_id),
            Group::Consumer(group) => (group.epoch(), group.member_count()),
            Group::Streams(group) => (group.epoch(), group.member_count()),
        };
        Some(Brief { protocol: group.type_name(), epoch, members })
    }

    #[cfg(test)]
    pub(crate) fn soft(&self) -> &Soft {
        &self.soft
    }

    /// A classic group as it is now; none if there is no such group, or it is of another type.
    #[cfg(any(test, feature = "testing"))]
    pub fn classic_roster(&self, group_id: &KStr) -> Option<crate::group::classic::Roster> {
        match self.state.group(group_id)? {
            Group::Classic(group) => Some(group.roster(&self.soft, group_id)),
            Group::Consumer(_) | Group::Streams(_) => None,
        }
    }

    /// Armed timers, by deadline: names as the coordinator oracle writes them are made by the tests.
    pub fn timers(&self) -> Vec<(u64, String)> {
        self.soft.timers.snapshot().into_iter().map(|(at, timer)| (at, format!("{timer:?}"))).collect()
    }
}

impl StateMachine for Shard {
    type Command = Command;
    type Reply = Reply;
    type Record = Record;
    type Effect = Effect;
    type Event = journal::Event;
    type Env<'e> = Env<'e>;

    fn handle(&mut self, at: Moment, env: &mut Env<'_>, ticket: Ticket, command: Command, out: &mut Outcome) {
        out.wait_for = command.group_id().map_or_else(
            || self.state.last_record.values().copied().max().unwrap_or(0).max(self.state.last_removal),
            |group_id| self.state.wait_for(group_id),
        );
        self.soft.classic_unconfirmed = None;
        let mut ctx = Ctx { at, env, state: &self.state, soft: &mut self.soft, out, ticket };
        dispatch(&mut ctx, &command);
        journal::observe(&mut ctx, &command);
    }

    fn replay(&mut self, position: Position, record: Record) {
        let group_id = record.group_id().clone();
        let members_before = self.state.broker_driven_members_of(&group_id);
        match record {
            Record::OffsetCommit(key, value) => offsets::replay(&mut self.state, position, key, value),
            record => group::replay(&mut self.state, position, record),
        }
        if self.state.groups.contains_key(&group_id) {
            self.state.last_record.insert(group_id.to_owned_detached(), position.offset + 1);
        } else {
            self.state.last_record.remove(&group_id);
            self.state.last_removal = position.offset + 1;
        }
        let members = self.state.broker_driven_members_of(&group_id);
        self.state.broker_driven_members += members;
        self.state.broker_driven_members -= members_before;
    }

    fn applied(&mut self, at: Moment, events: &mut Vec<journal::Event>) {
        journal::settled(&self.state, &mut self.soft, at, events);
    }

    fn replay_marker(&mut self, position: Position, producer: Producer, commit: bool) {
        for group_id in offsets::replay_marker(&mut self.state, producer, commit) {
            self.state.last_record.insert(group_id, position.offset + 1);
        }
    }

    fn loaded(&mut self, at: Moment, env: &mut Env<'_>) {
        self.soft = Soft::default();
        self.soft.topics = Arc::clone(env.topics);
        group::loaded(&self.state, &mut self.soft, at, env);
        self.soft.timers.set(&Timer::Expiry, at.mono_ms + env.config.broker.offsets_retention_check_interval_ms as u64);
    }

    fn refused(&mut self, at: Moment, env: &mut Env<'_>) {
        offsets::refused(&mut self.soft, at, env);
        group::refused(&self.state, &mut self.soft, at, env);
    }

    fn next_wakeup(&self) -> Option<u64> {
        self.soft.timers.next()
    }

    fn wakeup() -> Command {
        Command::Wakeup
    }

    fn encode(record: &Record) -> Result<RawRecord, String> {
        record.encode().map_err(|error| error.to_string())
    }

    fn decode(raw: &RawRecord) -> Result<Option<Record>, String> {
        Record::decode(raw).map_err(|error| error.to_string())
    }
}

/// The room for each command.
fn dispatch(ctx: &mut Ctx<'_, '_>, command: &Command) {
    match command {
        Command::JoinGroup(caller, request) => group::classic::join(ctx, caller, request),
        Command::SyncGroup(caller, request) => group::classic::sync(ctx, caller, request),
        Command::Heartbeat(caller, request) => group::classic::heartbeat(ctx, caller, request),
        Command::LeaveGroup(caller, request) => group::classic::leave(ctx, caller, request),
        Command::ConsumerGroupHeartbeat(caller, request) => group::consumer::heartbeat(ctx, caller, request),
        Command::StreamsGroupHeartbeat(caller, request) => group::streams::heartbeat(ctx, caller, request),
        Command::StreamsTopologyDescriptionUpdate(caller, request) => {
            group::streams::update_topology_description(ctx, caller, request)
        }
        Command::OffsetCommit(caller, request) => offsets::commit(ctx, caller, request),
        Command::TxnOffsetCommit(caller, request) => offsets::commit_in_transaction(ctx, caller, request),
        Command::OffsetFetch { caller, group, require_stable } => offsets::fetch(ctx, caller, group, *require_stable),
        Command::OffsetDelete(_, request) => offsets::delete(ctx, request),
        Command::DescribeGroup { caller, group_id } => group::classic::describe(ctx, caller, group_id),
        Command::ConsumerGroupDescribe { caller, group_id } => group::consumer::describe(ctx, caller, group_id),
        Command::StreamsGroupDescribe { caller, group_id, include_topology_description } => {
            group::streams::describe(ctx, caller, group_id, *include_topology_description)
        }
        Command::ListGroups { states, types } => group::list(ctx, states, types),
        Command::DeleteGroup { group_id } => group::delete(ctx, group_id),
        Command::Sessions { group_id, member_ids } => group::sessions(ctx, group_id, member_ids),
        Command::Plan { group_id, change } => plan::plan(ctx, group_id, change),
        Command::TxnMarker(marker) => {
            ctx.out.marker = Some(*marker);
            ctx.reply(Reply::Done);
        }
        Command::Wakeup => {
            wakeup(ctx);
            ctx.reply(Reply::Done);
        }
        Command::TopicsChanged { changed, deleted } => {
            offsets::topics_deleted(ctx, deleted);
            group::topics_changed(ctx, changed, deleted);
            ctx.soft.journal.topics_changed(&ctx.soft.topics, ctx.env.topics, changed, deleted);
            ctx.soft.topics = Arc::clone(ctx.env.topics);
            ctx.reply(Reply::Done);
        }
        Command::GroupConfigChanged { group_id } => {
            group::config_changed(ctx, group_id);
            ctx.reply(Reply::Done);
        }
        Command::InternalTopicsCreated { group_id, failures, unauthorized } => {
            group::streams::internal_topics_created(ctx, group_id, failures.clone(), unauthorized.clone());
            ctx.reply(Reply::Done);
        }
        Command::AssignmentReady { group_id, group_epoch, target } => {
            group::assignment_ready(ctx, group_id, *group_epoch, target);
            ctx.reply(Reply::Done);
        }
        Command::RegexResolved { group_id, matches, image_version } => {
            group::regex_resolved(ctx, group_id, matches.clone(), *image_version);
            ctx.reply(Reply::Done);
        }
    }
}

fn wakeup(ctx: &mut Ctx<'_, '_>) {
    match ctx.soft.timers.pop_due(ctx.at.mono_ms) {
        None => {}
        Some(Timer::Classic(timer)) => {
            let group_id = timer.group_id().clone();
            ctx.soft.journal.timer_fires(&group_id, journal::Kind::TooSlow);
            group::classic::fired(ctx, timer);
        }
        Some(Timer::Consumer(timer)) => {
            let (group_id, why) = timer.why();
            ctx.soft.journal.timer_fires(&group_id, why);
            group::consumer::fired(ctx, timer);
        }
        Some(Timer::Streams(timer)) => {
            let (group_id, why) = timer.why();
            ctx.soft.journal.timer_fires(&group_id, why);
            group::streams::fired(ctx, timer);
        }
        Some(Timer::Expiry) => {
            let interval_ms = ctx.env.config.broker.offsets_retention_check_interval_ms as u64;
            ctx.soft.timers.set(&Timer::Expiry, ctx.at.mono_ms + interval_ms);
            offsets::expire(ctx);
        }
    }
}
