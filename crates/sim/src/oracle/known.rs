//! What may differ from Kafka 4.4, and why. Everything else is a defect of ours.

use serde_json::Value;

use super::compare::Difference;
use super::session::Session;

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Defect,
    /// Wanted, and without consequences for what follows.
    Tolerated(&'static str),
    /// Wanted or open to choice, and the two coordinators are in different states from here on.
    Parts(&'static str),
    /// As `Parts`, and they cannot be brought together again, since one has drawn more member ids than the other.
    Ends(&'static str),
}

/// A command, and what both coordinators answered.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    pub command: &'a Value,
    pub kafka: &'a Value,
    pub ours: &'a Value,
    /// The members of a consumer group are at odds over its assignor, or were before this step.
    pub votes_are_even: bool,
    /// Two members of one process of a streams group had the same standby or warm-up since the last restart.
    pub copies_were_shared: bool,
    /// Several timers of members fire at one moment of this step.
    pub timers_coincide: bool,
    /// The log refuses the next write of either.
    pub refuses: bool,
}

/// Judges a difference in the answers to one command.
pub fn judge(found: &Difference, step: &Step<'_>, ours: &mut Session) -> Verdict {
    if step.refuses && (!found.at.starts_with("response") || step.command["op"] != "request") {
        return Verdict::Ends("C R-6: what a write that the log refuses leaves in memory");
    }
    let is_error = step.kafka["response"]["errorCode"].as_i64().is_some_and(|code| code != 0);
    if step.refuses && is_error && is_refused(step.ours) {
        return Verdict::Ends("C R-6: what is refused for other reasons Kafka answers before it knows of the log");
    }
    match judge_alone(found, step, ours) {
        Verdict::Defect if step.timers_coincide => {
            Verdict::Parts("timers of one moment fire in the order of a hash table after a restart")
        }
        verdict => verdict,
    }
}

fn judge_alone(found: &Difference, step: &Step<'_>, ours: &mut Session) -> Verdict {
    let Step { command, kafka, .. } = *step;
    let [theirs, mine] = [kafka, step.ours].map(|answer| answer["response"]["errorCode"].as_i64());
    if command["api"] == 11 && theirs == Some(81) && mine == Some(81) {
        return Verdict::Ends("C J-6: nobody waits for an id that was turned away; Kafka does until the join timer");
    }
    if command["api"] == 11 && (theirs == Some(81)) != (mine == Some(81)) {
        return Verdict::Ends(
            "decision 23: in a full group existing members keep their place, static ones that come back, too",
        );
    }
    if found.at.starts_with("timers.sync-") && found.ours.is_null() && is_replacement(command, kafka) {
        return Verdict::Parts("decision 22: a replaced member that has not synced causes no rebalance");
    }
    if let Some(timer) = found.at.strip_prefix("timers.") {
        return judge_timer(timer, found, step, ours);
    }
    if found.at == "completed" {
        let refused = command["api"] == 68 && kafka["response"]["errorCode"] != 0 && found.ours.is_null();
        if refused && codes(&found.kafka).all(|code| code == Some(27)) {
            return Verdict::Parts(
                "an upgrade that is refused ends open joins and syncs in Kafka; here nothing happens",
            );
        }
        return judge_completed(found);
    }
    if found.at.ends_with(".leader") && [&found.kafka, &found.ours].iter().all(|leader| names_a_member(leader)) {
        return Verdict::Parts("C M-8: which member leads next is not specified");
    }
    if found.at.ends_with(".topologyDescriptionRequired") && found.ours == true {
        return Verdict::Tolerated("decision 15: topology descriptions are built in");
    }
    if command["api"] == 68 && kafka["response"]["errorCode"] == -1 && found.ours == 14 {
        return Verdict::Parts(
            "a classic group in its first join phase makes Kafka's upgrade fail without a reason; here one is to try again",
        );
    }
    if step.votes_are_even && (found.at.starts_with("records") || found.at.starts_with("response") || found.at == "law")
    {
        return Verdict::Parts("decision 19: which assignor is preferred when the votes are even");
    }
    if (found.at.starts_with("records") || found.at.starts_with("response"))
        && command["api"] == 68
        && subscribes_to_nothing(&command["body"])
    {
        return Verdict::Parts("a member that joins for nothing makes Kafka take all members to subscribe alike");
    }
    if let Some(why) = judge_consumer(found, command, kafka) {
        return Verdict::Parts(why);
    }
    if command["api"] == 88 && theirs == Some(42) && matches!(mine, Some(131)) && refuses_topology(kafka) {
        return Verdict::Tolerated("decisions 2 and 3: another topology is refused with an error of its own");
    }
    if command["api"] == 88 && theirs == Some(0) && mine == Some(132) {
        return Verdict::Parts("decision 4: a join with an older topology is refused");
    }
    // Once it is let in, it may have a tag twice, which both answer so.
    if command["api"] == 88 && theirs == Some(111) && matches!(mine, Some(0 | -1)) {
        return Verdict::Parts("decision 16: an active static member may join again");
    }
    if command["api"] == 88 && theirs == Some(-1) && mine == Some(0) {
        return Verdict::Parts("decision 11: endpoints while the topology is unresolved");
    }
    if found.at == "response.endpointInformationEpoch" {
        return Verdict::Tolerated("decision 27: the endpoint epoch moves with every change of what members run");
    }
    let no_list = found.kafka.is_null() || found.ours.is_null() || command["version"] == 0;
    if found.at.starts_with("response.partitionsByUserEndpoint") && no_list {
        return Verdict::Tolerated("decision 27: the list is sent whenever it changed, merged for version 0");
    }
    if step.copies_were_shared && command["api"] == 88 && waits_only_here(step) {
        return Verdict::Parts(
            "S 6.5: of two members of a process that hold a copy of a task, Kafka forgets both when one gives it up",
        );
    }
    let internal = [".stateChangelogTopics", ".repartitionSourceTopics"].iter().any(|list| found.at.contains(list));
    if internal && found.at.ends_with(".partitions") && command["api"] == 89 {
        return Verdict::Tolerated("S 9.1: Kafka shows the resolved counts once a record was written after them");
    }
    if found.at.ends_with(".response.memberId") && found.ours == "" && is_unloaded(&found.kafka, kafka) {
        return Verdict::Tolerated(
            "C T-5: the runtime answers what an unloaded shard leaves open, and knows no member ids",
        );
    }
    Verdict::Defect
}

/// A write failed, by what the client is told of it (C R-6).
pub fn is_refused(kafka: &Value) -> bool {
    fn any(value: &Value) -> bool {
        match value {
            Value::Array(elements) => elements.iter().any(any),
            Value::Object(fields) => fields.iter().any(|(name, value)| match name == "errorCode" {
                true => matches!(value.as_i64(), Some(15 | 16)),
                false => any(value),
            }),
            _ => false,
        }
    }
    any(&kafka["response"])
}

/// What makes the two different though no answer has shown it yet.
pub fn parts_unseen(command: &Value, kafka: &Value, ours: &mut Session) -> Option<&'static str> {
    let group_id = command["body"]["groupId"].as_str().unwrap_or_default();
    let commits = command["api"] == 8 || command["api"] == 28;
    if commits && is_too_long(kafka) && !ours.has_group(group_id) {
        return Some("a commit of which nothing is stored makes a group in Kafka, in memory only; here it makes none");
    }
    let fails = command["api"] == 11 && kafka["response"]["errorCode"].as_i64().unwrap_or(0) != 0;
    (fails && ours.is_empty_of_another_kind(group_id)).then_some(
        "a classic join that fails makes Kafka forget an empty group of another kind, in memory only; here it stays",
    )
}

