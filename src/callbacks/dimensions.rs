//! Symbolic dimensions of a function, said in those of whoever calls it. Expressions are JAX's: `2*b + 1`, `floordiv(b, 2)`.

use std::collections::BTreeMap;

use super::Array;

/// How deep an expression may nest.
const MAX_DEPTH: u32 = 64;

/// Dimension variables of the function, and the dimensions of the caller that they stand for.
#[derive(Debug, Default)]
pub(crate) struct Dimensions<'f>(BTreeMap<&'f str, &'f str>);

impl<'f> Dimensions<'f> {
    /// Lets variables of the function that are a dimension stand for that dimension of the caller, unless they stand for another one.
    pub fn bind(&mut self, own: &'f Array, other: &'f Array) {
        for (own, other) in own.shape.iter().zip(&other.shape).filter(|(own, _)| is_variable(own)) {
            self.0.entry(own).or_insert(other);
        }
    }

    /// Whether an array of the function is one of the caller. Where it cannot be known it is not.
    pub fn are_same(&self, own: &Array, other: &Array) -> bool {
        let is_same = |(own, other): (&String, &String)| {
            let translated = self.translated(own);
            translated == *other || (translated != *own && other.parse().is_ok_and(|size: i64| evaluated(&translated) == Some(size)))
        };
        own.dtype == other.dtype && own.shape.len() == other.shape.len() && own.shape.iter().zip(&other.shape).all(is_same)
    }

    /// An expression over variables of the function as one over those of the caller.
    fn translated(&self, expression: &str) -> String {
        let (mut text, mut rest) = (String::new(), expression);
        while let Some(first) = rest.chars().next() {
            let end = if is_of_name(first) { rest.find(|character| !is_of_name(character)) } else { Some(first.len_utf8()) };
            let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
            match self.0.get(word).filter(|_| !behind.starts_with('(')) {
                // What stands alone needs no parentheses, and neither does one word.
                Some(other) if word == expression || other.chars().all(is_of_name) => text.push_str(other),
                Some(other) => text.push_str(&format!("({other})")),
                None => text.push_str(word),
            }
            rest = behind;
        }
        text
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_variable(dimension: &str) -> bool {
    dimension.chars().all(is_of_name) && !dimension.starts_with(|first: char| first.is_ascii_digit())
}

/// The value of an expression without variables.
fn evaluated(expression: &str) -> Option<i64> {
    let mut reader = Reader { rest: expression, depth: 0 };
    let value = reader.sum()?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'t> {
    rest: &'t str,
    depth: u32,
}

impl Reader<'_> {
    /// Reads a symbol if it comes next.
    fn takes(&mut self, symbol: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut value = self.product()?;
        loop {
            value = if self.takes('+') {
                value.checked_add(self.product()?)?
            } else if self.takes('-') {
                value.checked_sub(self.product()?)?
            } else {
                self.depth -= 1;
                return Some(value);
            };
        }
    }

    fn product(&mut self) -> Option<i64> {
        let is_negative = self.takes('-');
        let mut value = self.power()?;
        while self.takes('*') {
            value = value.checked_mul(self.power()?)?;
        }
        if is_negative { value.checked_neg() } else { Some(value) }
    }

    fn power(&mut self) -> Option<i64> {
        let value = self.atom()?;
        if self.takes('^') { value.checked_pow(self.atom()?.try_into().ok()?) } else { Some(value) }
    }

    fn atom(&mut self) -> Option<i64> {
        if self.takes('(') {
            let value = self.sum()?;
            return self.takes(')').then_some(value);
        }
        let rest = self.rest.trim_start();
        let (word, behind) = rest.split_at(rest.find(|character| !is_of_name(character)).unwrap_or(rest.len()));
        self.rest = behind;
        if let Ok(number) = word.parse() {
            return Some(number);
        }
        if !self.takes('(') {
            return None;
        }
        let first = self.sum()?;
        let second = if self.takes(',') { self.sum()? } else { return None };
        let value = match word {
            "max" => first.max(second),
            "min" => first.min(second),
            // As in Python: rounded down, with the sign of the divisor.
            "floordiv" | "mod" => {
                let (quotient, rest) = (first.checked_div(second)?, first.checked_rem(second)?);
                let is_up = rest != 0 && (rest < 0) != (second < 0);
                if word == "mod" { rest + if is_up { second } else { 0 } } else { quotient - i64::from(is_up) }
            }
            _ => return None,
        };
        self.takes(')').then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated_as_in_python() {
        for (expression, value) in [
            ("7", 7),
            ("2*3 + 1", 7),
            ("-1*(4) + 5 - 2", -1),
            ("3 + -1", 2),
            ("2*(3 - 1)^3", 16),
            ("floordiv(-7, 2)", -4),
            ("floordiv(7, -2)", -4),
            ("floordiv(-7, -2)", 3),
            ("mod(-7, 2)", 1),
            ("mod(7, -2)", -1),
            ("mod(6, 3)", 0),
            ("max(min(3, 4), mod(9, 5))", 4),
        ] {
            assert_eq!(evaluated(expression), Some(value), "{expression}");
        }
        for expression in
            ["", "b", "1 +", "2 3", "(1", "max(1)", "floordiv(1, 0)", "f(1, 2)", "9223372036854775807 + 1", "2^-1", "2^64", "1)"]
        {
            assert_eq!(evaluated(expression), None, "{expression}");
        }
        assert_eq!(evaluated(&"(".repeat(100_000)), None);
    }

    #[test]
    fn variables_are_replaced_as_whole_words() {
        let dimensions = Dimensions(BTreeMap::from([("n", "b"), ("m", "2*c"), ("max", "k")]));
        for (expression, text) in [("n", "b"), ("2*n + nn", "2*b + nn"), ("m", "2*c"), ("m + 1", "(2*c) + 1"), ("max(n, max)", "max(b, k)")]
        {
            assert_eq!(dimensions.translated(expression), text);
        }
    }
}
