//! Which policy a callback gets: rules by name and platform, and what holds where none matches.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

use super::{Lowering, Policy, Table};
use crate::container::Platform;
use crate::error::{Error, Result};

/// How many names an error lists.
const LISTED: usize = 20;

/// `[PLATFORM:]NAME=POLICY`: the policy of the callbacks with that name.
///
/// What stands before the first `:` is a platform only if the export or the table has it; `*:` stands for any platform. `NAME` matches the
/// whole name, with `*` for any characters and `?` for one of them. A name that contains these characters is matched by itself exactly. The
/// first `=` that is followed by a policy ends the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pattern: String,
    policy: Policy,
}

impl Rule {
    /// A policy for the callbacks that match `[PLATFORM:]NAME`.
    pub fn new(pattern: impl Into<String>, policy: Policy) -> Result<Self> {
        let pattern = pattern.into();
        if pattern.is_empty() || pattern.ends_with(':') {
            return Err(Error::refused(format!("`{pattern}={policy}` names no callback")).with_hint(SHAPE));
        }
        Ok(Self { pattern, policy })
    }

    /// `[PLATFORM:]NAME`.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
}

const SHAPE: &str = "a rule is `NAME=POLICY` or `PLATFORM:NAME=POLICY`, such as `log=strip` or `tpu:fill=host`";

impl FromStr for Rule {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut first_error = None;
        for (position, equals) in text.match_indices('=') {
            let (pattern, rest) = text.split_at(position);
            match rest.strip_prefix(equals).unwrap_or(rest).parse() {
                Ok(policy) => return Self::new(pattern, policy),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        Err(match first_error {
            Some(error) => error.context(format!("cannot read the rule `{text}`")),
            None => Error::refused(format!("`{text}` is not a rule for callbacks")).with_hint(SHAPE),
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.pattern, self.policy)
    }
}

/// Which policy each callback gets. The first of these decides:
///
/// 1. a rule with its exact name and its platform,
/// 2. a rule with its exact name,
/// 3. a rule with a matching name and its platform,
/// 4. a rule with a matching name,
/// 5. [`on_unsupported`](Self::on_unsupported), where it is given and the callback cannot be lowered,
/// 6. [`otherwise`](Self::otherwise).
///
/// Among rules of one kind, the later one. By default callbacks are lowered, and refused where they cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// The rules, in the order given.
    pub rules: Vec<Rule>,
    /// For callbacks without a rule where they cannot be lowered.
    pub on_unsupported: Option<Policy>,
    /// For all other callbacks.
    pub otherwise: Policy,
}

impl Default for Policies {
    fn default() -> Self {
        Self { rules: Vec::new(), on_unsupported: None, otherwise: Policy::Lower }
    }
}

impl Policies {
    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds rules.
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets the policy for callbacks without a rule where they cannot be lowered.
    pub fn on_unsupported(mut self, policy: Policy) -> Self {
        self.on_unsupported = Some(policy);
        self
    }

    /// Sets the policy for all other callbacks without a rule.
    pub fn otherwise(mut self, policy: Policy) -> Self {
        self.otherwise = policy;
        self
    }

    /// All policies that a callback may get.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Policy> {
        self.rules.iter().map(Rule::policy).chain(&self.on_unsupported).chain([&self.otherwise])
    }

    /// The exports that policies `call:EXPORT` name, each once. [`CallbackOptions::export`](super::CallbackOptions::export) takes what they are.
    pub fn called(&self) -> BTreeSet<&str> {
        let called = self.all().filter_map(|policy| if let Policy::Call(name) = policy { Some(&name[..]) } else { None });
        called.collect()
    }

    /// Makes ready to choose for an export for these platforms: now it is known what of a rule is a platform, and what a name.
    pub fn chooser<'a>(&'a self, platforms: &'a [Platform], table: &Table) -> Chooser<'a> {
        let is_platform = |name: &str| platforms.iter().any(|platform| platform.as_str() == name) || table.has_platform(name);
        let selectors = self.rules.iter().map(|rule| Selector::new(&rule.pattern, is_platform)).collect();
        Chooser { policies: self, platforms, selectors }
    }
}

