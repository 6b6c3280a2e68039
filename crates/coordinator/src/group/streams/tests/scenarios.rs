//! Runs the wire scenarios of the conformance suite (`tests/scenarios`) against a shard, without sockets and in virtual time.
//! The format is that of `../shared/harness/conformance`. What a scenario asks of the server is played here as far as it
//! is simple; scenarios that need more are listed, so that none is passed over by accident.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::matching::{Language, Vars, at, fill, mismatch};
use super::messages;
use super::server::{answer, overrides};
use crate::config::BrokerConfig;
use crate::testing::Bench;

/// Scenarios that are not about the coordinator alone: authorisation, other APIs, topic ids, checks of configs.
const NOT_HERE: [&str; 15] =
    ["A06", "A07", "A09", "A12", "A13", "A14", "A18", "A20", "A21", "A22", "A24", "O13", "O17", "T21", "V26"];

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../tests/scenarios/", $name, ".json")))),*]
    };
}

/// What stops a scenario.
enum Stop {
    Failed(String),
    /// It needs something that is not played here.
    Unsupported,
}

#[test]
fn conformance_scenarios_hold() {
    let mut suite = Suite::default();
    for (name, file) in files!["common-base", "common-classic", "common-consumer", "common-streams"] {
        suite.define(&serde_json::from_str(file).unwrap_or_else(|error| panic!("{name}: {error}")));
    }
    let (mut passed, mut failures, mut skipped) = (0, Vec::new(), BTreeSet::new());
    for (name, file) in files![
        "streams-1-validation",
        "streams-2-membership",
        "streams-3-static",
        "streams-4-topology",
        "streams-5-delays-configs",
        "streams-6-endpoints",
        "streams-7-standbys-processes",
        "streams-8-offsets",
        "streams-9-admin",
        "streams-x-second",
    ] {
        let file: Value = serde_json::from_str(file).unwrap_or_else(|error| panic!("{name}: {error}"));
        for scenario in file["scenarios"].as_array().expect("a list of scenarios") {
            let id = scenario["id"].as_str().expect("an id");
            if scenario["only"] == "kafka" {
                continue;
            }
            if NOT_HERE.contains(&id) {
                skipped.insert(id.to_owned());
                continue;
            }
            match suite.run(scenario, &file["defaults"]) {
                Ok(()) => passed += 1,
                Err(Stop::Unsupported) => _ = skipped.insert(id.to_owned()),
                Err(Stop::Failed(why)) => failures.push(format!("{id}: {why}")),
            }
        }
    }
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), passed + failures.len(), failures.join("\n"));
    assert_eq!(skipped, NOT_HERE.iter().map(|id| (*id).to_owned()).collect(), "scenarios that did not run");
    assert!(passed > 90, "only {passed} scenarios ran");
}

#[derive(Default)]
struct Suite {
    language: Language,
    requests: Map<String, Value>,
    procedures: Map<String, Value>,
}

impl Suite {
    fn define(&mut self, file: &Value) {
        let section = |name: &str| file[name].as_object().cloned().unwrap_or_default();
        self.language.short.extend(section("short"));
        self.requests.extend(section("requests"));
        self.procedures.extend(section("procedures"));
        for (field, keys) in section("fold") {
            let key = keys[0].as_str().expect("a key field").to_owned();
            self.language.fold.insert(field, (key, keys[1].as_str().map(str::to_owned)));
        }
    }

    fn run(&self, scenario: &Value, defaults: &Value) -> Result<(), Stop> {
        let field = |name: &str| if scenario[name].is_null() { &defaults[name] } else { &scenario[name] };
        let mut run = Run::new(self, &scenario["id"], field("profile") == "second");
        for (name, partitions) in field("topics").as_object().into_iter().flatten() {
            run.create(name, partitions);
        }
        if let Some(config) = field("config").as_object() {
            run.alter(config)?;
        }
        for step in scenario["steps"].as_array().expect("a list of steps") {
            run.step(step)?;
        }
        Ok(())
    }
}

/// One scenario on a bench of its own.
pub(super) struct Run<'a> {
    suite: &'a Suite,
    pub bench: Bench,
    vars: Vars,
    pub overrides: BTreeMap<String, String>,
}

