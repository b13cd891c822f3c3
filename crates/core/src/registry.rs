//! The list of all operators: families that the linker collects from the crates that have them, and operators that are added while the
//! program runs.

use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

use linkme::distributed_slice;

use crate::error::{Error, Result};
use crate::opdef::OpDef;

/// Operators of one kind.
pub struct Family {
    /// Name, for tables.
    pub name: &'static str,
    /// The operators.
    pub ops: &'static [&'static OpDef],
}

/// The families of each crate that is linked.
#[distributed_slice]
pub static LIBRARIES: [&'static [Family]];

/// Every family.
pub fn families() -> impl Iterator<Item = &'static Family> {
    LIBRARIES.iter().flat_map(|families| families.iter())
}

/// Operators that were added while the program runs.
static ADDED: RwLock<Vec<&'static OpDef>> = RwLock::new(Vec::new());

/// Operators by name, those that were added included.
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

/// The operator called `name`. Calls have their operator at hand: this is for names in files and in Python.
pub fn find(name: &str) -> Option<&'static OpDef> {
    let known = by_name().read().unwrap_or_else(PoisonError::into_inner);
    known.get(name).copied()
}

/// Adds an operator for the rest of the process. What its functions need beside their arguments stands in [`OpDef::state`].
///
/// # Errors
/// [`Error::Value`] if its name is empty or taken.
pub fn add(op: OpDef) -> Result<&'static OpDef> {
    let mut known = by_name().write().unwrap_or_else(PoisonError::into_inner);
    if op.name.is_empty() || known.contains_key(op.name) {
        let problem = match op.name {
            "" => "an operator needs a name".to_owned(),
            name => format!("there is an operator `{name}`"),
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
