//! An entry as one sentence, for people. The only place where journals are put into words.

use std::collections::BTreeMap;

use super::entry::{Entry, Member};

/// Moves that are named; of more only the number is told.
const NAMED_MOVES: usize = 4;

/// Without time: whoever shows it has a column for that.
pub(crate) fn sentence(entry: &Entry) -> String {
    let who = entry.who.as_ref().map_or_else(|| "somebody".to_owned(), name);
    let topics = entry.topics.join(", ");
    let some = |text: &str, else_: &str| if topics.is_empty() { else_.to_owned() } else { format!("{text} {topics}") };
    let mut text = match entry.kind.as_str() {
        "member-joined" => format!("{who} joined"),
        "member-left" => format!("{who} left"),
        "member-away" => format!("{who} is away and will be back; its work waits for it"),
        "member-returned" => format!("{who} came back"),
        "member-removed" => format!("{who} was removed by an administrator"),
        "session-expired" => format!("{who} was not heard of for its session timeout, and was removed"),
        "too-slow" => format!("{who} took longer than its rebalance timeout, and was removed"),
        "subscription-changed" => format!("{who} changed its subscription"),
        "member-changed" => format!("{who} changed"),
        "rejoined" => format!("{who} asked for a rebalance"),
        "topology-changed" => format!("{who} brought another topology"),
        "topic-created" => some("there is a new topic:", "a topic was created"),
        "topic-deleted" => some("a topic was deleted:", "a topic was deleted"),
        "topic-grew" => some("a topic has more partitions:", "a topic has more partitions"),
        "topics-changed" => some("topics changed:", "topics of the group changed"),
        "config-changed" => "the configuration changed".to_owned(),
        "assignor-changed" => "the group has another assignor".to_owned(),
        "warmup-progress" => "warm-ups have made progress".to_owned(),
        "assigned" => "the work was assigned".to_owned(),
        "stable" => "the group is stable".to_owned(),
        "refused" => format!("{who} was refused"),
        "converted" => "the group changed its protocol".to_owned(),
        "emptied" => "the last member is gone: the group is empty".to_owned(),
        "deleted" => "the group was deleted".to_owned(),
        other => other.to_owned(),
    };
    if let Some(detail) = &entry.detail {
        text += &format!(" ({detail})");
    }
    if entry.times > 1 {
        text += &format!(", {} times", entry.times);
    }
    for also in &entry.also {
        text += &format!("; also: {}", also.replace('-', " "));
    }
    if let Some(epoch) = entry.epoch.filter(|epoch| epoch.old != epoch.new) {
        let word = if entry.protocol == "classic" { "generation" } else { "epoch" };
        text += &format!(": {word} {} to {}", epoch.old, epoch.new);
    }
    if let Some(took_ms) = entry.took_ms {
        text += &format!(", {} after the first change", duration(took_ms));
    }
    if let Some(last) = entry.waited_for.first() {
        text += &format!("; the last to arrive was {} after {}", name(&last.member), duration(last.ms));
    }
    text + &moves(entry)
}

/// What people know a member by, then where it is.
fn name(member: &Member) -> String {
    let known_as = [member.instance_id.as_deref().unwrap_or(""), &member.client_id, &member.member_id];
    let first = known_as.iter().find(|text| !text.is_empty()).copied().unwrap_or("a member");
    let mut rest: Vec<&str> = [member.member_id.as_str(), &member.host].into_iter().filter(|t| !t.is_empty()).collect();
    rest.retain(|text| *text != first);
    if rest.is_empty() { first.to_owned() } else { format!("{first} ({})", rest.join(", ")) }
}

fn moves(entry: &Entry) -> String {
    if entry.moved == 0 {
        return String::new();
    }
    let mut counts = BTreeMap::<&str, usize>::new();
    for moved in &entry.moves {
        *counts.entry(&moved.role).or_default() += 1;
    }
    let listed: usize = counts.values().sum();
    let count = |role: &str| counts.get(role).copied().unwrap_or(0);
    let mut parts = Vec::new();
    let kinds = [
        ("active", "task moves", "tasks move"),
        ("partition", "partition moves", "partitions move"),
        ("standby", "standby changes", "standbys change"),
        ("warmup", "warm-up changes", "warm-ups change"),
    ];
    for (role, one, many) in kinds {
        match count(role) {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            n => parts.push(format!("{n} {many}")),
        }
    }
    let mut text = if entry.moved > listed {
        format!("; {} moves, among them {}", entry.moved, parts.join(", "))
    } else {
        format!("; {}", parts.join(", "))
    };
    if entry.moved <= NAMED_MOVES {
        let each = entry.moves.iter().map(|moved| match (&moved.from, &moved.to) {
            (Some(from), Some(to)) => format!("{} from {from} to {to}", moved.what),
            (None, Some(to)) => format!("{} to {to}", moved.what),
            (Some(from), None) => format!("{} away from {from}", moved.what),
            (None, None) => moved.what.clone(),
        });
        text += &format!(": {}", each.collect::<Vec<_>>().join(", "));
    }
    text
}

/// As people say it.
fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{} h {} min", ms / 3_600_000, ms / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::{Epochs, Move, Waited};
    use super::*;

    fn entry(kind: &str) -> Entry {
        Entry {
            seq: 1,
            at_ms: 0,
            group: "g".into(),
            protocol: "streams".into(),
            kind: kind.into(),
            also: Vec::new(),
            who: None,
            epoch: None,
            topics: Vec::new(),
            moves: Vec::new(),
            moved: 0,
            took_ms: None,
            waited_for: Vec::new(),
            detail: None,
            times: 1,
            text: String::new(),
        }
    }

    fn member(id: &str, client: &str) -> Member {
        Member { member_id: id.into(), instance_id: None, client_id: client.into(), host: "10.0.0.7".into() }
    }

    #[test]
    fn every_kind_has_words() {
        for kind in coordinator::journal::Kind::ALL {
            let text = sentence(&entry(kind.name()));
            assert!(!text.contains(kind.name()) || !kind.name().contains('-'), "{text}");
        }
    }

    #[test]
    fn a_story_names_who_when_and_what_moved() {
        let moved = Move { what: "0_3".into(), role: "active".into(), from: Some("a".into()), to: Some("b".into()) };
        let joined = Entry {
            who: Some(member("x1", "app")),
            epoch: Some(Epochs { old: 6, new: 7 }),
            moves: vec![moved],
            moved: 1,
            ..entry("member-joined")
        };
        let expected = "app (x1, 10.0.0.7) joined: epoch 6 to 7; 1 task moves: 0_3 from a to b";
        assert_eq!(sentence(&joined), expected);
        let waited_for = vec![Waited { member: member("x2", "app"), ms: 1_500 }];
        let stable = Entry { took_ms: Some(1_500), waited_for, ..entry("stable") };
        let expected =
            "the group is stable, 1.5 s after the first change; the last to arrive was app (x2, 10.0.0.7) after 1.5 s";
        assert_eq!(sentence(&stable), expected);
        let grew = Entry { topics: vec!["orders".into()], ..entry("topic-grew") };
        assert_eq!(sentence(&grew), "a topic has more partitions: orders");
    }
}
