//! Puts the functions and meshes of several modules into one.
//!
//! What holds inside: entries are interned, so that equal constants are one; a symbol gets another name where its own is taken, and whatever names it
//! follows; symbols that are equal in two modules, whatever their names and locations, stand once. A module's `main` becomes a private function. What
//! comes out has no `main`: whoever links says what it does. Where modules are added to one that is there already, that one stays as it is.
//!
//! Functions with dynamic dimensions or global constants are never shared: StableHLO refines the shapes of a function for one caller's types alone.

mod copy;
mod symbols;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::bytecode::{AttributeId, Block, Bytecode, OpTree, Operation, Region, Span, StablehloVersion, dialect};
use crate::error::{Error, Result};
use copy::Copier;
use symbols::Symbols;

/// Modules in the making of one.
#[derive(Debug)]
pub struct Linker<'a> {
    /// The module so far, without the end of its first operation, the module itself.
    into: Bytecode<'a>,
    names: Names,
    /// What each symbol that may be shared is, without its name, and the names of those that are the same.
    known: FxHashMap<Vec<u32>, Vec<Vec<u8>>>,
    /// The numbers of channels, and the kinds of operations that use each.
    channels: BTreeMap<u64, BTreeSet<Vec<u8>>>,
    /// The number of `distinct` attributes.
    identities: u32,
    /// The name and the visibility of the first module.
    head: Option<(AttributeId, Vec<Option<AttributeId>>)>,
}

/// Names of attributes and their values, in the tables of the module that comes out.
pub type Attributes = Vec<(Vec<u8>, AttributeId)>;

/// What became of one module.
#[derive(Debug)]
pub struct Linked {
    /// The name of its former `main`.
    pub main: Vec<u8>,
    /// The attributes that the arguments of `main` had.
    pub arguments: Vec<Attributes>,
    /// The attributes that the results of `main` had.
    pub results: Vec<Attributes>,
    /// The attributes that the module had.
    pub attributes: Attributes,
    /// How many of its functions another module has too.
    pub shared: usize,
}

/// Names that are taken.
#[derive(Debug, Default)]
struct Names {
    taken: FxHashSet<Vec<u8>>,
    /// The next number behind each name that was taken already.
    next: FxHashMap<Vec<u8>, usize>,
}

impl Names {
    /// The name itself, or the name with the first number that makes it one that nobody has, nor one of `others`.
    fn take(&mut self, name: &[u8], others: &FxHashSet<&[u8]>) -> Vec<u8> {
        if self.taken.insert(name.to_vec()) {
            return name.to_vec();
        }
        let next = self.next.entry(name.to_vec()).or_default();
        loop {
            let candidate = [name, format!("_{next}").as_bytes()].concat();
            *next += 1;
            if !others.contains(&candidate[..]) && self.taken.insert(candidate.clone()) {
                return candidate;
            }
        }
    }
}

impl<'a> Linker<'a> {
    /// A module with nothing in it.
    pub fn new() -> Self {
        let mut into = Bytecode::empty();
        into.version = 0;
        into.producer = Cow::Borrowed(b"");
        let name = into.tables.intern_op_name(dialect::BUILTIN, Cow::Borrowed(b"module"), true);
        let location = into.tables.unknown_location();
        let none = Span::default();
        let module = Operation {
            name,
            location,
            attributes: None,
            properties: None,
            results: none,
            operands: none,
            successors: none,
            regions: Span::new(0, 1),
            end: 1,
        };
        into.tree = OpTree {
            operations: vec![module],
            regions: vec![Region { owner: 0, values: none, blocks: Span::new(0, 1) }],
            blocks: vec![Block { arguments: none, locations: 0, first: 1, end: 1 }],
            ..OpTree::default()
        };
        let mut names = Names::default();
        names.taken.insert(b"main".to_vec());
        Self { into, names, known: FxHashMap::default(), channels: BTreeMap::new(), identities: 0, head: None }
    }

    /// A module to which others are added. It keeps its own names, `main` among them.
    ///
    /// # Errors
    /// Those of [`Linker::link`].
    pub fn onto(host: Bytecode<'a>) -> Result<Self> {
        check(&host)?;
        let names = Symbols::of(&host)?.all.iter().map(|symbol| symbol.name.to_vec()).collect();
        Ok(Self {
            names: Names { taken: names, next: FxHashMap::default() },
            known: FxHashMap::default(),
            channels: copy::channels(&host),
            identities: copy::identities(&host),
            head: None,
            into: host,
        })
    }

