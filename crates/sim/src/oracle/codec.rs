//! Kafka's JSON form of a message to its bytes and back, interpreting the schema. Shares no code with the codec of
//! `wire`, so that a comparison through it checks both.

use serde_json::{Map, Value};

use super::schema::{Field, Schema, Type};

/// The bytes of a message in `version`. Absent fields have their default; a field that the version lacks is an error.
pub fn encode(schema: &Schema, version: i16, json: &Value) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let writer = Coder { version, flexible: schema.flexible.contains(version) };
    let name = format!("{}Data v{version}", schema.name);
    writer.write_struct(&mut out, &schema.fields, json, &name)?;
    Ok(out)
}

/// The JSON form of a message: all fields of the version, but for tagged ones that have their default.
pub fn decode(schema: &Schema, version: i16, bytes: &[u8]) -> Result<Value, String> {
    let mut input = bytes;
    let reader = Coder { version, flexible: schema.flexible.contains(version) };
    let json = reader.read_struct(&mut input, &schema.fields);
    let json = json.map_err(|error| format!("{} v{version}: {error}", schema.name))?;
    if !input.is_empty() {
        return Err(format!("{} bytes are left behind {} v{version}", input.len(), schema.name));
    }
    Ok(json)
}

/// A UUID the way Kafka prints it: base64 for URLs, no padding.
pub fn uuid_text(bytes: &[u8; 16]) -> String {
    base64(bytes, b"-_", false)
}

/// Standard base64 with padding.
pub fn bytes_text(bytes: &[u8]) -> String {
    base64(bytes, b"+/", true)
}

/// Base64 of either alphabet, with or without padding.
pub fn bytes_of(text: &str) -> Result<Vec<u8>, String> {
    let digit = |c: u8| -> Result<u32, String> {
        Ok(u32::from(match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return Err(format!("not base64: {text}")),
        }))
    };
    let mut out = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let mut bits = 0;
        for c in chunk {
            bits = bits << 6 | digit(*c)?;
        }
        bits <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Ok(out)
}

fn base64(bytes: &[u8], last: &[u8; 2], pad: bool) -> String {
    let digit = |n: u32| match n as u8 {
        n @ 0..26 => b'A' + n,
        n @ 26..52 => b'a' + n - 26,
        n @ 52..62 => b'0' + n - 52,
        n => last[usize::from(n - 62)],
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(padded);
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(char::from(digit(bits >> (18 - 6 * index) & 63)));
            } else if pad {
                text.push('=');
            }
        }
    }
    text
}

#[derive(Clone, Copy)]
struct Coder {
    version: i16,
    flexible: bool,
}

impl Coder {
    fn write_struct(self, out: &mut Vec<u8>, fields: &[Field], json: &Value, name: &str) -> Result<(), String> {
        let json = json.as_object().ok_or_else(|| format!("{name} is not an object"))?;
        let present = |field: &&Field| field.versions.contains(self.version);
        for key in json.keys() {
            if !fields.iter().filter(present).any(|field| field.name == *key) {
                return Err(format!("no {key} in {name}"));
            }
        }
        let mut tagged = Vec::new();
        for field in fields.iter().filter(present) {
            let value = json.get(&field.name).unwrap_or(&field.default);
            if !field.tagged.contains(self.version) {
                self.write(out, field, &field.of, value)?;
            } else if *value != field.default {
                let mut bytes = Vec::new();
                self.write(&mut bytes, field, &field.of, value)?;
                tagged.push((field.tag, bytes));
            }
        }
        if self.flexible {
            tagged.sort();
            write_varint(out, tagged.len() as u32);
            for (tag, bytes) in tagged {
                write_varint(out, tag);
                write_varint(out, bytes.len() as u32);
                out.extend(bytes);
            }
        }
        Ok(())
    }

    fn is_tagged(self, field: &Field) -> bool {
        field.tagged.contains(self.version)
    }

    fn compact(self, field: &Field) -> bool {
        match field.flexible {
            Some(versions) => versions.contains(self.version),
            None => self.flexible,
        }
    }

    fn write(self, out: &mut Vec<u8>, field: &Field, of: &Type, value: &Value) -> Result<(), String> {
        let wrong = || format!("{} cannot be {value}", field.name);
        let number = || value.as_i64().ok_or_else(wrong);
        let nullable = field.nullable.contains(self.version);
        if value.is_null() && !nullable {
            return Err(wrong());
        }
        match of {
            Type::Bool => out.push(value.as_bool().ok_or_else(wrong)?.into()),
            Type::Int8 => out.push(number()? as u8),
            Type::Int16 | Type::Uint16 => out.extend((number()? as i16).to_be_bytes()),
            Type::Int32 | Type::Uint32 => out.extend((number()? as i32).to_be_bytes()),
            Type::Int64 => out.extend(number()?.to_be_bytes()),
            Type::Float64 => out.extend(value.as_f64().ok_or_else(wrong)?.to_be_bytes()),
            Type::Uuid => out.extend(bytes_of(value.as_str().ok_or_else(wrong)?)?),
            Type::Text if value.is_null() => self.write_length(out, field, None, true),
            Type::Text => {
                let text = value.as_str().ok_or_else(wrong)?;
                self.write_length(out, field, Some(text.len()), true);
                out.extend(text.as_bytes());
            }
            Type::Bytes if value.is_null() => self.write_length(out, field, None, false),
            Type::Bytes => {
                let bytes = bytes_of(value.as_str().ok_or_else(wrong)?)?;
                self.write_length(out, field, Some(bytes.len()), false);
                out.extend(bytes);
            }
            Type::Array(_) if value.is_null() => self.write_length(out, field, None, false),
            Type::Array(element) => {
                let elements = value.as_array().ok_or_else(wrong)?;
                self.write_length(out, field, Some(elements.len()), false);
                for value in elements {
                    match &**element {
                        Type::Struct(fields) => self.write_struct(out, fields, value, &field.name)?,
                        element => self.write(out, field, element, value)?,
                    }
                }
            }
            // In front of a struct that may be null; a tagged one has a varint there.
            Type::Struct(_) if value.is_null() => out.push(if self.is_tagged(field) { 0 } else { 0xff }),
            Type::Struct(fields) => {
                if nullable {
                    out.push(1);
                }
                self.write_struct(out, fields, value, &field.name)?;
            }
        }
        Ok(())
    }

