//! Runs one history on both coordinators, step by step. Where they may differ and go different ways from there, ours is
//! set back to where Kafka's is.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::compare::{self, Difference};
use super::coverage::Coverage;
use super::housemates::Housemates;
use super::known::{self, Step, Verdict};
use super::referee;
use super::schema::Schemas;
use super::session::Session;
use super::source::Source;
use super::timers;
use super::votes::Votes;

/// After that the smallest history found so far has to do.
const SHRINK_FOR: Duration = Duration::from_secs(20);

/// Lines of a history that every command after them relies on.
const GIVEN: usize = 2;

/// Makes up commands, and hears what Kafka answered.
pub trait History {
    /// The next command; `None` ends the history.
    fn next(&mut self) -> Option<Value>;
    fn observe(&mut self, command: &Value, answer: &Value);
}

/// A history that is given.
pub struct Given<'a>(pub std::slice::Iter<'a, String>);

impl History for Given<'_> {
    fn next(&mut self) -> Option<Value> {
        self.0.next().map(|line| serde_json::from_str(line).unwrap_or_default())
    }

    fn observe(&mut self, _command: &Value, _answer: &Value) {}
}

/// How a history ended.
#[derive(Debug, Default)]
pub struct Report {
    pub lines: Vec<String>,
    /// What differs in the answers to the last line, if that is a defect.
    pub defects: Vec<Difference>,
    /// What may differ, and did: each as often as it did.
    pub tolerated: Vec<&'static str>,
    /// Why the two went different ways, and ours had to follow.
    pub parted: Vec<&'static str>,
    /// Targets of ours that were judged by laws.
    pub targets: usize,
    pub coverage: Coverage,
}

/// The coordinators under comparison.
pub struct Duel<'a> {
    pub kafka: &'a mut dyn Source,
    pub schemas: &'a Arc<Schemas>,
}

impl Duel<'_> {
    /// # Errors
    /// If Kafka's coordinator cannot be asked, or says something that cannot be read.
    pub fn run(&mut self, history: &mut dyn History) -> Result<Report, String> {
        let targets = referee::Kafka::new();
        let mut ours = Session::new(self.schemas.clone());
        let mut votes = Votes::default();
        let mut housemates = Housemates::default();
        let mut timers = Value::Null;
        let mut refuses = false;
        let mut report = Report::default();
        while let Some(command) = history.next() {
            let line = command.to_string();
            let kafka = self.kafka.ask(&line)?;
            if kafka.get("fault").is_some() && !report.lines.is_empty() {
                return Err(format!("{} of {line}", kafka["fault"]));
            }
            ours.follow(&command, &kafka)?;
            targets.expect(&kafka);
            report.coverage.note(&command, &kafka);
            let answer = ours.line(&line).unwrap_or_default();
            report.lines.push(line);
            let were_even = votes.are_even();
            votes.count(&kafka);
            let votes_are_even = were_even || votes.are_even();
            let copies_were_shared = housemates.shared();
            housemates.follow(&command, &kafka);
            let timers_coincide = timers::coincide(&timers, &kafka["now"]);
            timers.clone_from(&kafka["timers"]);
            let refused = refuses && known::is_refused(&kafka);
            let (mut parts, mut ends) = (false, false);
            let broken = targets.done().into_iter().map(Difference::of_law);
            for found in compare::answers(&kafka, &answer).into_iter().chain(broken) {
                let step = Step {
                    command: &command,
                    kafka: &kafka,
                    ours: &answer,
                    votes_are_even,
                    copies_were_shared,
                    timers_coincide,
                    refuses,
                };
                match known::judge(&found, &step, &mut ours) {
                    Verdict::Tolerated(why) => report.tolerated.push(why),
                    Verdict::Parts(why) => {
                        parts = true;
                        report.parted.push(why);
                    }
                    Verdict::Ends(why) => {
                        ends = true;
                        report.parted.push(why);
                    }
                    Verdict::Defect => report.defects.push(found),
                }
            }
            if ends {
                report.defects.clear();
                break;
            }
            refuses = (refuses && !refused) || command["op"] == "failNextAppend";
            if refused && report.defects.is_empty() {
                parts = true;
                report.parted.push("C R-6: what a write that the log refuses leaves in memory");
            } else if parts {
                // What parted them explains the other differences of this step.
                report.defects.clear();
            } else if let Some(why) = known::parts_unseen(&command, &kafka, &mut ours) {
                parts = true;
                report.defects.clear();
                report.parted.push(why);
            }
            if parts {
                let restarted = self.kafka.restart()?;
                housemates.follow(&serde_json::json!({"op": "restart"}), &restarted);
                timers.clone_from(&restarted["timers"]);
                ours.catch_up();
                history.observe(&command, &kafka);
                history.observe(&serde_json::json!({"op": "restart"}), &restarted);
                continue;
            }
            if !report.defects.is_empty() {
                break;
            }
            history.observe(&command, &kafka);
        }
        report.targets = targets.judged();
        Ok(report)
    }

    /// Leaves out what is not needed to see a defect. The first lines, configuration and topics, stay.
    ///
    /// # Errors
    /// As `run`.
    pub fn shrink(&mut self, report: Report) -> Result<Report, String> {
        let started = std::time::Instant::now();
        let mut best = report;
        let mut size = (best.lines.len() / 2).max(1);
        loop {
            let mut start = GIVEN;
            let mut smaller = false;
            while start < best.lines.len() {
                if started.elapsed() > SHRINK_FOR {
                    return Ok(best);
                }
                let end = (start + size).min(best.lines.len());
                let lines: Vec<String> = [&best.lines[..start], &best.lines[end..]].concat();
                let tried = self.run(&mut Given(lines.iter()))?;
                if tried.defects.is_empty() {
                    start = end;
                } else {
                    best = tried;
                    smaller = true;
                }
            }
            if size == 1 && !smaller {
                return Ok(best);
            }
            size = (size / 2).max(1);
        }
    }
}
