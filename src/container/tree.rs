//! The structure of arguments and results, and the path of each leaf in it.

use std::borrow::Cow;
use std::fmt::Write;

use super::codes::PyTreeKind;
use crate::error::{Error, Result};

/// Characters of a key that a path shows; the rest of a longer key is left out.
pub(crate) const MAX_SHOWN_KEY: usize = 64;

/// A node of a JAX pytree. Every leaf is one array; [`Exported::in_avals`](super::Exported::in_avals) and its kin list them in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PyTree<'a> {
    /// What the node is.
    pub kind: PyTreeKind,
    /// The nodes below. JAX leaves the field out where there are none.
    pub children: Option<Vec<PyTree<'a>>>,
    /// The keys of a dict, one per child.
    pub children_names: Option<Vec<Cow<'a, str>>>,
    /// The name under which a custom type was registered. Since schema 3.
    pub custom_name: Option<Cow<'a, str>>,
    /// What the custom type's own code serialized. For named tuples and `OrderedDict` JAX writes a JSON list of the names. Since schema 3.
    pub custom_auxdata: Option<Cow<'a, [u8]>>,
}

impl<'a> PyTree<'a> {
    /// A node of that kind with those children; without the field if there are none, as JAX does it.
    pub fn new(kind: PyTreeKind, children: Vec<PyTree<'a>>) -> Self {
        let children = if children.is_empty() { None } else { Some(children) };
        Self { kind, children, children_names: None, custom_name: None, custom_auxdata: None }
    }

    /// A dict with those entries.
    pub fn dict(entries: Vec<(Cow<'a, str>, PyTree<'a>)>) -> Self {
        let (names, children) = entries.into_iter().unzip();
        Self { children_names: Some(names), ..Self::new(PyTreeKind::Dict, children) }
    }

    /// The nodes below.
    pub fn children(&self) -> &[PyTree<'a>] {
        self.children.as_deref().unwrap_or_default()
    }

    /// The path of every leaf in order, spelled as Python would reach it from `root`: `args[0]['w']`, `point.x`.
    ///
    /// Below a custom node whose keys nobody but its own Python code knows, a path says `[<flat index 0>]`, as JAX's `keystr` does.
    pub fn leaf_paths(&self, root: &str) -> Vec<String> {
        self.nodes(root).into_iter().filter(|(_, node)| node.kind == PyTreeKind::Leaf).map(|(path, _)| path).collect()
    }

    /// Every node in order with its path, each before what is below it.
    pub(crate) fn nodes(&self, root: &str) -> Vec<(String, &Self)> {
        let mut nodes = Vec::new();
        let mut pending = vec![(self, root.to_owned())];
        while let Some((node, path)) = pending.pop() {
            pending.extend(node.steps().into_iter().rev().map(|(step, child)| (child, format!("{path}{step}"))));
            nodes.push((path, node));
        }
        nodes
    }

    /// The nodes below, each with how a path continues to it.
    pub(crate) fn steps(&self) -> Vec<(String, &PyTree<'a>)> {
        let fields = self.custom_fields();
        self.children().iter().enumerate().map(|(index, child)| (self.step(index, fields.as_deref()), child)).collect()
    }

    /// Checks that a dict has a key for every child; JAX's reader asserts the same.
    pub(super) fn check_names(&self) -> Result<()> {
        let (children, names) = (self.children().len(), self.children_names.as_ref().map_or(0, Vec::len));
        if self.kind == PyTreeKind::Dict && children != names {
            return Err(Error::format(format!("a dict with {children} children, but {names} keys")));
        }
        Ok(())
    }

    /// How a path continues to the child at `index`.
    fn step(&self, index: usize, fields: Option<&[String]>) -> String {
        let name = self.children_names.as_deref().unwrap_or_default().get(index);
        match (self.kind, name, fields.and_then(|fields| fields.get(index))) {
            (PyTreeKind::Tuple | PyTreeKind::List, _, _) => format!("[{index}]"),
            (PyTreeKind::Dict, Some(name), _) => format!("[{}]", quoted(name)),
            (PyTreeKind::Custom, _, Some(field)) if self.is_ordered_dict() => format!("[{}]", quoted(field)),
            (PyTreeKind::Custom, _, Some(field)) => format!(".{}", shown(field)),
            _ => format!("[<flat index {index}>]"),
        }
    }

    fn is_ordered_dict(&self) -> bool {
        self.custom_name.as_deref() == Some("collections.OrderedDict")
    }

    /// The names that JAX's own serializers of named tuples and `OrderedDict` put into the auxiliary data.
    fn custom_fields(&self) -> Option<Vec<String>> {
        let fields: Vec<String> = serde_json::from_slice(self.custom_auxdata.as_deref()?).ok()?;
        (fields.len() == self.children().len()).then_some(fields)
    }
}

/// A string as Python's `repr` shows it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for character in shown(text).chars() {
        match character {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            character if character == quote => quoted.extend(['\\', character]),
            character if (character as u32) < 0x100 && character.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\x{:02x}", character as u32);
            }
            character => quoted.push(character),
        }
    }
    quoted.push(quote);
    quoted
}

fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN_KEY) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> PyTree<'static> {
        PyTree::new(PyTreeKind::Leaf, vec![])
    }

    fn custom(name: &'static str, auxdata: &'static [u8], children: usize) -> PyTree<'static> {
        PyTree {
            custom_name: Some(name.into()),
            custom_auxdata: Some(auxdata.into()),
            ..PyTree::new(PyTreeKind::Custom, vec![leaf(); children])
        }
    }

    #[test]
    fn paths_are_spelled_as_python_reaches_the_leaf() {
        let none = PyTree::new(PyTreeKind::None, vec![]);
        let dict = PyTree::dict(vec![("b".into(), leaf()), ("it's".into(), none), ("w\n'\"".into(), leaf())]);
        let list = PyTree::new(PyTreeKind::List, vec![leaf(), dict]);
        let tree = PyTree::new(
            PyTreeKind::Tuple,
            vec![
                leaf(),
                list,
                custom("Point", br#"["x", "y"]"#, 2),
                custom("collections.OrderedDict", br#"["k"]"#, 1),
                custom("Opaque", b"\x80\x04", 1),
                PyTree::new(PyTreeKind::Other(9), vec![leaf()]),
            ],
        );
        assert_eq!(
            tree.leaf_paths("args"),
            [
                "args[0]",
                "args[1][0]",
                "args[1][1]['b']",
                r#"args[1][1]['w\n\'"']"#,
                "args[2].x",
                "args[2].y",
                "args[3]['k']",
                "args[4][<flat index 0>]",
                "args[5][<flat index 0>]",
            ]
        );
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted(&"é".repeat(65)).chars().count(), MAX_SHOWN_KEY + 3);
    }
}
