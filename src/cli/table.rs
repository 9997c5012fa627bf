//! Text in columns.

use crate::visible::visible;

/// Longest text that a column shows; the JSON has all of it.
const MAX_WIDTH: usize = 60;

/// Rows of cells, aligned. Columns named in `right` are flush right, all others left.
pub struct Table {
    rows: Vec<Vec<String>>,
    right: &'static [usize],
    indent: usize,
}

impl Table {
    /// An empty table whose lines begin with so many spaces.
    pub fn new(indent: usize, right: &'static [usize]) -> Self {
        Self { rows: Vec::new(), right, indent }
    }

    /// Appends a row. Control characters are shown as escapes; what is too long is cut, except in the last cell.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        let cell = |(column, cell): (usize, String)| if column + 1 == N { visible(&cell) } else { shortened(&visible(&cell)) };
        self.rows.push(cells.into_iter().enumerate().map(cell).collect());
    }

    /// The table as lines without spaces at their ends. Columns that are empty in every row are left out.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            let mut separator = "";
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0) {
                line.push_str(separator);
                separator = "  ";
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if self.right.contains(&column) { (space.as_str(), "") } else { ("", space.as_str()) };
                line.extend([before, cell, after]);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A number with its thousands set apart: `12,345`.
pub fn number(value: impl TryInto<u64>) -> String {
    let digits = value.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 function`, `2 functions`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", number(count as u64), if count == 1 { "" } else { "s" })
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_WIDTH) {
        Some(_) => text.chars().take(MAX_WIDTH - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let mut table = Table::new(2, &[2]);
        table.row(["cpu", "", "9", "a"].map(str::to_owned));
        table.row(["é\n", "", "12,345", ""].map(str::to_owned));
        assert_eq!(table.text(), "  cpu       9  a\n  é\\n  12,345\n");
    }

    #[test]
    fn numbers_and_long_texts() {
        assert_eq!([number(0u64), number(999u64), number(1_000u64), number(1_234_567u64)], ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "function"), counted(1_000, "function")), ("1 function".into(), "1,000 functions".into()));
        assert_eq!(shortened(&"x".repeat(61)).chars().count(), 60);
    }
}
