//! Prometheus' text format (version 0.0.4): families of samples, written one after the other.

use std::fmt::{Display, Write};

/// The text so far. Samples belong to the family begun last.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Something that only grows. `name` ends in `_total`.
    pub fn counter(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "counter", help)
    }

    /// Something that goes up and down.
    pub fn gauge(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "gauge", help)
    }

    /// Its samples are written by [`Exposition::histogram_sample`].
    pub fn histogram(&mut self, name: &'static str, help: &str) -> &mut Self {
        self.begin(name, "histogram", help)
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Self {
        self.family = name;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, None, value);
        self
    }

    /// `counts` by upper bound, not cumulated; the last one is of all that is larger.
    pub fn histogram_sample(&mut self, labels: &[(&str, &str)], bounds: &[f64], counts: &[u64], sum: f64) {
        let mut total = 0;
        for (number, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds.get(number).map_or_else(|| "+Inf".to_owned(), f64::to_string);
            self.line("_bucket", labels, Some(&bound), total);
        }
        self.line("_sum", labels, None, sum);
        self.line("_count", labels, None, total);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], le: Option<&str>, value: impl Display) {
        self.text.push_str(self.family);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (name, value) in labels.iter().copied().chain(le.map(|bound| ("le", bound))) {
            self.text.push(separator);
            separator = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            for c in value.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    c => self.text.push(c),
                }
            }
            self.text.push('"');
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_labels_and_histograms_are_written_as_the_format_wants() {
        let mut out = Exposition::default();
        out.counter("a_total", "What.").sample(&[], 3).sample(&[("g", "x\"y\\z\nw"), ("h", "")], 4);
        out.histogram("t_seconds", "Time.").histogram_sample(&[("p", "c")], &[0.5, 1.0], &[1, 0, 2], 7.25);
        let expected = "# HELP a_total What.\n# TYPE a_total counter\na_total 3\n\
            a_total{g=\"x\\\"y\\\\z\\nw\",h=\"\"} 4\n\
            # HELP t_seconds Time.\n# TYPE t_seconds histogram\n\
            t_seconds_bucket{p=\"c\",le=\"0.5\"} 1\nt_seconds_bucket{p=\"c\",le=\"1\"} 1\n\
            t_seconds_bucket{p=\"c\",le=\"+Inf\"} 3\nt_seconds_sum{p=\"c\"} 7.25\nt_seconds_count{p=\"c\"} 3\n";
        assert_eq!(out.into_text(), expected);
    }
}
