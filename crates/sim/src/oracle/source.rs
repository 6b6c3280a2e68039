//! Where Kafka's answers come from: the oracle itself, or what it answered when it was recorded.

use serde_json::{Value, json};

use super::duel::History;

const RESTART: &str = r#"{"op":"restart"}"#;

/// Answers as Kafka's coordinator does.
pub trait Source {
    /// The answer to one command, which must not be blank or a comment.
    ///
    /// # Errors
    /// If there is none.
    fn ask(&mut self, line: &str) -> Result<Value, String>;

    /// A restart that is no part of the history.
    ///
    /// # Errors
    /// As `ask`.
    fn restart(&mut self) -> Result<Value, String> {
        self.ask(RESTART)
    }
}

/// Asks another source, and writes down what it answers: one object a line.
pub struct Recorder<'a> {
    pub of: &'a mut dyn Source,
    pub lines: Vec<String>,
}

impl Source for Recorder<'_> {
    fn ask(&mut self, line: &str) -> Result<Value, String> {
        let answer = self.of.ask(line)?;
        let command: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        self.lines.push(json!({"command": command, "answer": answer}).to_string());
        Ok(answer)
    }

    fn restart(&mut self) -> Result<Value, String> {
        let answer = self.of.restart()?;
        self.lines.push(json!({"between": true, "answer": answer}).to_string());
        Ok(answer)
    }
}

/// What a recorder wrote, both as history and as source.
pub struct Recorded {
    steps: std::vec::IntoIter<Value>,
}

/// The commands of a recording.
pub struct Commands(std::vec::IntoIter<Value>);

impl Recorded {
    /// Reads the lines of one history.
    ///
    /// # Errors
    /// If one of them is not JSON.
    pub fn read(lines: &[&str]) -> Result<(Commands, Recorded), String> {
        let steps: Result<Vec<Value>, _> = lines.iter().map(|line| serde_json::from_str(line)).collect();
        let steps = steps.map_err(|error| error.to_string())?;
        let commands: Vec<Value> = steps.iter().filter_map(|step| step.get("command").cloned()).collect();
        Ok((Commands(commands.into_iter()), Recorded { steps: steps.into_iter() }))
    }
}

impl History for Commands {
    fn next(&mut self) -> Option<Value> {
        self.0.next()
    }

    fn observe(&mut self, _command: &Value, _answer: &Value) {}
}

impl Source for Recorded {
    fn ask(&mut self, line: &str) -> Result<Value, String> {
        let step = self.steps.next().ok_or("the recording has ended")?;
        let command: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if step["command"] != command {
            return Err(format!("recorded was {}, asked is {command}: record anew", step["command"]));
        }
        Ok(step["answer"].clone())
    }

    fn restart(&mut self) -> Result<Value, String> {
        match self.steps.next() {
            Some(step) if step["between"] == true => Ok(step["answer"].clone()),
            other => Err(format!("recorded was {other:?}, and no restart: record anew")),
        }
    }
}
