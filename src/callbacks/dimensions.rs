//! Symbolic dimensions of a function, said in those of whoever calls it. Expressions are JAX's: `2*b + 1`, `floordiv(b, 2)`.
//!
//! They are compared as sums of products, of variables and of what is no product: a quotient that leaves a rest, the larger of two.

use std::collections::BTreeMap;
use std::fmt;

use super::Array;

/// How deep an expression may nest.
const MAX_DEPTH: u32 = 64;
/// How many terms a sum may have, and how many factors a term.
const MAX_TERMS: usize = 64;

/// Dimension variables of the function, and the dimensions of the caller that they stand for.
#[derive(Debug, Default)]
pub(crate) struct Dimensions(BTreeMap<String, Sum>);

impl Dimensions {
    /// Finds what the variables stand for, from what the function takes and what it is given: those that are a dimension, then those of which a dimension is
    /// a multiple, and more or less. JAX solves no others either.
    pub fn solve<'f>(arrays: impl Iterator<Item = (&'f Array, &'f Array)>) -> Self {
        let pairs: Vec<(&str, Sum)> = arrays
            .flat_map(|(own, other)| own.shape.iter().zip(&other.shape))
            .filter_map(|(own, other)| Some((&own[..], Sum::read(other, None)?)))
            .collect();
        let mut found = Self::default();
        for (own, other) in pairs.iter().filter(|(own, _)| is_variable(own)) {
            found.0.entry((*own).to_owned()).or_insert_with(|| other.clone());
        }
        for (own, other) in &pairs {
            if let Some((variable, size)) = found.solve_linear(own, other) {
                found.0.insert(variable.to_owned(), size);
            }
        }
        found
    }

    /// What the only variable of a dimension is that is not known yet: of `2*n + m` that is `4*b + m`, it is `2*b`.
    fn solve_linear<'e>(&self, own: &'e str, other: &Sum) -> Option<(&'e str, Sum)> {
        let mut unknown = variables(own).filter(|variable| !self.0.contains_key(*variable));
        let variable = unknown.next().filter(|_| !own.contains('('))?;
        if unknown.any(|another| another != variable) {
            return None;
        }
        let at = |size: Sum| {
            let mut known = self.0.clone();
            known.insert(variable.to_owned(), size);
            Sum::read(own, Some(&known))
        };
        let rest = at(Sum::number(0))?;
        let count = at(Sum::number(1))?.minus(&rest)?.as_number()?;
        let size = other.minus(&rest)?.divided_by(count)?;
        // Where it is no multiple, it is something else.
        (at(size.clone())? == *other).then_some((variable, size))
    }

    /// Whether an array of the function is one of the caller. Where it cannot be known it is not.
    pub fn are_same(&self, own: &Array, other: &Array) -> bool {
        // A variable of JAX's is 1 or more.
        let is_empty = |dimension: &String| variables(dimension).any(|variable| self.0.get(variable) == Some(&Sum::number(0)));
        let is_same = |(own, other): (&String, &String)| {
            let own = Sum::read(own, Some(&self.0)).filter(|_| !is_empty(own));
            own.is_some() && own == Sum::read(other, None)
        };
        own.dtype == other.dtype && own.shape.len() == other.shape.len() && own.shape.iter().zip(&other.shape).all(is_same)
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_variable(dimension: &str) -> bool {
    dimension.chars().all(is_of_name) && !dimension.starts_with(|first: char| first.is_ascii_digit())
}

/// The variables in an expression.
fn variables(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|character| !is_of_name(character)).filter(|word| !word.is_empty() && is_variable(word));
    words.filter(|word| !matches!(*word, "floordiv" | "mod" | "max" | "min"))
}

/// A sum of products: the factors of each in order, and how often it is there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Sum(BTreeMap<Vec<String>, i64>);

impl Sum {
    fn number(number: i64) -> Self {
        Self::term(Vec::new(), number)
    }

    fn term(factors: Vec<String>, count: i64) -> Self {
        Self(if count == 0 { BTreeMap::new() } else { BTreeMap::from([(factors, count)]) })
    }

    /// Reads an expression over variables that are known, or over whatever variables it has. `None`: it is none, or holds another variable.
    fn read(expression: &str, known: Option<&BTreeMap<String, Sum>>) -> Option<Self> {
        let mut reader = Reader { rest: expression, depth: 0, known };
        let sum = reader.sum()?;
        reader.rest.trim().is_empty().then_some(sum)
    }

