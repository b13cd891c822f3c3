//! The list of all operators: families that the linker collects from the crates that have them.

use std::collections::HashMap;
use std::sync::OnceLock;

use linkme::distributed_slice;

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

/// Every operator, family by family.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    families().flat_map(|f| f.ops.iter().copied())
}

/// The operator called `name`.
pub fn find(name: &str) -> Option<&'static OpDef> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static OpDef>> = OnceLock::new();
    BY_NAME
        .get_or_init(|| all().map(|op| (op.name, op)).collect())
        .get(name)
        .copied()
}