    /// Adds a module. Its `main` becomes a private function of the name `main`, or a similar one, without attributes of arguments and results.
    ///
    /// # Errors
    /// - [`crate::ErrorKind::Unsupported`]: the module has what cannot be renumbered or renamed: blobs beside it, encodings that are not known.
    /// - [`crate::ErrorKind::Format`]: it has no `main`, two symbols of one name, or functions that call themselves.
    pub fn link(&mut self, module: &Bytecode<'a>, main: &str) -> Result<Linked> {
        check(module)?;
        self.version_of(module)?;
        let symbols = Symbols::of(module)?;
        let channels = self.channels_of(module);
        let mut copier = Copier::new(self, module, channels)?;
        let own: FxHashSet<&[u8]> = symbols.all.iter().map(|symbol| symbol.name).collect();
        let (mut fresh, mut found) = (Vec::new(), FxHashMap::<Vec<u32>, usize>::default());
        let mut is_copied = vec![true; symbols.all.len()];
        let mut shared = 0;
        for number in symbols.callees_first {
            let Some(symbol) = symbols.all.get(number) else { continue };
            let wanted = if symbol.name == b"main" { main.as_bytes() } else { symbol.name };
            let key = if copier.may_be_shared(symbol)? { Some(copier.describe(symbol)?) } else { None };
            // Functions that are alike in one module stay as many as they are.
            let known = key.as_ref().and_then(|key| {
                let equal = copier.linker.known.get(key)?;
                let number = found.entry(key.clone()).or_default();
                *number += 1;
                equal.get(*number - 1).cloned()
            });
            let name = match known {
                Some(name) => {
                    shared += usize::from(symbol.is_function);
                    if let Some(is_copied) = is_copied.get_mut(number) {
                        *is_copied = false;
                    }
                    name
                }
                None => {
                    let name = copier.linker.names.take(wanted, &own);
                    fresh.extend(key.map(|key| (key, name.clone())));
                    name
                }
            };
            copier.renamed.insert(symbol.name, name);
        }
        for (symbol, _) in symbols.all.iter().zip(&is_copied).filter(|(_, is_copied)| **is_copied) {
            copier.copy(symbol)?;
        }
        let main =
            symbols.all.iter().find(|symbol| symbol.name == b"main").ok_or_else(|| Error::refused("the module has no function `main`"))?;
        let head = copier.head()?;
        let linked = Linked {
            main: copier.renamed.get(main.name).cloned().unwrap_or_default(),
            arguments: copier.dictionaries(main, "arg_attrs")?,
            results: copier.dictionaries(main, "res_attrs")?,
            attributes: copier.module_attributes()?,
            shared,
        };
        self.identities = self.identities.saturating_add(copy::identities(module));
        self.head.get_or_insert(head);
        for (key, name) in fresh {
            self.known.entry(key).or_default().push(name);
        }
        Ok(linked)
    }

    /// The module, with these attributes.
    pub fn finish(mut self, attributes: &Attributes) -> Result<Bytecode<'a>> {
        let dictionary = copy::dictionary(&mut self.into.tables, attributes);
        let first = self.into.tree.properties.len();
        let (Some(module), Some((location, properties))) = (self.into.tree.operations.first_mut(), self.head.take()) else {
            return Err(Error::bug("nothing was linked"));
        };
        (module.attributes, module.location) = (dictionary, location);
        module.properties = (!properties.is_empty()).then(|| Span::new(first, properties.len()));
        self.into.tree.properties.extend(properties);
        self.close()
    }

    /// The module that others were added to, which says of itself what it said before.
    pub fn close(mut self) -> Result<Bytecode<'a>> {
        let tree = &mut self.into.tree;
        let end = tree.operations.len() as u32;
        let module = tree.operations.first_mut();
        let body = module.as_ref().and_then(|module| tree.regions.get(module.regions.start as usize));
        let body = body.and_then(|region| tree.blocks.get_mut(region.blocks.start as usize));
        let (Some(module), Some(body)) = (module, body) else { return Err(Error::bug("a module without a body")) };
        (module.end, body.end) = (end, end);
        Ok(self.into)
    }

    /// Takes the newer of the versions: whoever reads that one reads the operations of the older one too.
    fn version_of(&mut self, module: &Bytecode<'a>) -> Result<()> {
        self.into.version = self.into.version.max(module.version);
        if self.into.producer.is_empty() || self.into.producer == module.producer {
            self.into.producer = module.producer.clone();
            return Ok(());
        }
        match (StablehloVersion::of_producer(&self.into.producer), StablehloVersion::of_producer(&module.producer)) {
            (Some(known), Some(version)) => {
                if version > known {
                    self.into.producer = module.producer.clone();
                }
                Ok(())
            }
            _ => {
                let name = |producer: &[u8]| String::from_utf8_lossy(producer).into_owned();
                let (known, producer) = (name(&self.into.producer), name(&module.producer));
                Err(Error::unsupported(format!("which of the modules is newer is not known: `{known}` and `{producer}` wrote them")))
            }
        }
    }

    /// New numbers for the channels of a module that another module has too. XLA takes one number for two operations of one kind, but not for transfers
    /// and not for two kinds.
    fn channels_of(&mut self, module: &Bytecode<'_>) -> FxHashMap<u64, u64> {
        let own = copy::channels(module);
        let taken: BTreeSet<u64> = self.channels.keys().chain(own.keys()).copied().collect();
        // One more than the greatest may be none.
        let mut free = (1..).filter(|number| !taken.contains(number));
        let mut renumbered = FxHashMap::default();
        for (channel, kinds) in own {
            let may_stay = match self.channels.get(&channel) {
                Some(known) => *known == kinds && !kinds.iter().any(|kind| matches!(&kind[..], b"send" | b"recv")),
                None => true,
            };
            let new = if may_stay { None } else { free.next() };
            renumbered.extend(new.map(|new| (channel, new)));
            self.channels.insert(new.unwrap_or(channel), kinds);
        }
        renumbered
    }
}

/// Refuses a module in which not everything can be renumbered.
fn check(module: &Bytecode<'_>) -> Result<()> {
    if let Some(what) = &module.unreadable {
        return Err(Error::unsupported(format!("the module cannot be linked: it holds {what}")));
    }
    if module.has_resources() {
        return Err(Error::unsupported("the module has blobs in resource sections, which cannot be linked"));
    }
    Ok(())
}

impl Default for Linker<'_> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_the_first_free_number() {
        let (mut names, none) = (Names::default(), FxHashSet::default());
        let others = FxHashSet::from_iter([&b"f_1"[..]]);
        let mut take = |name: &str, others| String::from_utf8(names.take(name.as_bytes(), others)).unwrap();
        assert_eq!(take("f", &none), "f");
        assert_eq!(take("f_0", &none), "f_0");
        assert_eq!(take("f", &others), "f_2");
        assert_eq!(take("f_0", &none), "f_0_0");
    }
}