    fn as_number(&self) -> Option<i64> {
        match self.0.iter().next() {
            None => Some(0),
            Some((factors, count)) => (self.0.len() == 1 && factors.is_empty()).then_some(*count),
        }
    }

    fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.clone();
        for (factors, count) in &other.0 {
            let total = sum.0.get(factors).copied().unwrap_or_default().checked_add(*count)?;
            if total == 0 {
                sum.0.remove(factors)
            } else {
                sum.0.insert(factors.clone(), total)
            };
        }
        (sum.0.len() <= MAX_TERMS).then_some(sum)
    }

    fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Self::number(-1))?)
    }

    fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (own, count) in &self.0 {
            for (factors, times) in &other.0 {
                let mut factors = [&own[..], factors].concat();
                factors.sort_unstable();
                if factors.len() > MAX_TERMS {
                    return None;
                }
                product = product.plus(&Self::term(factors, count.checked_mul(*times)?))?;
            }
        }
        Some(product)
    }

    /// A number of times less, if that leaves no rest.
    fn divided_by(&self, number: i64) -> Option<Self> {
        let divided = |(factors, count): (&Vec<String>, &i64)| {
            let is_multiple = count.checked_rem(number)? == 0;
            Some((factors.clone(), count.checked_div(number).filter(|_| is_multiple)?))
        };
        self.0.iter().map(divided).collect::<Option<_>>().map(Self)
    }

    /// What one of JAX's functions makes of two.
    fn call(function: &str, first: Self, second: Self) -> Option<Self> {
        if let (Some(first), Some(second)) = (first.as_number(), second.as_number()) {
            return numbers(function, first, second).map(Self::number);
        }
        let divided = second.as_number().and_then(|number| first.divided_by(number));
        match (function, divided) {
            ("floordiv", Some(quotient)) => return Some(quotient),
            ("mod", Some(_)) => return Some(Self::default()),
            ("max" | "min", _) if first == second => return Some(first),
            ("floordiv" | "mod" | "max" | "min", _) => {}
            _ => return None,
        }
        let mut texts = [first.to_string(), second.to_string()];
        if matches!(function, "max" | "min") {
            texts.sort_unstable();
        }
        Some(Self::term(vec![format!("{function}({})", texts.join(", "))], 1))
    }
}

/// What one of JAX's functions makes of two numbers.
fn numbers(function: &str, first: i64, second: i64) -> Option<i64> {
    // As in Python: rounded down, with the sign of the divisor.
    let rest =
        |first: i64| first.checked_rem(second).map(|rest| if rest != 0 && (rest < 0) != (second < 0) { rest + second } else { rest });
    match function {
        "max" => Some(first.max(second)),
        "min" => Some(first.min(second)),
        "mod" => rest(first),
        "floordiv" => first.checked_sub(rest(first)?)?.checked_div(second),
        _ => None,
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (factors, count)) in self.0.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { " + " })?;
            write!(f, "{count}")?;
            factors.iter().try_for_each(|factor| write!(f, "*{factor}"))?;
        }
        Ok(())
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: u32,
    known: Option<&'t BTreeMap<String, Sum>>,
}

