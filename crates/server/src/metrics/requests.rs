//! Requests by API: numbers, bytes, and the errors in the answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use wire::{ApiKey, ErrorCode, Writer};

use super::exposition::Exposition;
use crate::api::APIS;

/// Of one API.
#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    request_bytes: AtomicU64,
    answers: AtomicU64,
    answer_bytes: AtomicU64,
    /// Parts of answers (partitions, groups, the answer itself) that have no error.
    fine: AtomicU64,
}

/// See the module. A request costs a few relaxed additions; only errors take a lock.
#[derive(Debug)]
pub(crate) struct Requests {
    /// By place in the table of APIs.
    apis: Vec<Counts>,
    errors: Mutex<BTreeMap<(i16, i16), u64>>,
}

impl Default for Requests {
    fn default() -> Self {
        Requests { apis: APIS.iter().map(|_| Counts::default()).collect(), errors: Mutex::default() }
    }
}

impl Requests {
    /// A request has arrived, with that many bytes.
    pub fn arrived(&self, key: ApiKey, bytes: usize) {
        if let Some(counts) = self.of(key) {
            counts.requests.fetch_add(1, Ordering::Relaxed);
            counts.request_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Its answer was written.
    pub fn answered(&self, key: ApiKey, answer: &Writer) {
        let Some(counts) = self.of(key) else { return };
        counts.answers.fetch_add(1, Ordering::Relaxed);
        counts.answer_bytes.fetch_add(answer.len() as u64, Ordering::Relaxed);
        let tally = answer.errors();
        counts.fine.fetch_add(u64::from(tally.none), Ordering::Relaxed);
        if !tally.some.is_empty() {
            let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
            for (code, times) in &tally.some {
                *errors.entry((key.code(), *code)).or_default() += u64::from(*times);
            }
        }
    }

    fn of(&self, key: ApiKey) -> Option<&Counts> {
        self.apis.get(APIS.binary_search_by_key(&key.code(), |api| api.key.code()).ok()?)
    }

    pub fn write(&self, out: &mut Exposition) {
        let each = |out: &mut Exposition, of: fn(&Counts) -> &AtomicU64| {
            for (api, counts) in APIS.iter().zip(&self.apis) {
                let count = of(counts).load(Ordering::Relaxed);
                if count > 0 {
                    out.sample(&[("api", api.key.name())], count);
                }
            }
        };
        out.counter("millstream_requests_total", "Requests by API.");
        each(out, |counts| &counts.requests);
        out.counter("millstream_request_bytes_total", "Bytes of requests by API.");
        each(out, |counts| &counts.request_bytes);
        out.counter("millstream_responses_total", "Answers by API.");
        each(out, |counts| &counts.answers);
        out.counter("millstream_response_bytes_total", "Bytes of answers by API.");
        each(out, |counts| &counts.answer_bytes);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        out.counter(
            "millstream_response_errors_total",
            "Errors in answers, by API and error: of the answer as a whole and of its parts (topics, partitions, groups).",
        );
        for ((key, code), times) in &errors {
            out.sample(&[("api", api_name(*key)), ("error", error_name(*code))], times);
        }
        self.write_commits(out, &errors);
    }

    fn write_commits(&self, out: &mut Exposition, errors: &BTreeMap<(i16, i16), u64>) {
        out.counter("millstream_offset_commits_total", "Offsets that were committed, one per partition, by result.");
        for key in [ApiKey::OffsetCommit, ApiKey::TxnOffsetCommit] {
            let transactional = if key == ApiKey::TxnOffsetCommit { "true" } else { "false" };
            let fine = self.of(key).map_or(0, |counts| counts.fine.load(Ordering::Relaxed));
            out.sample(&[("transactional", transactional), ("result", "NONE")], fine);
            for ((_, code), times) in errors.iter().filter(|((api, _), _)| *api == key.code()) {
                out.sample(&[("transactional", transactional), ("result", error_name(*code))], times);
            }
        }
        out.counter("millstream_heartbeats_total", "Heartbeats of members, by protocol.");
        let heartbeats = [
            (ApiKey::Heartbeat, "classic"),
            (ApiKey::ConsumerGroupHeartbeat, "consumer"),
            (ApiKey::StreamsGroupHeartbeat, "streams"),
        ];
        for (key, protocol) in heartbeats {
            out.sample(&[("protocol", protocol)], self.of(key).map_or(0, |c| c.requests.load(Ordering::Relaxed)));
        }
    }
}

fn api_name(key: i16) -> &'static str {
    ApiKey::try_from(key).map_or("UNKNOWN", ApiKey::name)
}

fn error_name(code: i16) -> &'static str {
    ErrorCode::try_from(code).map_or("UNKNOWN", ErrorCode::name)
}