/// The text with some offset is longer than allowed (C O-8).
fn is_too_long(kafka: &Value) -> bool {
    let mut topics = kafka["response"]["topics"].as_array().into_iter().flatten();
    topics.any(|topic| {
        let mut partitions = topic["partitions"].as_array().into_iter().flatten();
        partitions.any(|partition| partition["errorCode"] == 12)
    })
}

/// Free choices in consumer groups, and corners of the change between classic and consumer groups.
fn judge_consumer(found: &Difference, command: &Value, kafka: &Value) -> Option<&'static str> {
    let holds_back = found.at.ends_with(".partitionsPendingRevocation") && is_empty(&found.kafka);
    if command["api"] == 68 && holds_back && is_upgrade(kafka) {
        return Some("an upgrade holds back what members by their last join still run and nobody is assigned");
    }
    if command["api"] == 11 && found.at == "response.generationId" && found.kafka == 0 {
        return Some(
            "open: a classic join that takes over the last consumer member converts the group before it gets a target",
        );
    }
    None
}

/// Kafka has no updates of the topology.
fn refuses_topology(kafka: &Value) -> bool {
    let message = kafka["response"]["errorMessage"].as_str();
    message.is_some_and(|message| message.starts_with("Topology updates are not supported yet"))
}

/// A streams member waits for tasks here that it has in Kafka.
fn waits_only_here(step: &Step<'_>) -> bool {
    let state = |answer: &Value| {
        let records = answer["records"].as_array().into_iter().flatten();
        records.filter(|record| record["type"] == 22).filter_map(|record| record["value"]["state"].as_i64()).next_back()
    };
    // One that has waited before writes nothing.
    state(step.kafka).is_some() && matches!(state(step.ours), None | Some(3))
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_some_and(Vec::is_empty)
}

