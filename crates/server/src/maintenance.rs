//! What has to be done to logs from time to time: retention and compaction. The log decides what is due; here is only
//! when it is asked, and on which threads.

use std::sync::Arc;
use std::time::Duration;

use log::LogDir;
use tokio::time::MissedTickBehavior;

use crate::clock::Clock;
use crate::config::Config;

/// The shortest pause between two rounds, whatever is configured.
const MIN_PAUSE_MS: i64 = 10;

/// Applies retention every `log.retention.check.interval.ms`, until the task is aborted.
pub(crate) async fn retain(logs: Arc<LogDir>, config: Arc<Config>, clock: Clock) {
    let interval_ms = config.current().storage.retention_check_interval_ms;
    repeat(interval_ms, move || logs.apply_retention(clock.wall_ms())).await;
}

/// Compacts what is due every `log.cleaner.backoff.ms`, until the task is aborted.
pub(crate) async fn compact(logs: Arc<LogDir>, config: Arc<Config>, clock: Clock) {
    let interval_ms = config.current().storage.cleaner_backoff_ms;
    let round = move || {
        for (partition, report) in logs.compact(clock.wall_ms()) {
            tracing::debug!(%partition, "compacted: {report:?}");
        }
    };
    repeat(interval_ms, round).await;
}

/// Runs `work` on a blocking thread, one round after the other.
async fn repeat(interval_ms: i64, work: impl Fn() + Send + Sync + 'static) {
    let interval = Duration::from_millis(interval_ms.max(MIN_PAUSE_MS) as u64);
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let work = Arc::new(work);
    loop {
        ticks.tick().await;
        let work = work.clone();
        if let Err(error) = tokio::task::spawn_blocking(move || work()).await {
            tracing::error!("maintenance of logs failed: {error}");
        }
    }
}
