//! What AlterConfigs and IncrementalAlterConfigs have in common (M-12): checks of the request's form, and one change for all
//! resources.

use std::collections::BTreeMap;

use wire::KStr;

use super::RequestContext;
use crate::topics::{Alteration, Operation, Refusal, ResourceType};

pub(super) const BROKER_LOGGER: i8 = 8;

/// One resource of a request, in whatever form it came.
pub(super) struct Wish {
    pub kind: i8,
    pub name: KStr,
    pub keys: Vec<WishedKey>,
}

pub(super) struct WishedKey {
    pub name: KStr,
    /// 0 set, 1 delete, 2 append, 3 subtract.
    pub operation: i8,
    pub value: Option<KStr>,
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Carries out what can be carried out, and says of each wish what became of it, in order. `replace`: what is not named is unset.
pub(super) async fn alter(
    cx: &RequestContext<'_>,
    wishes: &[Wish],
    replace: bool,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    let mut times: BTreeMap<(i8, &KStr), usize> = BTreeMap::new();
    for wish in wishes {
        *times.entry((wish.kind, &wish.name)).or_default() += 1;
    }
    let mut results: Vec<Result<(), Refusal>> = Vec::with_capacity(wishes.len());
    let mut alterations = Vec::new();
    let mut positions = Vec::new();
    for (at, wish) in wishes.iter().enumerate() {
        let once = times.get(&(wish.kind, &wish.name)) == Some(&1);
        let checked = if once {
            alteration(wish, replace)
        } else {
            Err(Refusal::invalid_request("Each resource must appear at most once."))
        };
        match checked {
            Ok(alteration) => {
                alterations.push(alteration);
                positions.push(at);
                results.push(Ok(()));
            }
            Err(refusal) => results.push(Err(refusal)),
        }
    }
    match cx.broker.topics.alter_configs(alterations, validate_only).await {
        Ok(altered) => positions.into_iter().zip(altered).for_each(|(at, result)| results[at] = result),
        Err(refusal) => positions.into_iter().for_each(|at| results[at] = Err(refusal.clone())),
    }
    results
}

fn alteration(wish: &Wish, replace: bool) -> Result<Alteration, Refusal> {
    let mut names: Vec<&KStr> = wish.keys.iter().map(|key| &key.name).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::invalid_request("Error due to duplicate config keys"));
    }
    let null = |key: &&WishedKey| key.operation != DELETE && key.value.is_none();
    let nulls: Vec<&str> = wish.keys.iter().filter(null).map(|key| key.name.as_str()).collect();
    if !nulls.is_empty() {
        return Err(Refusal::invalid_request(format!("Null value not supported for : {}", nulls.join(", "))));
    }
    let Some(kind) = ResourceType::from_code(wish.kind) else {
        return Err(Refusal::invalid_request(format!("Unknown resource type {}", wish.kind)));
    };
    let operations = wish.keys.iter().map(|key| (key.name.clone(), operation(key)));
    Ok(Alteration { kind, name: wish.name.clone(), operations: operations.collect(), replace })
}

fn operation(key: &WishedKey) -> Operation {
    let value = key.value.clone().unwrap_or(KStr::EMPTY);
    match key.operation {
        SET => Operation::Set(value),
        DELETE => Operation::Delete,
        APPEND => Operation::Append(value),
        SUBTRACT => Operation::Subtract(value),
        other => Operation::Unknown(other),
    }
}
