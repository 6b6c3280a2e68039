//! Whether two members of one process of a streams group hold a task in the same role, by Kafka's records.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Types of the records that say of a member what it is, and what it has.
const MEMBER: i64 = 19;
const CURRENT: i64 = 22;

/// Lists of the tasks that can be at several processes, and so are looked up by process.
const COPIES: [[&str; 2]; 2] =
    [["standbyTasks", "standbyTasksPendingRevocation"], ["warmupTasks", "warmupTasksPendingRevocation"]];

#[derive(Debug, Default)]
struct Member {
    process: String,
    /// The role's place in `COPIES`, the subtopology and the partition.
    copies: BTreeSet<(usize, String, i64)>,
}

/// By group and member.
#[derive(Debug, Default)]
pub struct Housemates {
    members: BTreeMap<(String, String), Member>,
    shared: bool,
}

impl Housemates {
    pub fn follow(&mut self, command: &Value, answer: &Value) {
        self.shared &= command["op"] != "restart";
        for record in answer["records"].as_array().into_iter().flatten() {
            let text = |key: &str| record["key"][key].as_str().unwrap_or_default().to_owned();
            let (key, value) = ((text("groupId"), text("memberId")), &record["value"]);
            match record["type"].as_i64() {
                Some(MEMBER) if value.is_null() => {
                    self.members.remove(&key);
                }
                Some(MEMBER) => {
                    let process = value["processId"].as_str().unwrap_or_default().to_owned();
                    self.members.entry(key).or_default().process = process;
                }
                Some(CURRENT) => self.members.entry(key).or_default().copies = copies(value),
                _ => continue,
            }
            self.shared |= self.somebody_shares();
        }
    }

    /// It was so at some time since the last restart.
    pub fn shared(&self) -> bool {
        self.shared
    }

    fn somebody_shares(&self) -> bool {
        let mut seen = BTreeSet::new();
        let holdings = self.members.iter().flat_map(|((group, _), member)| {
            member.copies.iter().map(move |copy| (group.as_str(), member.process.as_str(), copy))
        });
        holdings.into_iter().any(|holding| !seen.insert(holding))
    }
}

fn copies(value: &Value) -> BTreeSet<(usize, String, i64)> {
    let lists = COPIES.iter().enumerate().flat_map(|(role, names)| names.iter().map(move |name| (role, name)));
    let tasks = lists.flat_map(|(role, name)| {
        value[*name].as_array().into_iter().flatten().flat_map(move |tasks| {
            let subtopology = tasks["subtopologyId"].as_str().unwrap_or_default();
            let partitions = tasks["partitions"].as_array().into_iter().flatten().filter_map(Value::as_i64);
            partitions.map(move |partition| (role, subtopology.to_owned(), partition))
        })
    });
    tasks.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Housemates;

    #[test]
    fn a_member_that_moves_in_with_one_that_has_the_same_standby_shares_it() {
        let process = |member: &str, process: &str| json!({"type": 19, "key": {"groupId": "g", "memberId": member}, "value": {"processId": process}});
        let has = |member: &str, task: i64| {
            let tasks = json!([{"subtopologyId": "0", "partitions": [task]}]);
            json!({"type": 22, "key": {"groupId": "g", "memberId": member}, "value": {"standbyTasks": tasks}})
        };
        let mut housemates = Housemates::default();
        let mut follow = |records: serde_json::Value| {
            housemates.follow(&json!({"op": "request"}), &json!({"records": records}));
            housemates.shared()
        };
        assert!(!follow(json!([process("a", "p1"), has("a", 1), process("b", "p1"), has("b", 2)])));
        assert!(!follow(json!([process("c", "p2"), has("c", 1)])));
        assert!(follow(json!([process("c", "p1")])));
        assert!(follow(json!([has("c", 3)])));
        housemates.follow(&json!({"op": "restart"}), &json!({}));
        assert!(!housemates.shared());
    }
}