/// What was chosen for a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice<'a> {
    /// The policy.
    pub policy: &'a Policy,
    /// The number of the rule that decided. None: one of the policies for callbacks without a rule.
    pub rule: Option<usize>,
}

/// Chooses policies for the callbacks of one export.
#[derive(Debug, Clone)]
pub struct Chooser<'a> {
    policies: &'a Policies,
    platforms: &'a [Platform],
    selectors: Vec<Selector<'a>>,
}

impl<'a> Chooser<'a> {
    /// The policy of the callback of that name on a platform, where it would be lowered like that. Without a platform, rules for one do not match.
    pub fn choose(&self, name: &str, platform: Option<&Platform>, lowering: &Lowering) -> Choice<'a> {
        let matching = self.selectors.iter().enumerate().filter_map(|(number, selector)| {
            let group = selector.group(name, platform)?;
            Some((group, Reverse(number)))
        });
        match matching.min().and_then(|(_, Reverse(number))| Some((number, self.policies.rules.get(number)?))) {
            Some((number, rule)) => Choice { policy: &rule.policy, rule: Some(number) },
            None => {
                let unsupported = self.policies.on_unsupported.as_ref().filter(|_| lowering.is_impossible());
                Choice { policy: unsupported.unwrap_or(&self.policies.otherwise), rule: None }
            }
        }
    }

    /// Refuses rules for a platform that the export does not have, and rules that match no callback. `names` are those of all callbacks of
    /// the export, in every level and for every platform: a rule for an output that is not written is no mistake.
    pub fn check_rules<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<()> {
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        for (rule, selector) in self.policies.rules.iter().zip(&self.selectors) {
            if let Some(platform) = selector.platform.filter(|name| self.platforms.iter().all(|platform| platform.as_str() != *name)) {
                return Err(Error::refused(format!("`--callback {rule}` is for `{platform}`, and the export is not"))
                    .with_hint(format!("its platforms are {}", list(self.platforms.iter().map(Platform::as_str)))));
            }
            if !names.iter().any(|name| selector.matches(name)) {
                return Err(Error::refused(format!("`--callback {rule}` matches no callback")).with_hint(self.hint(selector, &names)));
            }
        }
        Ok(())
    }

    fn hint(&self, selector: &Selector<'_>, names: &[&str]) -> String {
        let callbacks = match names {
            [] => "the export has no callbacks".to_owned(),
            [name] => format!("the only callback is `{name}`"),
            names => format!("callbacks are {}", list(names.iter().copied())),
        };
        // A platform that was misspelled is part of the name.
        match selector.name.split_once(':').filter(|_| selector.platform.is_none()) {
            Some((prefix, _)) => {
                format!("{callbacks}; `{prefix}` is not a platform, those are {}", list(self.platforms.iter().map(Platform::as_str)))
            }
            None => callbacks,
        }
    }
}

/// A rule's pattern, read for one export.
#[derive(Debug, Clone)]
struct Selector<'a> {
    platform: Option<&'a str>,
    name: &'a str,
    glob: WildMatch,
}

impl<'a> Selector<'a> {
    fn new(pattern: &'a str, is_platform: impl Fn(&str) -> bool) -> Self {
        let (platform, name) = match pattern.split_once(':') {
            Some(("*", name)) => (None, name),
            Some((platform, name)) if is_platform(platform) => (Some(platform), name),
            _ => (None, pattern),
        };
        Self { platform, name, glob: WildMatch::new(name) }
    }

    fn matches(&self, name: &str) -> bool {
        self.name == name || self.glob.matches(name)
    }

