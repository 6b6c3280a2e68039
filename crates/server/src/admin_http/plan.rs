//! `GET /groups/GROUP/plan`: what a change would do. The coordinator works it out; here are the question and the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use coordinator::plan::{Change, Fate, NoPlan, Plan, PlannedMember, Work};
use coordinator::{Command, Reply};
use serde_json::{Value, json};
use wire::{ErrorCode, KStr};

use super::Admin;
use super::error::Failure;
use crate::broker::Broker;
use crate::config::{group_overrides, validate_group};
use crate::topics::ResourceType;

/// Members that a plan may add.
const MAX_ADDED: usize = 1_000;
/// Partitions that a plan may give a topic: far more than one machine serves.
const MAX_PARTITIONS: i32 = 100_000;
/// What an assignor is called in the configuration of streams groups.
const STREAMS_ASSIGNOR: &str = "streams.assignor.name";

pub(super) async fn plan(
    State(admin): State<Admin>,
    Path(group): Path<String>,
    Query(asked): Query<Vec<(String, String)>>,
) -> Result<Json<Value>, Failure> {
    let broker = admin.broker()?;
    let group_id = KStr::from(group);
    let change = Arc::new(change(&broker, &group_id, asked)?);
    let command = Command::Plan { group_id: group_id.clone(), change: change.clone() };
    match broker.groups.call(&group_id, command).await? {
        Reply::Plan(plan) => match *plan {
            Ok(plan) => Ok(Json(answer(&group_id, &plan))),
            Err(why) => Err(refused(why)),
        },
        _ => Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "another reply")),
    }
}

fn refused(why: NoPlan) -> Failure {
    let status = match why.error {
        ErrorCode::GroupIdNotFound => StatusCode::NOT_FOUND,
        ErrorCode::UnknownMemberId => StatusCode::BAD_REQUEST,
        _ => StatusCode::CONFLICT,
    };
    Failure::new(status, why.message)
}

/// The world as it would be.
fn change(broker: &Broker, group_id: &KStr, asked: Vec<(String, String)>) -> Result<Change, Failure> {
    let mut topics = broker.topics.image();
    let mut config = broker.topics.group_configs();
    let mut values = (*broker.topics.state().config(ResourceType::Group, group_id)).clone();
    let is_streams = broker.groups.brief(group_id).is_none_or(|brief| brief.protocol == "streams");
    let (mut add_members, mut remove_members, mut consumer_assignor, mut is_set) = (0, Vec::new(), None, false);
    for (name, value) in asked {
        match name.as_str() {
            "add-members" => {
                let number = value.parse().ok().filter(|number| *number <= MAX_ADDED);
                add_members = number.ok_or_else(|| Failure::bad_request(format!("add-members: 0 to {MAX_ADDED}")))?;
            }
            "remove-member" => remove_members.push(KStr::from(value)),
            "assignor" if is_streams => {
                values.insert(STREAMS_ASSIGNOR.to_owned(), value);
                is_set = true;
            }
            "assignor" => {
                let known = &config.broker.consumer_assignors;
                let assignor = known.iter().find(|known| *known.as_str() == value).cloned();
                let names: Vec<&str> = known.iter().map(KStr::as_str).collect();
                let unknown = || Failure::bad_request(format!("assignor: one of {}", names.join(", ")));
                consumer_assignor = Some(assignor.ok_or_else(unknown)?);
            }
            "set" => {
                let (key, value) = value.split_once('=').ok_or_else(|| Failure::bad_request("set: KEY=VALUE"))?;
                values.insert(key.to_owned(), value.to_owned());
                is_set = true;
            }
            "partitions" => {
                let (topic, count) = partitions(&value)?;
                let mut grown = topics.get(&topic).cloned();
                let unknown = || Failure::bad_request(format!("partitions: there is no topic {topic}"));
                let known = grown.as_mut().ok_or_else(unknown)?;
                if count < known.partitions {
                    let text = format!("partitions: {topic} has {} already, and topics only grow", known.partitions);
                    return Err(Failure::bad_request(text));
                }
                known.partitions = count;
                Arc::make_mut(&mut topics).insert(topic, known.clone());
            }
            _ => return Err(Failure::bad_request(format!("there is no parameter {name}"))),
        }
    }
    if is_set {
        validate_group(&values, &config.broker).map_err(|error| Failure::bad_request(error.to_string()))?;
        let overrides = group_overrides(&values).map_err(|error| Failure::bad_request(error.to_string()))?;
        Arc::make_mut(&mut config).groups.insert(group_id.clone(), Arc::new(overrides));
    }
    Ok(Change { add_members, remove_members, topics, config, consumer_assignor })
}

fn partitions(text: &str) -> Result<(KStr, i32), Failure> {
    let wrong = || Failure::bad_request("partitions: TOPIC=NUMBER");
    let (topic, count) = text.rsplit_once('=').ok_or_else(wrong)?;
    let count = count.parse().ok().filter(|count| (1..=MAX_PARTITIONS).contains(count)).ok_or_else(wrong)?;
    Ok((KStr::from(topic.to_owned()), count))
}