    fn write_length(self, out: &mut Vec<u8>, field: &Field, length: Option<usize>, short: bool) {
        if self.compact(field) {
            write_varint(out, length.map_or(0, |length| length as u32 + 1));
        } else if short {
            out.extend(length.map_or(-1, |length| length as i16).to_be_bytes());
        } else {
            out.extend(length.map_or(-1, |length| length as i32).to_be_bytes());
        }
    }

    fn read_struct(self, input: &mut &[u8], fields: &[Field]) -> Result<Value, String> {
        let mut json = Map::new();
        for field in fields {
            if field.versions.contains(self.version) && !field.tagged.contains(self.version) {
                json.insert(field.name.clone(), self.read(input, field, &field.of)?);
            }
        }
        if self.flexible {
            for _ in 0..read_varint(input)? {
                let (tag, length) = (read_varint(input)?, read_varint(input)?);
                let mut bytes = take(input, length as usize)?;
                let known = fields.iter().find(|field| field.tagged.contains(self.version) && field.tag == tag);
                let field = known.ok_or_else(|| format!("unknown tag {tag}"))?;
                let value = self.read(&mut bytes, field, &field.of)?;
                if value != field.default {
                    json.insert(field.name.clone(), value);
                }
            }
        }
        Ok(json.into())
    }

    fn read(self, input: &mut &[u8], field: &Field, of: &Type) -> Result<Value, String> {
        Ok(match of {
            Type::Bool => (take(input, 1)?[0] != 0).into(),
            Type::Int8 => (take(input, 1)?[0] as i8).into(),
            Type::Int16 => i16::from_be_bytes(array(input)?).into(),
            Type::Uint16 => u16::from_be_bytes(array(input)?).into(),
            Type::Int32 => i32::from_be_bytes(array(input)?).into(),
            Type::Uint32 => u32::from_be_bytes(array(input)?).into(),
            Type::Int64 => i64::from_be_bytes(array(input)?).into(),
            Type::Float64 => f64::from_be_bytes(array(input)?).into(),
            Type::Uuid => uuid_text(&array(input)?).into(),
            Type::Text => match self.read_length(input, field, true)? {
                None => Value::Null,
                Some(length) => {
                    let bytes = take(input, length)?;
                    std::str::from_utf8(bytes).map_err(|error| error.to_string())?.into()
                }
            },
            Type::Bytes => match self.read_length(input, field, false)? {
                None => Value::Null,
                Some(length) => bytes_text(take(input, length)?).into(),
            },
            Type::Array(element) => match self.read_length(input, field, false)? {
                None => Value::Null,
                Some(length) => {
                    let mut elements = Vec::new();
                    for _ in 0..length {
                        elements.push(match &**element {
                            Type::Struct(fields) => self.read_struct(input, fields)?,
                            element => self.read(input, field, element)?,
                        });
                    }
                    elements.into()
                }
            },
            Type::Struct(fields) => {
                let null = if self.is_tagged(field) { 0 } else { 0xff };
                if field.nullable.contains(self.version) && take(input, 1)?[0] == null {
                    return Ok(Value::Null);
                }
                self.read_struct(input, fields)?
            }
        })
    }

    fn read_length(self, input: &mut &[u8], field: &Field, short: bool) -> Result<Option<usize>, String> {
        if self.compact(field) {
            return Ok((read_varint(input)? as usize).checked_sub(1));
        }
        let length = if short { i16::from_be_bytes(array(input)?).into() } else { i32::from_be_bytes(array(input)?) };
        Ok(usize::try_from(length).ok())
    }
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = input.split_at_checked(length).ok_or("the message ends too early")?;
    *input = rest;
    Ok(taken)
}

fn array<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], String> {
    let (taken, rest) = input.split_first_chunk().ok_or("the message ends too early")?;
    *input = rest;
    Ok(*taken)
}

fn write_varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(input: &mut &[u8]) -> Result<u32, String> {
    let mut value = 0;
    for shift in (0..35).step_by(7) {
        let byte = take(input, 1)?[0];
        value |= u32::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a varint has no end".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_both_ways() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("\u{3ff}", "z78=")];
        for (plain, coded) in cases {
            assert_eq!(bytes_text(plain.as_bytes()), coded);
            assert_eq!(bytes_of(coded).unwrap(), plain.as_bytes());
        }
        let mut id = [0; 16];
        id[15] = 1;
        assert_eq!(uuid_text(&id), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(uuid_text(&[0xff; 16]), "_____________________w");
        assert_eq!(bytes_of("_____________________w").unwrap(), [0xff; 16]);
    }
}
