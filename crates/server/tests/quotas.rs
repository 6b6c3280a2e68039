//! AlterClientQuotas and DescribeClientQuotas over real sockets (M-13).

mod common;

use common::{Client, TestBroker};
use wire::KStr;
use wire::messages::alter_client_quotas_request::{AlterClientQuotasRequest, EntityData, EntryData, OpData};
use wire::messages::describe_client_quotas_request::{ComponentData, DescribeClientQuotasRequest};

const UNSUPPORTED_VERSION: i16 = 35;
const INVALID_REQUEST: i16 = 42;
const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

type Names = &'static [(&'static str, Option<&'static str>)];

const DEFAULT_USER: Names = &[("user", None)];
const ANNA: Names = &[("user", Some("anna"))];
const ANNAS_APP: Names = &[("user", Some("anna")), ("client-id", Some("app"))];
const ADDRESS: Names = &[("ip", Some("127.0.0.1"))];

fn entry(names: Names, values: &[(&str, Option<f64>)]) -> EntryData {
    let entity = names
        .iter()
        .map(|(kind, name)| EntityData { entity_type: KStr::copy(kind), entity_name: name.map(KStr::copy) });
    let op = |(key, value): &(&str, Option<f64>)| OpData {
        key: KStr::copy(key),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
    };
    EntryData { entity: entity.collect(), ops: values.iter().map(op).collect() }
}

async fn alter(client: &mut Client, validate_only: bool, entries: Vec<EntryData>) -> Vec<i16> {
    let request = AlterClientQuotasRequest { entries, validate_only };
    client.call(1, &request).await.entries.iter().map(|entry| entry.error_code).collect()
}

/// `type=name ... key=value ...` of each entry, in the order of the answer.
async fn describe(client: &mut Client, filter: &[(&str, i8, Option<&str>)], strict: bool) -> Result<Vec<String>, i16> {
    let component = |(kind, match_type, name): &(&str, i8, Option<&str>)| ComponentData {
        entity_type: KStr::copy(kind),
        match_type: *match_type,
        match_: name.map(KStr::copy),
    };
    let request = DescribeClientQuotasRequest { components: filter.iter().map(component).collect(), strict };
    let answer = client.call(1, &request).await;
    let entries = answer.entries.ok_or(answer.error_code)?;
    Ok(entries
        .iter()
        .map(|entry| {
            let name = |name: &Option<KStr>| name.as_ref().map_or("<default>".to_owned(), ToString::to_string);
            let names = entry.entity.iter().map(|each| format!("{}={}", each.entity_type, name(&each.entity_name)));
            let values = entry.values.iter().map(|each| format!("{}={}", each.key, each.value));
            names.chain(values).collect::<Vec<_>>().join(" ")
        })
        .collect())
}

