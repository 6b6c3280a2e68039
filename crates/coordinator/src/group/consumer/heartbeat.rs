//! ConsumerGroupHeartbeat (C section 11): the order in which everything happens. A member that is where it should be
//! and says nothing new passes through without a record and without a copy.

use std::collections::BTreeSet;

use wire::messages::consumer_group_heartbeat_request::{ConsumerGroupHeartbeatRequest, TopicPartitions as OwnedTopic};
use wire::messages::consumer_group_heartbeat_response::{Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions};
use wire::{ErrorCode, KStr};

use super::fault::Fault;
use super::join::{self, Found};
use super::member::{Has, Progress, Wants, same_partitions};
use super::timers::{self, Timer};
use super::update::Update;
use super::{leave, records, regexes, settings, soft, upgrade, validate};
use crate::assign::PartitionSet;
use crate::command::Caller;
use crate::group::{classic, interval};
use crate::outcome::Reply;
use crate::shard::Ctx;

pub(crate) fn heartbeat(ctx: &mut Ctx<'_, '_>, caller: &Caller, request: &ConsumerGroupHeartbeatRequest) {
    let broker = &ctx.env.config.broker;
    let response = validate::check(broker, caller.api_version, request).and_then(|()| {
        if validate::leaves(request) {
            leave::leave(ctx, request)
        } else {
            let refresh_at_ms = soft::refresh_at(ctx.soft, &request.group_id);
            run(ctx, caller, request).inspect_err(|_| soft::take_back(ctx.soft, &request.group_id, refresh_at_ms))
        }
    });
    let response = response.unwrap_or_else(Fault::into_response);
    ctx.reply(Reply::ConsumerGroupHeartbeat(Box::new(response)));
}

fn run(
    ctx: &mut Ctx<'_, '_>,
    caller: &Caller,
    request: &ConsumerGroupHeartbeatRequest,
) -> Result<ConsumerGroupHeartbeatResponse, Fault> {
    let state = ctx.state;
    let joins = request.member_epoch == 0;
    // Not yet in the outcome: what follows may be refused.
    let mut records = Vec::new();
    let group_id = state.groups.get_key_value(&request.group_id).map(|(id, _)| id.clone());
    let group_id = &group_id.unwrap_or_else(|| request.group_id.to_owned_detached());
    let found = join::find_group(ctx, group_id, joins, &mut records)?;
    let made_id = request.member_id.is_empty().then(|| KStr::from(ctx.env.ids.uuid().to_string()));
    let member_id = made_id.as_ref().unwrap_or(&request.member_id);
    let instance_id = request.instance_id.as_ref();
    join::check_room(&found, &ctx.env.config.broker, member_id, instance_id)?;
    let participant = join::find_member(&found, group_id, member_id, request, &mut records)?;
    let wants = updated(&participant.member.wants, caller, request);
    let update = Update::new(group_id, &found, &participant, wants);
    let subscribed = update.subscribe(ctx, &mut records)?;
    let (target_epoch, target) = update.target(subscribed.epoch).update(ctx, &mut records)?;
    let owned = || request.topic_partitions.as_deref().map(partitions_of);
    let next = update.reconcile(ctx, owned, target_epoch, &target, subscribed.changed);
    if let Some(next) = &next {
        records.push(records::current(group_id, &participant.member.id, next));
    }

    // Nothing fails from here on.
    ctx.out.records.append(&mut records);
    match &found {
        Found::Existing(_) => {}
        Found::Made(_) => classic::forget(ctx.soft, group_id),
        Found::Upgraded(group) => upgrade::finish(ctx, group_id, group),
    }
    regexes::maybe_resolve(ctx, group_id, &found, &update.counts);
    update.arm_timers(ctx, next.as_ref());
    let has = next.as_ref().unwrap_or(&participant.member.has);
    Ok(update.answer(ctx, request, has, subscribed.epoch, target_epoch))
}

