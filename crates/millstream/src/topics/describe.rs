//! `millstream topics describe`.

use std::collections::BTreeMap;

use client::admin::configs::{self, Resource};
use client::admin::positions::{Position, offsets};
use client::admin::topics::{self, Topic};
use client::admin::{Isolation, TopicPartition};
use client::{Client, ClientError};
use serde_json::{Value, json};

use crate::connect::Connect;
use crate::failure::Failure;
use crate::output::{Output, Table, or_dash};

/// Where a partition begins and ends.
struct Ends {
    start: Option<i64>,
    stable: Option<i64>,
    end: Option<i64>,
}

pub async fn run(names: &[String], connect: &Connect, out: &mut Output) -> Result<(), Failure> {
    let mut client = connect.client();
    let mut shown = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let topic = topics::get(&mut client, name).await?;
        let ends = ends(&mut client, &topic).await?;
        let mut settings = configs::describe(&mut client, Resource::Topic(name)).await?;
        settings.retain(configs::Setting::is_own);
        if connect.json {
            shown.push(as_json(&topic, &ends, &settings));
            continue;
        }
        if number > 0 {
            out.line("");
        }
        out.line(format!("Topic       {}", topic.name));
        out.line(format!("Id          {}", topic.id));
        for setting in &settings {
            out.line(format!("Setting     {}={}", setting.name, setting.value.as_deref().unwrap_or_default()));
        }
        out.line("");
        table(&topic, &ends, out);
    }
    if connect.json {
        out.json(&json!({ "topics": shown }))?;
    }
    Ok(())
}

async fn ends(client: &mut Client, topic: &Topic) -> Result<Vec<Ends>, ClientError> {
    let at = |number: i32| TopicPartition::new(&topic.name, number);
    let all = |position| -> BTreeMap<_, _> { topic.partitions.iter().map(|p| (at(p.partition), position)).collect() };
    let starts = offsets(client, &all(Position::Earliest), Isolation::ReadUncommitted).await?;
    let stable = offsets(client, &all(Position::Latest), Isolation::ReadCommitted).await?;
    let ends = offsets(client, &all(Position::Latest), Isolation::ReadUncommitted).await?;
    let known = |offsets: &BTreeMap<_, Result<Option<i64>, _>>, number| match offsets.get(&at(number)) {
        Some(Ok(offset)) => *offset,
        _ => None,
    };
    let of = |number| Ends { start: known(&starts, number), stable: known(&stable, number), end: known(&ends, number) };
    Ok(topic.partitions.iter().map(|partition| of(partition.partition)).collect())
}

fn as_json(topic: &Topic, ends: &[Ends], settings: &[configs::Setting]) -> Value {
    let partitions = topic.partitions.iter().zip(ends).map(|(partition, ends)| {
        json!({
            "partition": partition.partition, "leader": partition.leader_id, "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas, "isr": partition.isr,
            "start": ends.start, "last_stable": ends.stable, "end": ends.end,
        })
    });
    json!({
        "topic": topic.name, "id": topic.id, "internal": topic.internal,
        "partitions": partitions.collect::<Vec<_>>(), "settings": settings,
    })
}

fn table(topic: &Topic, ends: &[Ends], out: &mut Output) {
    let mut table = Table::new(&["PARTITION", "LEADER", "EPOCH", "START", "LAST STABLE", "END", "REPLICAS", "ISR"]);
    let ids = |ids: &[i32]| ids.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    for (partition, ends) in topic.partitions.iter().zip(ends) {
        table.row(vec![
            partition.partition.into(),
            or_dash(partition.leader.as_ref().map(|_| partition.leader_id)),
            partition.leader_epoch.into(),
            or_dash(ends.start),
            or_dash(ends.stable),
            or_dash(ends.end),
            ids(&partition.replicas).into(),
            ids(&partition.isr).into(),
        ]);
    }
    out.table(&table);
}
