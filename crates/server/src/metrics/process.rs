//! The process as the operating system sees it, under the names that all exporters use.

use super::exposition::Exposition;

/// `USER_HZ`, which is 100 on all platforms that Linux supports.
const TICKS_PER_SECOND: f64 = 100.0;

/// Writes nothing where there is no `/proc`.
pub(super) fn write(out: &mut Exposition) {
    if let Ok(stat) = std::fs::read_to_string("/proc/self/stat")
        && let Some((_, fields)) = stat.rsplit_once(')')
    {
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
        let cpu = (number(11) + number(12)) / TICKS_PER_SECOND;
        out.counter("process_cpu_seconds_total", "Processor time of this process.").sample(&[], cpu);
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        if let Some(kib) = kib {
            out.gauge("process_resident_memory_bytes", "Memory of this process.").sample(&[], kib * 1024);
        }
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        out.gauge("process_open_fds", "Open files of this process.").sample(&[], open.count());
    }
    let most = crate::os::open_files_limit();
    out.gauge("process_max_fds", "Files that this process may have open.").sample(&[], most);
}
