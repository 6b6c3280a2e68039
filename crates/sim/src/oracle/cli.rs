//! `sim oracle`: many histories of one family, from the command line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use super::coverage::Coverage;
use super::duel::{Duel, Given, Report};
use super::history::Family;
use super::process::Oracle;
use super::schema::Schemas;
use super::source::Recorder;

pub const USAGE: &str = "usage: sim oracle --family classic|consumer|migration|streams [--histories N] [--seed S] [--steps M] [--defects N] [--record FOLDER]
       sim oracle --replay FILE";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub family: Family,
    pub histories: u64,
    /// Of the first history.
    pub seed: u64,
    /// Commands of a history.
    pub steps: usize,
    /// That are shown before giving up.
    pub defects: usize,
    /// Where to write down the histories with Kafka's answers.
    pub record: Option<PathBuf>,
}

impl Options {
    /// `None` if the words make no sense.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Option<Options> {
        let mut options =
            Options { family: Family::Classic, histories: 100, seed: 1, steps: 80, defects: 3, record: None };
        let mut family = None;
        while let Some(word) = words.next() {
            let value = words.next()?;
            match word.as_str() {
                "--family" => family = Some(Family::of(&value)?),
                "--histories" => options.histories = value.parse().ok()?,
                "--seed" => options.seed = value.parse().ok()?,
                "--steps" => options.steps = value.parse().ok()?,
                "--defects" => options.defects = value.parse().ok()?,
                "--record" => options.record = Some(value.into()),
                _ => return None,
            }
        }
        options.family = family?;
        Some(options)
    }
}

/// What many histories came to.
#[derive(Debug, Default)]
pub struct Summary {
    pub histories: u64,
    pub steps: usize,
    /// Targets of ours that were judged by laws.
    pub targets: usize,
    pub tolerated: BTreeMap<&'static str, usize>,
    pub parted: BTreeMap<&'static str, usize>,
    pub coverage: Coverage,
    /// The smallest histories that show them.
    pub defects: Vec<String>,
}

impl Summary {
    /// Adds a history without a defect.
    pub fn add(&mut self, report: Report) {
        self.histories += 1;
        self.steps += report.lines.len();
        self.targets += report.targets;
        self.coverage.add(&report.coverage);
        for why in report.tolerated {
            *self.tolerated.entry(why).or_default() += 1;
        }
        for why in report.parted {
            *self.parted.entry(why).or_default() += 1;
        }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for defect in &self.defects {
            writeln!(f, "{defect}\n")?;
        }
        writeln!(f, "{} histories, {} steps, {} targets judged", self.histories, self.steps, self.targets)?;
        for (kind, reasons) in [("tolerated", &self.tolerated), ("parted", &self.parted)] {
            for (why, times) in reasons {
                writeln!(f, "  {kind} {times} times: {why}")?;
            }
        }
        write!(f, "{}", self.coverage)
    }
}

/// Runs histories on the oracle and on our shard.
///
/// # Errors
/// If the oracle cannot be asked, or a recording not be written.
pub fn compare(oracle: &mut Oracle, schemas: &Arc<Schemas>, options: &Options) -> Result<Summary, String> {
    let mut summary = Summary::default();
    for seed in options.seed..options.seed + options.histories {
        let mut recorder = Recorder { of: oracle, lines: Vec::new() };
        let mut history = options.family.history(seed, options.steps);
        let report = Duel { kafka: &mut recorder, schemas }.run(&mut *history)?;
        let lines = recorder.lines;
        if report.defects.is_empty() {
            summary.add(report);
            if let Some(folder) = &options.record {
                let path = folder.join(format!("{}-{seed}.jsonl", options.family.name()));
                std::fs::write(&path, lines.join("\n") + "\n").map_err(|e| format!("{}: {e}", path.display()))?;
            }
            continue;
        }
        let report = Duel { kafka: oracle, schemas }.shrink(report)?;
        let found: Vec<String> = report.defects.iter().map(|found| format!("  {found}")).collect();
        let name = options.family.name();
        let defect = format!("{name}, seed {seed}:\n{}\n{}", report.lines.join("\n"), found.join("\n"));
        eprintln!("{defect}\n");
        summary.defects.push(defect);
        if summary.defects.len() >= options.defects {
            break;
        }
    }
    Ok(summary)
}

/// The commands of a file, one a line, with what Kafka answers to each, and what differs in the end.
fn replay(script: &Path, schemas: &Arc<Schemas>, file: &str) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut oracle = Oracle::start(script)?;
    let mut recorder = Recorder { of: &mut oracle, lines: Vec::new() };
    let report = Duel { kafka: &mut recorder, schemas }.run(&mut Given(lines.iter()))?;
    for line in &recorder.lines {
        println!("{line}");
    }
    for found in &report.defects {
        println!("{found}");
    }
    Ok(if report.defects.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The command line's `oracle`.
pub fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.collect();
    let replayed = match &words[..] {
        [option, file] if option == "--replay" => Some(file.clone()),
        _ => None,
    };
    let options = Options::parse(words.into_iter());
    if options.is_none() && replayed.is_none() {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let Some(script) = Oracle::script() else {
        eprintln!("no Java, or no coordinator oracle beside the checkout (COORDINATOR_ORACLE names its run.sh)");
        return ExitCode::FAILURE;
    };
    let schemas = Arc::new(Schemas::load());
    let Some(options) = options else {
        return replay(&script, &schemas, &replayed.unwrap_or_default()).unwrap_or_else(|error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        });
    };
    match Oracle::start(&script).and_then(|mut oracle| compare(&mut oracle, &schemas, &options)) {
        Ok(summary) if summary.defects.is_empty() => {
            print!("{}: {summary}", options.family.name());
            for rule in summary.coverage.missing(options.family) {
                println!("  NOT REACHED: {rule}");
            }
            ExitCode::SUCCESS
        }
        Ok(summary) => {
            print!("{summary}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
