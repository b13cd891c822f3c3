//! The registry of operators: families, which the linker collects from the crates, and operators that are added at run time.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use linkme::distributed_slice;

use crate::error::{Error, Result};
use crate::opdef::OpDef;

/// A group of related operators.
pub struct Family {
    /// Name, for tables and docs.
    pub name: &'static str,
    /// The operators.
    pub ops: &'static [&'static OpDef],
}

/// The families of each linked crate.
#[distributed_slice]
pub static LIBRARIES: [&'static [Family]];

/// Every family.
pub fn families() -> impl Iterator<Item = &'static Family> {
    LIBRARIES.iter().flat_map(|families| families.iter())
}

/// Operators that were added at run time.
static ADDED: RwLock<Vec<&'static OpDef>> = RwLock::new(Vec::new());

/// All operators by name, including added ones.
static BY_NAME: OnceLock<RwLock<HashMap<&'static str, &'static OpDef>>> = OnceLock::new();

fn by_name() -> &'static RwLock<HashMap<&'static str, &'static OpDef>> {
    let linked = || families().flat_map(|f| f.ops.iter().copied());
    BY_NAME.get_or_init(|| RwLock::new(linked().map(|op| (op.name, op)).collect()))
}

/// Every operator, family by family, then those that were added.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
    families().flat_map(|f| f.ops.iter().copied()).chain(added)
}

/// The operator called `name`. For names in files and in Python; Rust code refers to the definition directly.
pub fn find(name: &str) -> Option<&'static OpDef> {
    let known = by_name().read().unwrap_or_else(PoisonError::into_inner);
    known.get(name).copied()
}

/// The operator that a file calls `name`: an operator of this name, or one that had it in an earlier version.
pub fn find_in_file(name: &str) -> Option<&'static OpDef> {
    find(name).or_else(|| all().find(|op| op.old_names.contains(&name)))
}

/// The operator of which `op` is the form with the full signature ([`OpDef::full_signature`]), or `op` itself. Goes over all operators.
pub fn base_form(op: &'static OpDef) -> &'static OpDef {
    let is_form = |base: &&OpDef| {
        base.full_signature
            .is_some_and(|form| std::ptr::eq(form, op))
    };
    all().find(is_form).unwrap_or(op)
}

/// Adds an operator for the rest of the process. [`OpDef::state`] holds data for its functions.
///
/// # Errors
/// [`Error::Value`] if its name is empty or exists already.
pub fn add(op: OpDef) -> Result<&'static OpDef> {
    let mut known = by_name().write().unwrap_or_else(PoisonError::into_inner);
    if op.name.is_empty() || known.contains_key(op.name) {
        let problem = match op.name {
            "" => "the name of an operator must not be empty".to_owned(),
            name => format!("an operator `{name}` exists already"),
        };
        return Err(Error::value("add", problem));
    }
    let op: &'static OpDef = Box::leak(Box::new(op));
    known.insert(op.name, op);
    ADDED
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .push(op);
    Ok(op)
}
