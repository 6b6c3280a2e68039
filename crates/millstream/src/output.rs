//! Tables for people, JSON for programs, colour for terminals.

use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Where a command writes its result, and how.
#[derive(Debug)]
pub struct Output {
    colour: bool,
    text: String,
}

/// What a piece of text means; only on terminals is it seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Heading,
    Good,
    Busy,
    Bad,
    Faint,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Heading => "1",
            Tone::Good => "32",
            Tone::Busy => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
        }
    }

    /// How the state of a group is shown.
    pub fn of_state(state: &str) -> Tone {
        match state {
            "Stable" => Tone::Good,
            "Empty" => Tone::Plain,
            "Dead" | "NotReady" => Tone::Bad,
            _ => Tone::Busy,
        }
    }
}

impl Output {
    /// Colour only on a terminal that can show it, and not where it is unwanted (NO_COLOR).
    pub fn to_stdout() -> Output {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Output::new(std::io::stdout().is_terminal() && !unwanted && !dumb)
    }

    pub fn new(colour: bool) -> Output {
        Output { colour, text: String::new() }
    }

    pub fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    pub fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub fn heading(&mut self, text: &str) {
        let text = self.paint(text, Tone::Heading);
        self.line(text);
    }

    pub fn paint(&self, text: &str, tone: Tone) -> String {
        match self.colour && tone != Tone::Plain && !text.is_empty() {
            true => format!("\x1b[{}m{text}\x1b[0m", tone.code()),
            false => text.to_owned(),
        }
    }

    pub fn json<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Failure::failed(error.to_string()))?;
        self.line(text);
        Ok(())
    }

    pub fn table(&mut self, table: &Table) {
        let text = table.render(self);
        self.text.push_str(&text);
    }

    #[cfg(test)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Writes what has come together and forgets it. A reader that has gone away (`| head`) is no failure.
    pub fn flush(&mut self) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(self.text.as_bytes()).and_then(|()| stdout.flush());
        self.text.clear();
        match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(Failure::failed(format!("cannot write the result: {error}")))
            }
            _ => Ok(()),
        }
    }
}

/// A cell: what it says and how.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }
}

impl<T: ToString> From<T> for Cell {
    fn from(value: T) -> Cell {
        Cell::toned(value.to_string(), Tone::Plain)
    }
}

/// `-` for what is not there.
pub fn or_dash<T: ToString>(value: Option<T>) -> Cell {
    value.map_or_else(|| Cell::toned("-", Tone::Faint), |value| Cell::from(value.to_string()))
}

/// Columns as wide as they have to be. Numbers stand on the right; an empty table is not shown at all.
#[derive(Debug)]
pub struct Table {
    headers: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new(headers: &'static [&'static str]) -> Table {
        Table { headers, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.headers.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    fn render(&self, out: &Output) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let width = |column: usize| cells(column).map(|cell| width_of(&cell.text)).max().unwrap_or(0);
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '.'));
        let are_numbers =
            |column| cells(column).all(|cell| is_number(&cell.text)) && cells(column).any(|cell| cell.text != "-");
        let columns: Vec<(usize, bool)> = self
            .headers
            .iter()
            .enumerate()
            .map(|(i, header)| (width(i).max(width_of(header)), are_numbers(i)))
            .collect();
        let mut text = String::new();
        let heads = self.headers.iter().map(|header| Cell::toned(*header, Tone::Heading)).collect::<Vec<_>>();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let mut line = String::new();
            for (i, (cell, (width, right))) in row.iter().zip(&columns).enumerate() {
                let gap = " ".repeat(width - width_of(&cell.text).min(*width));
                let shown = out.paint(&cell.text, cell.tone);
                let between = if i == 0 { "" } else { "  " };
                line.push_str(between);
                match right {
                    true => line.push_str(&format!("{gap}{shown}")),
                    false => line.push_str(&format!("{shown}{gap}")),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_stand_on_the_right() {
        let mut table = Table::new(&["TOPIC", "LAG", "HOST"]);
        table.row(vec!["in".into(), 7.into(), or_dash(None::<i32>)]);
        table.row(vec!["größer".into(), 1200.into(), "/10.0.0.7".into()]);
        let mut out = Output::new(false);
        out.table(&table);
        assert_eq!(out.text(), "TOPIC    LAG  HOST\nin         7  -\ngrößer  1200  /10.0.0.7\n");
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut table = Table::new(&["A", "B"]);
        table.row(vec![Cell::toned("Stable", Tone::Good), "x".into()]);
        let mut out = Output::new(true);
        out.table(&table);
        let plain = out.text().replace("\x1b[1m", "").replace("\x1b[32m", "").replace("\x1b[0m", "");
        assert!(out.text().contains("\x1b[32mStable\x1b[0m"));
        assert_eq!(plain, "A       B\nStable  x\n");
    }

    #[test]
    fn a_table_without_rows_is_nothing() {
        let mut out = Output::new(false);
        out.table(&Table::new(&["A"]));
        assert_eq!(out.text(), "");
    }
}