impl Reader<'_> {
    /// Reads a symbol if it comes next.
    fn takes(&mut self, symbol: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(symbol);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Option<Sum> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut sum = self.product()?;
        loop {
            sum = if self.takes('+') {
                sum.plus(&self.product()?)?
            } else if self.takes('-') {
                sum.minus(&self.product()?)?
            } else {
                self.depth -= 1;
                return Some(sum);
            };
        }
    }

    fn product(&mut self) -> Option<Sum> {
        let mut product = Sum::number(if self.takes('-') { -1 } else { 1 }).times(&self.power()?)?;
        while self.takes('*') {
            product = product.times(&self.power()?)?;
        }
        Some(product)
    }

    fn power(&mut self) -> Option<Sum> {
        let base = self.atom()?;
        if !self.takes('^') {
            return Some(base);
        }
        let exponent = usize::try_from(self.atom()?.as_number()?).ok().filter(|exponent| *exponent <= MAX_TERMS)?;
        std::iter::repeat_n(&base, exponent).try_fold(Sum::number(1), |product, base| product.times(base))
    }

    fn atom(&mut self) -> Option<Sum> {
        if self.takes('(') {
            let sum = self.sum()?;
            return self.takes(')').then_some(sum);
        }
        let rest = self.rest.trim_start();
        let (word, behind) = rest.split_at(rest.find(|character| !is_of_name(character)).unwrap_or(rest.len()));
        self.rest = behind;
        if self.takes('(') {
            let first = self.sum()?;
            let second = if self.takes(',') { self.sum()? } else { return None };
            return self.takes(')').then(|| Sum::call(word, first, second))?;
        }
        match word.parse() {
            Ok(number) => Some(Sum::number(number)),
            Err(_) if word.is_empty() || !is_variable(word) => None,
            Err(_) => self.known.map_or_else(|| Some(Sum::term(vec![word.to_owned()], 1)), |known| known.get(word).cloned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(expression: &str) -> Sum {
        Sum::read(expression, None).unwrap_or_else(|| panic!("cannot read {expression}"))
    }

    #[test]
    fn numbers_are_those_of_python() {
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
            ("b - b + 5", 5),
        ] {
            assert_eq!(read(expression).as_number(), Some(value), "{expression}");
        }
        for expression in
            ["", "1 +", "2 3", "(1", "max(1)", "floordiv(1, 0)", "f(1, 2)", "9223372036854775807 + 1", "2^-1", "2^64", "1)", "9b", "b^1000"]
        {
            assert_eq!(Sum::read(expression, None), None, "{expression}");
        }
        assert_eq!(Sum::read(&"(".repeat(100_000), None), None);
        let wide: Vec<_> = (0..100).map(|number| format!("b{number}")).collect();
        assert_eq!(Sum::read(&wide.join(" + "), None), None);
    }

    #[test]
    fn sums_and_products_have_no_order() {
        for (one, other) in [
            ("a + b", "b + a"),
            ("a*b*2", "2*b*a"),
            ("(a + 1)^2", "a*a + 2*a + 1"),
            ("floordiv(2*b, 2)", "b"),
            ("mod(4*b, 2)", "0"),
            ("max(a, b + 1)", "max(1 + b, a)"),
            ("floordiv(b + a, 2)", "floordiv(a + b, 2)"),
        ] {
            assert_eq!(read(one), read(other), "{one}");
        }
        for (one, other) in [("a", "b"), ("floordiv(a, b)", "floordiv(b, a)"), ("floordiv(b, 2)", "b"), ("a*b", "a + b"), ("a", "2*a")] {
            assert_ne!(read(one), read(other), "{one}");
        }
    }

    #[test]
    fn variables_are_solved_as_jax_does() {
        let array = |shape: &str| Array { dtype: "f".to_owned(), shape: shape.split(';').map(str::to_owned).collect() };
        let are_same = |takes: &str, is_given: &str, returns: &str, is_wanted: &str| {
            let (takes, is_given) = (array(takes), array(is_given));
            let dimensions = Dimensions::solve([(&takes, &is_given)].into_iter());
            dimensions.are_same(&takes, &is_given) && dimensions.are_same(&array(returns), &array(is_wanted))
        };
        assert!(are_same("n;m", "b;n", "2*n;floordiv(m, 2)", "2*b;floordiv(n, 2)"), "by any name");
        assert!(are_same("b;a", "a;b", "a + b", "a + b"), "swapped");
        assert!(are_same("m;n", "b;4", "m*n", "4*b"));
        assert!(are_same("n", "2*b", "floordiv(n, 2)", "b"));
        assert!(are_same("2*n", "4", "n", "2") && are_same("2*n + m;m", "4*b + m;m", "n", "2*b") && are_same("n - 1", "6", "n", "7"));
        assert!(!are_same("2*n", "5", "n", "2"), "no multiple");
        assert!(!are_same("n;n", "b;c", "n", "b"), "two at once");
        assert!(
            !are_same("n*n", "4", "n", "2") && !are_same("mod(n, 8)", "4", "n", "4") && !are_same("n + m", "4", "n", "2"),
            "not solved"
        );
        assert!(!are_same("n", "0", "n", "0"), "a variable is at least 1");
        assert!(!are_same("n", "b", "k", "k") && !are_same("4", "b", "4", "4"));
    }
}