/// Who has what, for comparison.
fn owners<'a>(plan: &'a Plan, of: impl Fn(&'a PlannedMember) -> Option<&'a Work>) -> Owners<'a> {
    let mut owners = Owners::new();
    for member in &plan.members {
        let Some(work) = of(member) else { continue };
        let partition = if plan.protocol == "consumer" { "partition" } else { "active" };
        for (role, tasks) in [(partition, &work.active), ("standby", &work.standby), ("warmup", &work.warmup)] {
            for task in tasks {
                owners.entry((role, task)).or_default().insert(&member.who.member_id);
            }
        }
    }
    owners
}

type Owners<'a> = BTreeMap<(&'static str, &'a str), BTreeSet<&'a str>>;

struct Move<'a> {
    what: &'a str,
    role: &'static str,
    from: Option<&'a str>,
    to: Option<&'a str>,
}

/// From now to the end, by role and name. Standbys that change hands are paired as they come.
fn moves(plan: &Plan) -> Vec<Move<'_>> {
    let before = owners(plan, |member| Some(&member.before));
    let after = owners(plan, |member| member.finally.as_ref());
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
    let nobody = BTreeSet::new();
    let mut moves = Vec::new();
    for key in keys {
        let (was, will) = (before.get(&key).unwrap_or(&nobody), after.get(&key).unwrap_or(&nobody));
        let mut from = was.difference(will).copied();
        let mut to = will.difference(was).copied();
        loop {
            let (from, to) = (from.next(), to.next());
            if from.is_none() && to.is_none() {
                break;
            }
            moves.push(Move { role: key.0, what: key.1, from, to });
        }
    }
    moves
}

fn answer(group_id: &KStr, plan: &Plan) -> Value {
    let moves = moves(plan);
    let members: Vec<Value> = plan.members.iter().map(member).collect();
    let restores = plan
        .restores
        .iter()
        .map(|restore| json!({ "what": restore.what, "member_id": &*restore.member_id, "behind": restore.behind }));
    let listed =
        moves.iter().map(|each| json!({ "what": each.what, "role": each.role, "from": each.from, "to": each.to }));
    json!({
        "group": &**group_id,
        "protocol": plan.protocol,
        "epoch": plan.epoch,
        "assignor": &*plan.assignor,
        "members": members,
        "moves": listed.collect::<Vec<_>>(),
        "moved": moves.len(),
        "restores": restores.collect::<Vec<_>>(),
        "problem": plan.problem,
        "text": text(plan, &moves),
    })
}

fn member(member: &PlannedMember) -> Value {
    let work = |work: &Work| json!({ "active": work.active, "standby": work.standby, "warmup": work.warmup });
    json!({
        "member_id": &*member.who.member_id,
        "instance_id": member.who.instance_id.as_ref().map(ToString::to_string),
        "client_id": &*member.who.client_id,
        "host": &*member.who.host,
        "change": match member.fate {
            Fate::Stays => None,
            Fate::Added => Some("added"),
            Fate::Removed => Some("removed"),
        },
        "before": work(&member.before),
        "after": member.after.as_ref().map(work),
        "finally": member.finally.as_ref().map(work),
    })
}

/// The plan in words, for people.
fn text(plan: &Plan, moves: &[Move<'_>]) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(problem) = &plan.problem {
        lines.push(format!("Nothing can be assigned: {problem}"));
        return lines;
    }
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let count = |roles: &[&str]| moves.iter().filter(|each| roles.contains(&each.role)).count();
    let what = if plan.protocol == "consumer" { "partition" } else { "task" };
    let (main, standbys) = (count(&["active", "partition"]), count(&["standby"]));
    lines.push(match (main, standbys) {
        (0, 0) => "Nothing moves.".to_owned(),
        (main, 0) => format!("Moved: {}.", plural(main, what)),
        (main, standbys) => format!("Moved: {}, and {}.", plural(main, what), plural(standbys, "standby change")),
    });
    for member in &plan.members {
        let size = |work: Option<&Work>| work.map_or(0, |work| work.active.len());
        let (before, finally) = (size(Some(&member.before)), size(member.finally.as_ref()));
        let id = &member.who.member_id;
        match member.fate {
            Fate::Added => lines.push(format!("{id} is new and gets {}.", plural(finally, what))),
            Fate::Removed => lines.push(format!("{id} goes and gives up {}.", plural(before, what))),
            Fate::Stays if before != finally => {
                lines.push(format!("{id} has {finally} instead of {}.", plural(before, what)))
            }
            Fate::Stays => {}
        }
    }
    let held = plan.members.iter().any(|member| member.after != member.finally);
    if held {
        lines.push("Stateful tasks move only after their new owners have warmed up.".to_owned());
    }
    if !plan.restores.is_empty() {
        let known: Vec<i64> = plan.restores.iter().filter_map(|restore| restore.behind).collect();
        let records = if known.is_empty() {
            "how much is not known".to_owned()
        } else {
            format!("at least {} records", known.iter().sum::<i64>())
        };
        lines.push(format!("State is restored for {}: {records}.", plural(plan.restores.len(), "task")));
    }
    lines
}
