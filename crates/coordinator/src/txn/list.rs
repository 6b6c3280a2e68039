//! ListTransactions (D-2).

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use wire::messages::list_transactions_request::ListTransactionsRequest;
use wire::messages::list_transactions_response::TransactionState;
use wire::{ErrorCode, KStr};

use super::state::{Status, Txn};
use super::{Ctx, Reply};

/// Compiled size of a pattern: a client must not be able to take memory with it.
const PATTERN_BYTES: usize = 1 << 20;

/// What passes; the same for all shards.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// `None`: all states.
    states: Option<Vec<Status>>,
    /// Empty: all.
    producer_ids: Vec<i64>,
    /// Running for longer than so many milliseconds; negative: all.
    running_longer_than_ms: i64,
    /// The whole id matches.
    pattern: Option<Arc<Regex>>,
}

impl ListFilter {
    /// Yields the filter, and the names of states that nobody knows and that match nothing.
    ///
    /// # Errors
    /// INVALID_REGULAR_EXPRESSION.
    pub fn new(request: &ListTransactionsRequest) -> Result<(ListFilter, Vec<KStr>), ErrorCode> {
        let pattern = request.transactional_id_pattern.as_ref().filter(|pattern| !pattern.is_empty());
        let pattern = pattern.map(|pattern| whole(pattern)).transpose()?;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for name in &request.state_filters {
            match Status::ALL.into_iter().find(|status| status.name() == name.as_str()) {
                Some(status) => known.push(status),
                // States that are never seen here, but that Kafka knows.
                None if matches!(name.as_str(), "PrepareEpochFence" | "Dead") => {}
                None => unknown.push(name.clone()),
            }
        }
        let filter = ListFilter {
            states: (!request.state_filters.is_empty()).then_some(known),
            producer_ids: request.producer_id_filters.clone(),
            running_longer_than_ms: request.duration_filter,
            pattern,
        };
        Ok((filter, unknown))
    }

    fn passes(&self, id: &KStr, txn: &Txn, now_ms: i64) -> bool {
        self.states.as_ref().is_none_or(|states| states.contains(&txn.status))
            && (self.producer_ids.is_empty() || self.producer_ids.contains(&txn.producer_id))
            && (self.running_longer_than_ms < 0 || now_ms - txn.start_ms > self.running_longer_than_ms)
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
    }
}

fn whole(pattern: &str) -> Result<Arc<Regex>, ErrorCode> {
    let compile = |text: &str| RegexBuilder::new(text).size_limit(PATTERN_BYTES).build();
    // By itself first: `a)|(b` makes sense in parentheses only.
    let regex = compile(pattern).and_then(|_| compile(&format!("^(?:{pattern})$")));
    regex.map(Arc::new).map_err(|_| ErrorCode::InvalidRegularExpression)
}

pub(super) fn list(ctx: &mut Ctx<'_>, filter: &ListFilter) {
    let now_ms = ctx.at.wall_ms;
    ctx.out.wait_for = ctx.state.end_of_all();
    let listed =
        ctx.state.select(|id, txn| filter.passes(id, txn, now_ms)).into_iter().map(|(id, txn)| TransactionState {
            transactional_id: id.clone(),
            producer_id: txn.producer_id,
            transaction_state: KStr::from(txn.status.name()),
        });
    let listed = listed.collect();
    ctx.reply(Reply::Listed(listed));
}
