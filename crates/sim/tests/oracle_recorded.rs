//! Histories with what Kafka 4.4's coordinator answered, replayed on ours: `tests/oracle/*.jsonl`, which were made up by
//! `sim oracle --record`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sim::oracle::Schemas;
use sim::oracle::duel::{Duel, Report};
use sim::oracle::source::Recorded;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|each| each == "jsonl")).collect();
    paths.sort();
    paths
}

fn replay(schemas: &Arc<Schemas>, lines: &[&str]) -> Result<Report, String> {
    let (mut commands, mut kafka) = Recorded::read(lines)?;
    Duel { kafka: &mut kafka, schemas }.run(&mut commands)
}

fn defects(path: &Path, report: &Result<Report, String>) -> Vec<String> {
    let name = path.file_name().unwrap().to_string_lossy();
    match report {
        Err(error) => vec![format!("{name}: {error}")],
        Ok(report) => {
            let last = report.lines.last().map_or("", String::as_str);
            report.defects.iter().map(|found| format!("{name}: after {last}\n  {found}")).collect()
        }
    }
}

#[test]
fn recorded_histories_are_answered_as_by_kafka() {
    let schemas = Arc::new(Schemas::load());
    let mut failures = Vec::new();
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let report = replay(&schemas, &text.lines().collect::<Vec<_>>());
        failures.extend(defects(&path, &report));
        if let Ok(report) = report {
            assert!(report.lines.len() >= 50, "{}: {} commands", path.display(), report.lines.len());
            let family = path.file_stem().unwrap().to_string_lossy().split('-').next().unwrap().to_owned();
            let (histories, targets) = seen.entry(family).or_default();
            *histories += 1;
            *targets += report.targets;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let families: Vec<_> = seen.keys().map(String::as_str).collect();
    assert_eq!(families, ["classic", "consumer", "migration", "streams"]);
    for family in ["consumer", "streams"] {
        assert!(seen[family].1 > 0, "no target of {family} was judged");
    }
}
