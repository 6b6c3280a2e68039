//! Which assignors the members of consumer groups ask for, by Kafka's records.

use std::collections::BTreeMap;

use serde_json::Value;

/// Type of the records that say what a member wants.
const MEMBER: i64 = 5;

/// The assignor of each member that asks for one, by group and member.
#[derive(Debug, Default)]
pub struct Votes(BTreeMap<(String, String), String>);

impl Votes {
    pub fn count(&mut self, answer: &Value) {
        for record in answer["records"].as_array().into_iter().flatten().filter(|record| record["type"] == MEMBER) {
            let text = |key: &str| record["key"][key].as_str().unwrap_or_default().to_owned();
            let key = (text("groupId"), text("memberId"));
            match record["value"]["serverAssignor"].as_str() {
                Some(assignor) => self.0.insert(key, assignor.to_owned()),
                None => self.0.remove(&key),
            };
        }
    }

    /// Whether in some group several assignors have most votes.
    pub fn are_even(&self) -> bool {
        let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for ((group, _), assignor) in &self.0 {
            *counts.entry(group).or_default().entry(assignor).or_default() += 1;
        }
        counts.values().any(|votes| {
            let most = votes.values().max();
            votes.values().filter(|count| Some(*count) == most).count() > 1
        })
    }
}