#[tokio::test]
async fn m_13_quotas_are_set_found_by_filter_removed_and_survive_a_crash() {
    let broker = TestBroker::start(&[("offsets.topic.num.partitions", "1")]).await;
    let mut client = broker.connect().await;
    assert_eq!(describe(&mut client, &[], false).await, Ok(vec![]));
    let entries = vec![
        entry(DEFAULT_USER, &[("producer_byte_rate", Some(1_024_000.0))]),
        entry(ANNA, &[("request_percentage", Some(0.5)), ("consumer_byte_rate", Some(7.0))]),
        entry(ANNAS_APP, &[("controller_mutation_rate", Some(1.5))]),
        entry(ADDRESS, &[("connection_creation_rate", Some(10.0))]),
    ];
    assert_eq!(alter(&mut client, true, entries.clone()).await, [0; 4]);
    assert_eq!(describe(&mut client, &[], false).await, Ok(vec![]), "only validated");
    assert_eq!(alter(&mut client, false, entries).await, [0; 4]);
    let broker = broker.crash().await;
    let mut client = broker.connect().await;
    let (default_user, anna) =
        ("user=<default> producer_byte_rate=1024000", "user=anna consumer_byte_rate=7 request_percentage=0.5");
    let (app, address) =
        ("client-id=app user=anna controller_mutation_rate=1.5", "ip=127.0.0.1 connection_creation_rate=10");
    type Case<'a> = (&'a [(&'a str, i8, Option<&'a str>)], bool, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (&[], false, &[app, address, default_user, anna]),
        (&[("user", EXACT, Some("anna"))], false, &[app, anna]),
        (&[("user", EXACT, Some("anna"))], true, &[anna]),
        (&[("user", DEFAULT, None)], false, &[default_user]),
        (&[("user", ANY, None)], false, &[app, default_user, anna]),
        (&[("user", ANY, None), ("client-id", EXACT, Some("app"))], true, &[app]),
        (&[("client-id", DEFAULT, None)], false, &[]),
        (&[("ip", ANY, None)], true, &[address]),
    ];
    for (filter, strict, expected) in cases {
        let found = describe(&mut client, filter, *strict).await;
        assert_eq!(found, Ok(expected.iter().map(ToString::to_string).collect()), "{filter:?} {strict}");
    }
    let removals =
        vec![entry(ANNA, &[("consumer_byte_rate", None)]), entry(ADDRESS, &[("connection_creation_rate", None)])];
    assert_eq!(alter(&mut client, false, removals).await, [0; 2]);
    let anna = "user=anna request_percentage=0.5";
    assert_eq!(describe(&mut client, &[("user", EXACT, Some("anna"))], true).await, Ok(vec![anna.to_owned()]));
    assert_eq!(describe(&mut client, &[("ip", ANY, None)], false).await, Ok(vec![]));
}

#[tokio::test]
async fn bad_quotas_are_refused_and_good_ones_of_the_same_request_are_set() {
    let broker = TestBroker::start(&[("offsets.topic.num.partitions", "1")]).await;
    let mut client = broker.connect().await;
    let rate = &[("producer_byte_rate", Some(1.0))];
    let bad = [
        entry(&[], rate),
        entry(&[("team", Some("a"))], rate),
        entry(&[("user", Some(""))], rate),
        entry(&[("user", Some("a")), ("user", Some("b"))], rate),
        entry(&[("user", Some("a")), ("ip", Some("127.0.0.1"))], rate),
        entry(ADDRESS, rate),
        entry(ANNA, &[("connection_creation_rate", Some(1.0))]),
        entry(ANNA, &[("speed", Some(1.0))]),
        entry(ANNA, &[("producer_byte_rate", Some(0.0))]),
        entry(ANNA, &[("producer_byte_rate", Some(f64::NAN))]),
        entry(ANNA, &[("producer_byte_rate", Some(1.5))]),
        entry(ADDRESS, &[("connection_creation_rate", Some(3e9))]),
        entry(&[("ip", Some("no such address"))], &[("connection_creation_rate", Some(1.0))]),
        entry(ANNA, &[("producer_byte_rate", Some(1.0)), ("producer_byte_rate", None)]),
    ];
    for bad in bad {
        let good = entry(DEFAULT_USER, rate);
        assert_eq!(alter(&mut client, false, vec![bad.clone(), good]).await, [INVALID_REQUEST, 0], "{bad:?}");
    }
    // What is not there can be removed, whatever it is.
    assert_eq!(alter(&mut client, false, vec![entry(ADDRESS, &[("speed", None)])]).await, [0]);
    let set = vec!["user=<default> producer_byte_rate=1".to_owned()];
    assert_eq!(describe(&mut client, &[], false).await, Ok(set), "nothing else");
    for (filter, expected) in [
        (vec![("team", ANY, None)], UNSUPPORTED_VERSION),
        (vec![("", ANY, None)], INVALID_REQUEST),
        (vec![("user", EXACT, None)], INVALID_REQUEST),
        (vec![("user", DEFAULT, Some("a"))], INVALID_REQUEST),
        (vec![("user", ANY, Some("a"))], INVALID_REQUEST),
        (vec![("user", 3, None)], INVALID_REQUEST),
        (vec![("user", ANY, None), ("user", DEFAULT, None)], INVALID_REQUEST),
        (vec![("user", ANY, None), ("ip", ANY, None)], INVALID_REQUEST),
    ] {
        assert_eq!(describe(&mut client, &filter, false).await, Err(expected), "{filter:?}");
    }
}