impl<'a> Run<'a> {
    fn new(suite: &'a Suite, id: &Value, second: bool) -> Self {
        let mut broker = BrokerConfig {
            streams_min_session_timeout_ms: 500,
            streams_min_heartbeat_interval_ms: 200,
            consumer_min_session_timeout_ms: 500,
            consumer_min_heartbeat_interval_ms: 200,
            classic_initial_rebalance_delay_ms: Some(0),
            streams_max_size: 5,
            ..BrokerConfig::default()
        };
        if second {
            broker.streams_max_size = usize::MAX;
            broker.offsets_retention_ms = 60_000;
            broker.offsets_retention_check_interval_ms = 1_000;
        }
        let id = id.as_str().expect("an id");
        let vars = [("id", id.to_owned()), ("g", format!("group-{id}")), ("t", format!("{id}-"))];
        let vars = vars.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        Run { suite, bench: Bench::with_config(broker), vars, overrides: BTreeMap::new() }
    }

    pub(super) fn group(&self) -> String {
        self.vars["g"].as_str().expect("a group id").to_owned()
    }

    fn create(&mut self, name: &str, partitions: &Value) {
        let topic = format!("{}{name}", self.vars["t"].as_str().expect("a prefix"));
        let count = fill(partitions, &self.vars).as_i64().expect("a number of partitions");
        let id = self.bench.set_topic(&topic, count as i32);
        self.vars.insert(format!("{name}Id"), json!(id.to_string()));
        self.vars.insert(name.to_owned(), json!(topic));
    }

    fn alter(&mut self, configs: &Map<String, Value>) -> Result<(), Stop> {
        for (name, value) in configs {
            match value {
                Value::Null => self.overrides.remove(name),
                Value::String(text) => self.overrides.insert(name.clone(), text.clone()),
                other => self.overrides.insert(name.clone(), other.to_string()),
            };
        }
        let overrides = overrides(&self.overrides).ok_or(Stop::Unsupported)?;
        let group = self.group();
        self.bench.configure_group(&group, overrides);
        Ok(())
    }