impl Update<'_> {
    /// C K-27.
    fn arm_timers(&self, ctx: &mut Ctx<'_, '_>, next: Option<&Has>) {
        if let Some(old) = self.replaces
            && old.id != self.member.id
        {
            timers::disarm_all(ctx.soft, self.group_id, &old.id);
        }
        if self.member.is_classic() {
            timers::disarm_all(ctx.soft, self.group_id, &self.member.id);
        }
        let of_group_ms = ctx.env.config.consumer_session_timeout_ms(self.group_id);
        let ids = || (self.group_id.clone(), self.member.id.clone());
        let (group_id, member_id) = ids();
        timers::arm(ctx.soft, ctx.at, Timer::Session { group_id, member_id }, of_group_ms);
        let Some(next) = next else { return };
        let (group_id, member_id) = ids();
        let rebalance = Timer::Rebalance { group_id, member_id };
        if next.progress == Progress::UnrevokedPartitions {
            timers::arm(ctx.soft, ctx.at, rebalance, self.wants.rebalance_timeout_ms);
        } else {
            timers::disarm(ctx.soft, rebalance);
        }
    }

    /// C K-28.
    fn answer(
        &self,
        ctx: &mut Ctx<'_, '_>,
        request: &ConsumerGroupHeartbeatRequest,
        has: &Has,
        group_epoch: i32,
        target_epoch: i32,
    ) -> ConsumerGroupHeartbeatResponse {
        let is_full = request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
            && request.topic_partitions.is_some();
        let tell = request.member_epoch == 0
            || is_full
            || (!std::ptr::eq(has, &self.member.has) && !same_partitions(&self.member.has.assigned, &has.assigned));
        ConsumerGroupHeartbeatResponse {
            error_code: ErrorCode::None.code(),
            member_id: Some(self.member.id.clone()),
            member_epoch: has.epoch,
            heartbeat_interval_ms: self.interval_ms(ctx, has, group_epoch, target_epoch),
            assignment: tell.then(|| assignment(has)),
            ..Default::default()
        }
    }

    /// What was configured, else as short as the broker can afford (decision 13).
    fn interval_ms(&self, ctx: &mut Ctx<'_, '_>, has: &Has, group_epoch: i32, target_epoch: i32) -> i32 {
        let now_ms = ctx.at.mono_ms;
        let waits = group_epoch > target_epoch
            || !has.is_reconciled_to(target_epoch)
            || regexes::waits(self.group, &self.wants);
        let settled = !waits && self.group.is_settled();
        let soft = soft::entry(ctx.soft, self.group_id);
        soft.unsettled_since_ms = if settled { None } else { soft.unsettled_since_ms.or(Some(now_ms)) };
        let waited_ms = now_ms - soft.unsettled_since_ms.unwrap_or(now_ms);
        if let Some(configured_ms) = settings::heartbeat_interval_ms(ctx.env.config, self.group_id) {
            return configured_ms;
        }
        let broker = &ctx.env.config.broker;
        let members = ctx.env.members_total.max(self.group.members.len() as u32);
        if waits {
            interval::hurried_ms(broker, members, self.group.unsettled(group_epoch), waited_ms)
        } else {
            interval::steady_ms(broker, members)
        }
    }
}

/// What the member wants after the request, if that is something else (C K-14). In memory of its own.
fn updated(before: &Wants, caller: &Caller, request: &ConsumerGroupHeartbeatRequest) -> Option<Wants> {
    let keeps = |before: &Option<KStr>, given: &Option<KStr>| given.is_none() || before == given;
    let keeps_names = |given: &Option<Vec<KStr>>| {
        given.as_ref().is_none_or(|names| names.iter().collect::<BTreeSet<_>>().into_iter().eq(&before.names))
    };
    let unchanged = before.classic.is_none()
        && before.client_id == caller.client_id
        && before.client_host == caller.client_host
        && keeps(&before.instance_id, &request.instance_id)
        && keeps(&before.rack_id, &request.rack_id)
        && keeps(&before.assignor, &request.server_assignor)
        && [-1, before.rebalance_timeout_ms].contains(&request.rebalance_timeout_ms)
        && request.subscribed_topic_regex.as_ref().is_none_or(|regex| *regex == before.regex)
        && keeps_names(&request.subscribed_topic_names);
    if unchanged {
        return None;
    }
    let own = KStr::to_owned_detached;
    let update = |before: &Option<KStr>, given: &Option<KStr>| given.as_ref().map(own).or_else(|| before.clone());
    Some(Wants {
        instance_id: update(&before.instance_id, &request.instance_id),
        rack_id: update(&before.rack_id, &request.rack_id),
        client_id: own(&caller.client_id),
        client_host: own(&caller.client_host),
        rebalance_timeout_ms: match request.rebalance_timeout_ms {
            -1 => before.rebalance_timeout_ms,
            timeout_ms => timeout_ms,
        },
        names: match &request.subscribed_topic_names {
            Some(names) => names.iter().map(own).collect(),
            None => before.names.clone(),
        },
        regex: request.subscribed_topic_regex.as_ref().map_or_else(|| before.regex.clone(), own),
        assignor: update(&before.assignor, &request.server_assignor),
        classic: None,
    })
}

fn partitions_of(topics: &[OwnedTopic]) -> PartitionSet {
    topics.iter().map(|topic| (topic.topic_id, topic.partitions.iter().copied().collect())).collect()
}

fn assignment(has: &Has) -> Assignment {
    let topics = has.assigned.iter().map(|(topic_id, partitions)| TopicPartitions {
        topic_id: *topic_id,
        partitions: partitions.keys().copied().collect(),
    });
    Assignment { topic_partitions: topics.collect() }
}
