//! Text that is told to people: names out of files, and names of files, steer no terminal and pretend no line of ours.

/// Text without characters that would steer a terminal, end a line or turn the direction of writing: they are shown as escapes.
pub(crate) fn visible(text: &str) -> String {
    let steers = |character: char| character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let escaped = |character: char| if steers(character) { character.escape_default().to_string() } else { character.to_string() };
    if text.contains(steers) { text.chars().map(escaped).collect() } else { text.to_owned() }
}

/// As [`visible`], but lines end where they do: for text of ours with such names in it.
pub(crate) fn visible_lines(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_shown_as_escapes() {
        assert_eq!(visible("\x1b[31m\n\u{202e}é"), "\\u{1b}[31m\\n\\u{202e}é");
        assert_eq!(visible_lines("a\x1b\nb\r"), "a\\u{1b}\nb\\r");
    }
}