    fn step(&mut self, step: &Value) -> Result<(), Stop> {
        if step["only"] == "kafka" {
            return Ok(());
        }
        let fields = step.as_object().expect("a step is a map");
        for (name, arg) in fields {
            match name.as_str() {
                "wait" => {
                    self.bench.advance(arg.as_u64().expect("milliseconds"));
                    return Ok(());
                }
                "create" => {
                    arg.as_object().into_iter().flatten().for_each(|(name, partitions)| self.create(name, partitions));
                    return Ok(());
                }
                "alter" => {
                    let configs = arg.as_object().ok_or(Stop::Unsupported)?;
                    return self.alter(configs);
                }
                "set" => {
                    for (name, value) in arg.as_object().into_iter().flatten() {
                        let value = fill(value, &self.vars);
                        self.vars.insert(name.clone(), value);
                    }
                    return Ok(());
                }
                "each" => {
                    for row in arg.as_array().into_iter().flatten() {
                        self.vars.extend(row.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
                        self.steps(&step["do"])?;
                    }
                    return Ok(());
                }
                "repeat" => {
                    for _ in 0..arg.as_u64().expect("a number") {
                        self.steps(&step["do"])?;
                    }
                    return Ok(());
                }
                // Connections make no difference to a shard.
                "close" => return Ok(()),
                "restart" => {
                    self.bench.restart();
                    return Ok(());
                }
                "log" => {
                    let records: Value = self.bench.records().iter().map(messages::record).collect();
                    return self.check(step, &Value::Null, &json!({"records": records}));
                }
                name if self.suite.procedures.contains_key(name) => {
                    let suite = self.suite;
                    let procedure = &suite.procedures[name];
                    self.bind(procedure, arg);
                    return self.steps(&procedure["steps"]);
                }
                name if name == "request" || self.suite.requests.contains_key(name) => return self.call(name, step),
                _ => {}
            }
        }
        Err(Stop::Unsupported)
    }

    fn steps(&mut self, steps: &Value) -> Result<(), Stop> {
        steps.as_array().into_iter().flatten().try_for_each(|step| self.step(step))
    }

    /// Positional arguments become variables, named ones fields of the body.
    fn bind(&mut self, definition: &Value, arg: &Value) -> Map<String, Value> {
        for (name, value) in definition["defaults"].as_object().into_iter().flatten() {
            let value = fill(value, &self.vars);
            self.vars.insert(name.clone(), value);
        }
        let names: Vec<&str> = definition["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let args = match arg {
            Value::Null => Vec::new(),
            Value::Array(args) => args.clone(),
            other => vec![other.clone()],
        };
        let mut fields = Map::new();
        for (at, value) in args.iter().enumerate() {
            match value.as_object() {
                Some(named) if at + 1 == args.len() && is_named(named, at, &names, &self.suite.language) => {
                    for (name, value) in self.suite.language.expand(named) {
                        if names.contains(&name.as_str()) {
                            let value = fill(&value, &self.vars);
                            self.vars.insert(name, value);
                        } else {
                            fields.insert(name, value);
                        }
                    }
                }
                _ => {
                    let name = names.get(at).unwrap_or_else(|| panic!("too many arguments: {arg}"));
                    let value = fill(value, &self.vars);
                    self.vars.insert((*name).to_owned(), value);
                }
            }
        }
        fields
    }

    fn call(&mut self, name: &str, step: &Value) -> Result<(), Stop> {
        // What topics look like is the server's.
        if matches!(name, "metadata" | "topic-configs") {
            return Ok(());
        }
        let suite = self.suite;
        let definition = if name == "request" { &step["request"] } else { &suite.requests[name] };
        let extra = if name == "request" { Map::new() } else { self.bind(definition, &step[name]) };
        let mut body = suite.language.expand(definition["body"].as_object().unwrap_or(&Map::new()));
        body.extend(extra);
        let version = if step["version"].is_null() { &definition["version"] } else { &step["version"] };
        let version = fill(version, &self.vars).as_i64().expect("a version") as i16;
        for (field, since) in definition["since"].as_object().into_iter().flatten() {
            if i64::from(version) < since.as_i64().expect("a version") {
                body.remove(field);
            }
        }
        let body = suite.language.unfold(&fill(&Value::Object(body), &self.vars));
        let api = definition["api"].as_str().expect("the name of an api");
        let client = step["clientId"].as_str().unwrap_or("conformance");
        let deadline = self.bench.now().mono_ms + step["until"].as_u64().unwrap_or(0);
        loop {
            let answer = answer(self, api, version, client, &body).ok_or(Stop::Unsupported)?;
            match self.check(step, definition, &answer) {
                Err(Stop::Failed(_)) if self.bench.now().mono_ms < deadline => {
                    self.bench.advance(step["every"].as_u64().unwrap_or(100));
                }
                Err(Stop::Failed(why)) => {
                    let said = step["say"].as_str().unwrap_or("");
                    return Err(Stop::Failed(format!("{name} {}: {why} {said}", step[name])));
                }
                other => return other,
            }
        }
    }

    fn check(&mut self, step: &Value, definition: &Value, answer: &Value) -> Result<(), Stop> {
        let view = self.suite.language.fold(answer);
        let expect = &step["expect"];
        let root = fill(&definition["at"], &self.vars);
        let view = if *expect == "anything" { Some(&view) } else { at(&view, root.as_str().unwrap_or("")) };
        let Some(view) = view else { return Err(Stop::Failed(format!("nothing at {root} in {answer}"))) };
        if *expect != "anything" {
            let given = self.suite.language.expand(expect.as_object().unwrap_or(&Map::new()));
            let is_ok = given.get("errorCode").is_none_or(|code| *code == 0 || *code == "NONE");
            let common = &definition[if is_ok { "ok" } else { "error" }];
            let mut full = self.suite.language.expand(common.as_object().unwrap_or(&Map::new()));
            full.extend(given);
            if let Some(why) = mismatch(&fill(&Value::Object(full), &self.vars), Some(view), "") {
                return Err(Stop::Failed(format!(
                    "{why} in {}",
                    answer.to_string().chars().take(900).collect::<String>()
                )));
            }
        }
        for (name, path) in step["capture"].as_object().into_iter().flatten() {
            let path = fill(path, &self.vars);
            let Some(found) = at(view, path.as_str().expect("a path")) else {
                return Err(Stop::Failed(format!("nothing to capture at {path}")));
            };
            self.vars.insert(name.clone(), found.clone());
        }
        Ok(())
    }
}

/// Whether a last argument names arguments or fields, or is the value of an argument itself.
fn is_named(fields: &Map<String, Value>, at: usize, names: &[&str], language: &Language) -> bool {
    let Some(first) = fields.keys().next() else { return at >= names.len() };
    let is_field = !first.starts_with('$') && first.parse::<i64>().is_err() && !first.contains('.');
    at >= names.len() || names.contains(&first.as_str()) || language.short.contains_key(first) || is_field
}
