//! A segment: batches and their records.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::{Value, json};
use wire::Bytes;
use wire::batch::{
    Batch, BatchHeader, Compression, ControlType, PREFIX_LEN, Record, TimestampType, parse_control_key, peek_size,
};

use super::{Decoder, Dump, Show, internal};
use crate::output::{Output, Tone};
use crate::time::format_time;

/// Longer keys and values are cut for people; programs get them whole.
const SHOWN_CHARS: usize = 160;

pub fn dump(file: &Path, show: Show, out: &mut Output) -> Result<(), Dump> {
    let file = File::open(file)?;
    let length = file.metadata()?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut position = 0;
    while position < length {
        let batch = match next(&mut reader, length - position)? {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(()),
            Err(problem) => return Err(Dump::Damaged(format!("at byte {position}: {problem}"))),
        };
        show_batch(&batch, position, show, out)?;
        position += batch.size() as u64;
        out.flush()?;
    }
    Ok(())
}

/// The next batch, `None` at zeros that were written ahead; the inner error says what is wrong.
fn next(reader: &mut impl Read, left: u64) -> std::io::Result<Result<Option<Batch>, String>> {
    if left < PREFIX_LEN as u64 {
        return Ok(Err(format!("{left} bytes are no batch")));
    }
    let mut prefix = [0; PREFIX_LEN];
    reader.read_exact(&mut prefix)?;
    if prefix == [0; PREFIX_LEN] {
        return Ok(Ok(None));
    }
    let size = match peek_size(&prefix) {
        Ok(size) if size as u64 <= left => size,
        Ok(size) => return Ok(Err(format!("a batch of {size} bytes, of which {left} are there"))),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut bytes = prefix.to_vec();
    reader.take((size - PREFIX_LEN) as u64).read_to_end(&mut bytes)?;
    Ok(Batch::parse_next(&Bytes::from(bytes)).map(|(batch, _)| Some(batch)).map_err(|error| error.to_string()))
}

fn show_batch(batch: &Batch, position: u64, show: Show, out: &mut Output) -> Result<(), Dump> {
    let header = batch.header();
    let crc = batch.validate_crc();
    let records = match show.records && crc.is_ok() {
        true => batch.records().and_then(Iterator::collect::<Result<Vec<Record>, _>>),
        false => Ok(Vec::new()),
    };
    let problem = crc.err().map(|error| error.to_string());
    let problem = problem.or_else(|| records.as_ref().err().map(ToString::to_string));
    let records = records.unwrap_or_default();
    match show.json {
        true => {
            let mut object = header_json(header, position);
            object["error"] = json!(problem);
            if show.records {
                object["records"] = records.iter().map(|record| record_json(header, record, show.decoder)).collect();
            }
            out.line(object.to_string());
        }
        false => {
            let text = header_text(header, position);
            out.heading(&text);
            for record in &records {
                out.line(record_text(header, record, show.decoder));
            }
        }
    }
    match problem {
        None => Ok(()),
        Some(problem) => {
            let text = out.paint(&format!("  {problem}"), Tone::Bad);
            if !show.json {
                out.line(text);
            }
            Err(Dump::Damaged(format!("at byte {position}: {problem}")))
        }
    }
}

fn compression(header: &BatchHeader) -> String {
    header.attributes.compression().map(Compression::name).unwrap_or("unknown").to_owned()
}

fn header_json(header: &BatchHeader, position: u64) -> Value {
    let attributes = header.attributes;
    json!({
        "base_offset": header.base_offset,
        "last_offset": header.last_offset(),
        "position": position,
        "bytes": header.size(),
        "record_count": header.record_count,
        "leader_epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": timestamp_type(header),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "compression": compression(header),
        "transactional": attributes.is_transactional(),
        "control": attributes.is_control(),
        "delete_horizon": header.delete_horizon(),
        "crc": header.crc,
    })
}

fn timestamp_type(header: &BatchHeader) -> &'static str {
    match header.attributes.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn header_text(header: &BatchHeader, position: u64) -> String {
    let attributes = header.attributes;
    let mut text = format!(
        "{}-{}  at {position}  {} bytes  {} records  epoch {}  {} {}",
        header.base_offset,
        header.last_offset(),
        header.size(),
        header.record_count,
        header.partition_leader_epoch,
        timestamp_type(header),
        format_time(header.max_timestamp),
    );
    if header.has_producer_id() {
        let (id, epoch, sequence) = (header.producer_id, header.producer_epoch, header.base_sequence);
        text.push_str(&format!("  producer {id}/{epoch} sequence {sequence}"));
    }
    for (is, name) in [(attributes.is_transactional(), "transactional"), (attributes.is_control(), "control")] {
        if is {
            text.push_str(&format!("  {name}"));
        }
    }
    match compression(header).as_str() {
        "none" => {}
        name => text.push_str(&format!("  {name}")),
    }
    if let Some(horizon) = header.delete_horizon() {
        text.push_str(&format!("  tombstones until {}", format_time(horizon)));
    }
    text
}

fn record_json(header: &BatchHeader, record: &Record, decoder: Decoder) -> Value {
    let mut object = json!({ "offset": record.offset, "timestamp": record.timestamp });
    if header.attributes.is_control() {
        object["marker"] = json!(marker(record));
        return object;
    }
    match internal::decode(decoder, record) {
        Some(decoded) => {
            object["type"] = json!(decoded.name);
            object["key"] = decoded.key;
            object["value"] = decoded.value;
        }
        None => {
            object["key"] = json!(record.key.as_deref().map(readable));
            object["value"] = json!(record.value.as_deref().map(readable));
        }
    }
    if !record.headers.is_empty() {
        let header = |header: &wire::batch::Header| json!({ "key": readable(&header.key), "value": header.value.as_deref().map(readable) });
        object["headers"] = record.headers.iter().map(header).collect();
    }
    object
}

fn record_text(header: &BatchHeader, record: &Record, decoder: Decoder) -> String {
    let start = format!("  {}  {}", record.offset, format_time(record.timestamp));
    if header.attributes.is_control() {
        return format!("{start}  {} marker", marker(record));
    }
    if let Some(decoded) = internal::decode(decoder, record) {
        let value = if decoded.value.is_null() { "deleted".to_owned() } else { decoded.value.to_string() };
        return format!("{start}  {} {} {value}", decoded.name, decoded.key);
    }
    let part = |bytes: Option<&Bytes>| bytes.map_or("null".to_owned(), |bytes| cut(&format!("{:?}", readable(bytes))));
    let mut text = format!("{start}  {} = {}", part(record.key.as_ref()), part(record.value.as_ref()));
    for header in &record.headers {
        text.push_str(&format!("  [{}: {}]", readable(&header.key), part(header.value.as_ref())));
    }
    text
}

fn marker(record: &Record) -> &'static str {
    match record.key.as_deref().and_then(parse_control_key) {
        Some(ControlType::Commit) => "commit",
        Some(ControlType::Abort) => "abort",
        None => "unknown",
    }
}

/// Text as it is, anything else as hexadecimal digits.
fn readable(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) => text.to_owned(),
        _ => bytes.iter().fold("0x".to_owned(), |hex, byte| hex + &format!("{byte:02x}")),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_text_or_as_digits() {
        for (bytes, expected) in [
            (b"abc".as_slice(), "abc"),
            ("grün\n".as_bytes(), "grün\n"),
            (b"\x00\x01\xff", "0x0001ff"),
            (b"\xff", "0xff"),
            (b"", ""),
        ] {
            assert_eq!(readable(bytes), expected);
        }
    }
}
