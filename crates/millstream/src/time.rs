//! Times and durations as people write and read them. All in UTC; leap seconds do not exist.

const DAY_MS: i64 = 86_400_000;

/// Milliseconds since 1970 of `2026-11-30T20:31:05.123`, with `Z`, `+01:00`, `+0100`, `+01` or nothing (UTC) behind it. The
/// time of day may be left out, and its seconds.
pub fn parse_datetime(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a time such as 2026-11-30T20:31:05.123 or 2026-11-30T20:31:05+01:00");
    let (date, rest) = text.split_once(['T', ' ']).unwrap_or((text, ""));
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (Some(Some(year)), Some(Some(month)), Some(Some(day))) = (parts.next(), parts.next(), parts.next()) else {
        return Err(wrong());
    };
    let in_range =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !in_range {
        return Err(wrong());
    }
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(zone_at);
    let of_day = parse_clock(clock).ok_or_else(wrong)?;
    let offset = parse_zone(zone).ok_or_else(wrong)?;
    Ok(days_since_1970(year, month, day) * DAY_MS + of_day - offset)
}

fn parse_clock(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let mut parts = text.splitn(3, ':');
    let hours: i64 = parts.next()?.parse().ok().filter(|hours| (0..24).contains(hours))?;
    let minutes: i64 = parts.next()?.parse().ok().filter(|minutes| (0..60).contains(minutes))?;
    let (seconds, fraction) = match parts.next() {
        None => ("0", ""),
        Some(text) => text.split_once('.').unwrap_or((text, "")),
    };
    let seconds: i64 = seconds.parse().ok().filter(|seconds| (0..60).contains(seconds))?;
    if !fraction.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let ms: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + ms)
}

/// Milliseconds that a zone is ahead of UTC.
fn parse_zone(text: &str) -> Option<i64> {
    let sign = match text.chars().next() {
        None | Some('Z' | 'z') => return (text.len() <= 1).then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let digits: String = text[1..].chars().filter(|c| *c != ':').collect();
    let number: i64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
    let (hours, minutes) = match digits.len() {
        1 | 2 => (number, 0),
        4 => (number / 100, number % 100),
        _ => return None,
    };
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Milliseconds of `PnDTnHnMnS` (as Kafka's tool wants it), or of `90s`, `10m`, `2h`, `1d`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is not a duration such as 10m, 2h, P1D or PT1H30M");
    let units = match text.strip_prefix(['P', 'p']) {
        Some(iso) => parse_iso(iso),
        None => parse_short(text),
    };
    units.filter(|ms| *ms >= 0).ok_or_else(wrong)
}

fn parse_short(text: &str) -> Option<i64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: i64 = text[..text.len() - unit.len()].parse().ok()?;
    number.checked_mul(match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => DAY_MS,
        "w" => 7 * DAY_MS,
        _ => return None,
    })
}

fn parse_iso(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't']).unwrap_or((text, ""));
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = parse_parts(date, &[('W', 7 * DAY_MS), ('D', DAY_MS)])?;
    days.checked_add(parse_parts(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)])?)
}

fn parse_parts(mut text: &str, units: &[(char, i64)]) -> Option<i64> {
    let mut sum = 0i64;
    for (unit, ms) in units {
        let Some((number, rest)) = text.split_once([*unit, unit.to_ascii_lowercase()]) else { continue };
        // Only seconds may have a fraction; the others are whole numbers.
        let number: f64 = number.parse().ok().filter(|n: &f64| *n >= 0.0 && (n.fract() == 0.0 || *unit == 'S'))?;
        sum = sum.checked_add((number * *ms as f64) as i64)?;
        text = rest;
    }
    text.is_empty().then_some(sum)
}

/// `2026-11-30 20:31:05.123`, UTC; `-` for no time.
pub fn format_time(ms: i64) -> String {
    if ms < 0 {
        return "-".to_owned();
    }
    let (year, month, day) = date_of(ms.div_euclid(DAY_MS));
    let of_day = ms.rem_euclid(DAY_MS);
    let (h, m, s, ms) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02}.{ms:03}")
}

/// A duration with what matters of it: `0 s`, `0.35 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`.
pub fn format_duration(ms: i64) -> String {
    let s = ms / 1000;
    match ms {
        ..=0 => "0 s".to_owned(),
        1..10_000 => format!("{} s", (ms as f64 / 1000.0 * 100.0).round() / 100.0),
        10_000..60_000 => format!("{s} s"),
        60_000..3_600_000 => format!("{} min {} s", s / 60, s % 60),
        3_600_000..DAY_MS => format!("{} h {} min", s / 3600, s / 60 % 60),
        DAY_MS.. => format!("{} d {} h", s / 86_400, s / 3600 % 24),
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before_year(year: i64) -> i64 {
    let last = year - 1;
    last * 365 + last / 4 - last / 100 + last / 400
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    days_before_year(year) - days_before_year(1970) + months + day - 1
}

/// Year, month and day of a day since 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    // Never too late a year, since 365 is the shortest; at most a few steps too early within a thousand years.
    let mut year = 1970 + days / 366;
    while days_since_1970(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut left = days - days_since_1970(year, 1, 1);
    let mut month = 1;
    while left >= days_in(year, month) {
        left -= days_in(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_all_of_their_forms() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000", Some(0)),
            ("2026-11-30T20:31:05.123", Some(1_796_070_665_123)),
            ("2026-11-30T20:31:05.123Z", Some(1_796_070_665_123)),
            ("2026-11-30T21:31:05.123+01:00", Some(1_796_070_665_123)),
            ("2026-11-30T15:31:05.123-0500", Some(1_796_070_665_123)),
            ("2026-11-30 20:31", Some(1_796_070_660_000)),
            ("2024-02-29", Some(1_709_164_800_000)),
            ("2000-03-01T00:00:00.5", Some(951_868_800_500)),
            ("2023-02-29", None),
            ("2026-13-01", None),
            ("2026-11-30T24:00:00", None),
            ("2026-11-30T20:31:05+1:x", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse_datetime(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn times_are_written_as_they_are_read() {
        for ms in [0, 1, 951_868_800_500, 1_709_164_800_000, 1_735_689_599_999, 1_796_070_665_123, 253_402_300_799_999]
        {
            assert_eq!(parse_datetime(&format_time(ms)), Ok(ms));
        }
        assert_eq!(format_time(-1), "-");
    }

    #[test]
    fn durations_are_read_in_both_notations() {
        for (text, expected) in [
            ("P1D", Some(DAY_MS)),
            ("PT1H30M", Some(5_400_000)),
            ("P1DT2H3M4.5S", Some(DAY_MS + 7_384_500)),
            ("P2W", Some(14 * DAY_MS)),
            ("10m", Some(600_000)),
            ("90", Some(90_000)),
            ("250ms", Some(250)),
            ("P", None),
            ("PT", None),
            ("PT5", None),
            ("P1.5D", None),
            ("-5m", None),
            ("5x", None),
            ("99999999999999999d", None),
        ] {
            assert_eq!(parse_duration(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_written_short() {
        for (ms, expected) in [
            (0, "0 s"),
            (350, "0.35 s"),
            (12_400, "12 s"),
            (185_000, "3 min 5 s"),
            (7_800_000, "2 h 10 min"),
            (4 * DAY_MS + 3 * 3_600_000, "4 d 3 h"),
        ] {
            assert_eq!(format_duration(ms), expected);
        }
    }
}