    /// How closely it matches; the smallest decides. False comes before true: exact before glob, with platform before without.
    fn group(&self, name: &str, platform: Option<&Platform>) -> Option<(bool, bool)> {
        let is_meant = |wanted: &str| platform.is_some_and(|platform| platform.as_str() == wanted);
        let applies = self.platform.is_none_or(is_meant) && self.matches(name);
        applies.then_some((self.name != name, self.platform.is_none()))
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str> + Clone) -> String {
    let shown: Vec<_> = names.clone().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.count().saturating_sub(LISTED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::error::ErrorKind;

    static EXPORT: LazyLock<[Platform; 3]> = LazyLock::new(|| [Platform::CPU, Platform::CUDA, Platform::new("my_npu")]);

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    fn policies(rules: &[&str]) -> Policies {
        Policies::default().rules(rules.iter().map(|text| rule(text)))
    }

    /// The policy and the rule for a callback that can be lowered.
    fn chosen(rules: &[&str], name: &str, platform: Platform) -> String {
        let policies = policies(rules);
        let table = Table::default();
        let choice = policies.chooser(&*EXPORT, &table).choose(name, Some(&platform), &Lowering::HostTransfer);
        assert_eq!(choice.rule.map(|number| &policies.rules[number].policy), choice.rule.map(|_| choice.policy));
        choice.rule.map_or_else(|| choice.policy.to_string(), |number| rules[number].to_owned())
    }

    #[test]
    fn the_six_steps_in_their_order() {
        let rules = ["cpu:log=refuse", "log=keep", "cpu:l*=strip", "l*=stub:zeros"];
        for later in 0..rules.len() {
            assert_eq!(chosen(&rules[later..], "log", Platform::CPU), rules[later]);
            let reversed: Vec<_> = rules[later..].iter().rev().copied().collect();
            assert_eq!(chosen(&reversed, "log", Platform::CPU), rules[later], "whatever the order");
        }
        assert_eq!(chosen(&rules, "log", Platform::CUDA), "log=keep");
        assert_eq!(chosen(&rules, "lag", Platform::CPU), "cpu:l*=strip");
        assert_eq!(chosen(&rules, "lag", Platform::CUDA), "l*=stub:zeros");
        assert_eq!(chosen(&rules, "fill", Platform::CPU), "lower");

        let impossible = Lowering::Impossible("no target".to_owned());
        let table = Table::default();
        let choose = |policies: &Policies, name: &str, lowering: &Lowering| {
            policies.chooser(&*EXPORT, &table).choose(name, Some(&Platform::TPU), lowering).policy.clone()
        };
        assert_eq!(choose(&policies(&rules), "log", &impossible), Policy::Keep, "(4) before (5)");
        assert_eq!(choose(&policies(&rules), "fill", &impossible), Policy::Lower, "(6), which the pass refuses");
        assert_eq!(choose(&policies(&rules).otherwise(Policy::Strip), "fill", &impossible), Policy::Strip, "(6)");
        let set = policies(&rules).on_unsupported(Policy::Strip).otherwise(Policy::Keep);
        assert_eq!(choose(&set, "fill", &impossible), Policy::Strip, "(5) before (6)");
        assert_eq!(choose(&set, "fill", &Lowering::Target("t".to_owned())), Policy::Keep, "(6)");
        assert_eq!(choose(&set, "fill", &Lowering::HostTransfer), Policy::Keep, "(6)");
    }

    #[test]
    fn within_a_group_the_later_one_wins() {
        for pattern in ["cpu:log", "log", "cpu:l*", "*g"] {
            let [first, second] = [format!("{pattern}=keep"), format!("{pattern}=strip")];
            assert_eq!(chosen(&[&first, &second], "log", Platform::CPU), second);
            assert_eq!(chosen(&[&second, &first], "log", Platform::CPU), first);
        }
        assert_eq!(
            chosen(&["*:log=keep", "log=strip", "*:log=refuse"], "log", Platform::CPU),
            "*:log=refuse",
            "any platform is no platform"
        );
    }

    #[test]
    fn what_precedes_a_colon_is_a_platform_only_if_there_is_one() {
        assert_eq!(chosen(&["my_npu:log=keep"], "log", Platform::new("my_npu")), "my_npu:log=keep", "of the export");
        assert_eq!(chosen(&["tpu:log=keep"], "log", Platform::TPU), "tpu:log=keep", "of the table");
        assert_eq!(chosen(&["a:log=keep"], "a:log", Platform::CPU), "a:log=keep", "part of the name");
        assert_eq!(chosen(&["cpu:a:log=keep"], "a:log", Platform::CPU), "cpu:a:log=keep");
        assert_eq!(chosen(&["cpu:log=keep"], "cpu:log", Platform::CPU), "lower");
        assert_eq!(chosen(&["*:cpu:log=keep"], "cpu:log", Platform::CPU), "*:cpu:log=keep");
        assert_eq!(chosen(&["gpu:log=keep"], "log", Platform::CUDA), "lower");
    }

    #[test]
    fn globs_match_whole_names() {
        let matches = |pattern: &str, name: &str| chosen(&[&format!("{pattern}=keep")], name, Platform::CPU) != "lower";
        assert!(matches("*", "pkg.mod.<lambda>#2") && matches("pkg.*.step", "pkg.a.b.step") && matches("l?g", "lög"));
        assert!(!matches("log", "pkg.log") && !matches("log*", "a.log") && !matches("l?g", "lg") && !matches("LOG", "log"));
        assert!(matches("f[0]", "f[0]") && !matches("f[0]", "f0"), "brackets mean themselves");
        assert_eq!(chosen(&["a*b=keep", "cpu:*=strip"], "a*b", Platform::CPU), "a*b=keep", "a name is exactly itself");
    }

    #[test]
    fn rules_are_read_and_written() {
        let text = "tpu:fill=ffi:a=b:c";
        assert_eq!((rule(text).pattern(), rule(text).to_string().as_str()), ("tpu:fill", text));
        assert_eq!(rule("a=b=stub:operand:1").pattern(), "a=b", "the first `=` before a policy");
        for (text, what) in [
            ("", "`` is not a rule for callbacks"),
            ("log", "`log` is not a rule for callbacks"),
            ("=strip", "`=strip` names no callback"),
            ("cpu:=strip", "`cpu:=strip` names no callback"),
            ("log=", "cannot read the rule `log=`: `` is not a policy for callbacks"),
            ("log=stirp", "cannot read the rule `log=stirp`: `stirp` is not a policy for callbacks"),
        ] {
            let error = text.parse::<Rule>().unwrap_err();
            assert!(format!("{error:?}").contains(what), "{error:?}");
            assert!(error.hint().is_some() && error.kind() == ErrorKind::Refused);
        }
    }

    #[test]
    fn rules_that_match_nothing_are_refused() {
        let check = |rules: &[&str], names: &[&str]| {
            let (policies, table) = (policies(rules), Table::default());
            policies.chooser(&*EXPORT, &table).check_rules(names.iter().copied())
        };
        check(&["log=strip", "l*=keep", "cuda:*=keep", "log=keep"], &["log", "fill", "log"]).unwrap();
        check(&[], &[]).unwrap();
        let error = check(&["l*=keep", "cpu:lag=strip"], &["log", "fill"]).unwrap_err();
        assert_eq!(error.to_string(), "`--callback cpu:lag=strip` matches no callback");
        assert_eq!(error.hint(), Some("callbacks are `fill`, `log`"));
        assert_eq!(
            check(&["cdua:log=keep"], &["log"]).unwrap_err().hint(),
            Some("the only callback is `log`; `cdua` is not a platform, those are `cpu`, `cuda`, `my_npu`")
        );
        let error = check(&["tpu:log=keep"], &["log"]).unwrap_err();
        assert_eq!(error.to_string(), "`--callback tpu:log=keep` is for `tpu`, and the export is not");
        assert_eq!(error.hint(), Some("its platforms are `cpu`, `cuda`, `my_npu`"));
        assert_eq!(check(&["log=keep"], &[]).unwrap_err().hint(), Some("the export has no callbacks"));
        let many: Vec<_> = (0..25).map(|number| format!("f{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(check(&["log=keep"], &many).unwrap_err().hint().unwrap().ends_with("and 5 more"));
    }
}