/// Whether a static member came back and was answered at once.
fn is_replacement(command: &Value, kafka: &Value) -> bool {
    let body = &command["body"];
    command["api"] == 11
        && body["memberId"].as_str().unwrap_or_default().is_empty()
        && body["groupInstanceId"].is_string()
        && kafka["response"]["errorCode"] == 0
}

/// Whether the open request of this member was answered with NOT_COORDINATOR.
fn is_unloaded(member_id: &Value, kafka: &Value) -> bool {
    let mut late = kafka["completed"].as_array().into_iter().flatten();
    late.any(|late| late["response"]["memberId"] == *member_id && late["response"]["errorCode"] == 16)
}

/// Kafka leaves timers of members behind that are gone; they fire without effect.
fn judge_timer(timer: &str, found: &Difference, step: &Step<'_>, ours: &mut Session) -> Verdict {
    let of_members = ["heartbeat-", "session-timeout-", "rebalance-timeout-", "join-", "sync-"];
    if of_members.iter().any(|kind| timer.starts_with(kind)) && found.ours.is_null() && !ours.knows_member_of(timer) {
        return Verdict::Tolerated("timers of members that are gone are cancelled");
    }
    if timer.starts_with("rebalance-timeout-") && found.ours.is_null() {
        return Verdict::Tolerated("a rebalance timer that Kafka leaves behind finds the member in another epoch");
    }
    if timer.starts_with("heartbeat-") && found.ours.is_null() && !ours.is_classic_timer(timer) {
        return Verdict::Tolerated("classic timers that Kafka leaves behind find no classic group");
    }
    if ["sync-", "join-"].iter().any(|kind| timer.starts_with(kind)) && found.ours.is_null() {
        return match ours.is_classic_timer(timer) {
            true => Verdict::Tolerated("timers of classic members that Kafka leaves behind find no consumer group"),
            false if is_upgrade(step.kafka) => Verdict::Parts(
                "timers of classic members from before a downgrade find the members again in Kafka after an upgrade",
            ),
            false if ours.speaks_classic(timer) => Verdict::Defect,
            false => Verdict::Parts(
                "a member that goes on with the consumer protocol is removed by Kafka when it does not sync in the classic one",
            ),
        };
    }
    if timer.starts_with("session-timeout-") && found.ours.is_null() && ours.is_classic_timer(timer) {
        return Verdict::Tolerated(
            "an upgrade that fails leaves session timers behind in Kafka, which find no consumer group",
        );
    }
    Verdict::Defect
}

/// A classic group became another one.
fn is_upgrade(kafka: &Value) -> bool {
    let mut records = kafka["records"].as_array().into_iter().flatten();
    records.any(|record| record["type"] == 2 && record["value"].is_null())
}

/// Answers of ours to requests that Kafka never answers.
fn judge_completed(found: &Difference) -> Verdict {
    let ids = |value: &Value| -> Vec<Value> {
        value.as_array().into_iter().flatten().map(|late| late["id"].clone()).collect()
    };
    let (kafka, ours) = (ids(&found.kafka), ids(&found.ours));
    let more: Value =
        found.ours.as_array().into_iter().flatten().filter(|late| !kafka.contains(&late["id"])).cloned().collect();
    let all_kept = kafka.iter().all(|id| ours.contains(id));
    if all_kept && codes(&more).all(|code| matches!(code, Some(25 | 27))) {
        return Verdict::Tolerated("decision 21: open requests of members that are gone or ask again are answered");
    }
    Verdict::Defect
}

/// By names; an expression has not been resolved yet.
fn subscribes_to_nothing(join: &Value) -> bool {
    join["memberEpoch"] == 0 && join["subscribedTopicNames"].as_array().is_none_or(Vec::is_empty)
}

/// Errors of late answers.
fn codes(late: &Value) -> impl Iterator<Item = Option<i64>> + '_ {
    late.as_array().into_iter().flatten().map(|late| late["response"]["errorCode"].as_i64())
}

fn names_a_member(leader: &Value) -> bool {
    leader.as_str().is_some_and(|leader| !leader.is_empty())
}
