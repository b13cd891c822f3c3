//! The list of all operators. A family that is not listed here does not exist.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::opdef::OpDef;
use crate::{
    creation, elementwise, fft, index, linalg, nn, order, random, reduce, shape, signal, ufunc,
};

/// Operators of one kind.
pub struct Family {
    /// Name, for tables.
    pub name: &'static str,
    /// The operators.
    pub ops: &'static [&'static OpDef],
}

/// Every family of this crate.
pub static FAMILIES: &[Family] = &[
    Family {
        name: "arithmetic",
        ops: elementwise::arithmetic::OPS,
    },
    Family {
        name: "comparison",
        ops: elementwise::comparison::OPS,
    },
    Family {
        name: "closeness",
        ops: elementwise::close::OPS,
    },
    Family {
        name: "bitwise",
        ops: elementwise::bitwise::OPS,
    },
    Family {
        name: "bits",
        ops: elementwise::bits::OPS,
    },
    Family {
        name: "rounding",
        ops: elementwise::rounding::OPS,
    },
    Family {
        name: "exponential",
        ops: elementwise::explog::OPS,
    },
    Family {
        name: "trigonometric",
        ops: elementwise::trig::OPS,
    },
    Family {
        name: "special",
        ops: elementwise::special::OPS,
    },
    Family {
        name: "parts",
        ops: elementwise::parts::OPS,
    },
    Family {
        name: "logic",
        ops: elementwise::logic::OPS,
    },
    Family {
        name: "network",
        ops: elementwise::network::OPS,
    },
    Family {
        name: "activation",
        ops: elementwise::activation::OPS,
    },
    Family {
        name: "selection",
        ops: elementwise::select::OPS,
    },
    Family {
        name: "creation",
        ops: creation::OPS,
    },
    Family {
        name: "shape",
        ops: shape::OPS,
    },
    Family {
        name: "reduction",
        ops: reduce::OPS,
    },
    Family {
        name: "folds of any function",
        ops: ufunc::OPS,
    },
    Family {
        name: "indexing",
        ops: index::OPS,
    },
    Family {
        name: "order",
        ops: order::OPS,
    },
    Family {
        name: "linear algebra",
        ops: linalg::OPS,
    },
    Family {
        name: "factorisations",
        ops: linalg::FACTORISATIONS,
    },
    Family {
        name: "Fourier transforms",
        ops: fft::OPS,
    },
    Family {
        name: "sequences",
        ops: signal::OPS,
    },
    Family {
        name: "neural networks",
        ops: nn::OPS,
    },
    Family {
        name: "random",
        ops: random::OPS,
    },
];

/// Every operator, family by family.
pub fn all() -> impl Iterator<Item = &'static OpDef> {
    FAMILIES.iter().flat_map(|f| f.ops.iter().copied())
}

/// The operator called `name`.
pub fn find(name: &str) -> Option<&'static OpDef> {
    static BY_NAME: OnceLock<HashMap<&'static str, &'static OpDef>> = OnceLock::new();
    BY_NAME
        .get_or_init(|| all().map(|op| (op.name, op)).collect())
        .get(name)
        .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::opdef::{Cpu, Grad};
    use crate::types::Types;

    #[test]
    fn names_are_unique_and_entries_complete() {
        let mut seen = HashSet::new();
        for op in all() {
            assert!(!op.name.is_empty(), "an operator without a name");
            assert!(seen.insert(op.name), "two operators are called {}", op.name);
            assert!(!op.doc.is_empty(), "{} has no doc", op.name);
            if matches!(op.cpu, Cpu::Map(_)) {
                assert!(
                    matches!(
                        op.types,
                        Types::Promote { .. } | Types::Choose | Types::Counted { .. }
                    ),
                    "{}: elementwise operators promote",
                    op.name
                );
            }
            if matches!(op.cpu, Cpu::Composite(_)) {
                assert!(
                    !matches!(op.grad, Grad::Rule(..)),
                    "{}: a composite's gradient is derived",
                    op.name
                );
            }
            assert!(
                !matches!(op.grad, Grad::Stop("no gradient is defined")),
                "{}: say why no gradient flows",
                op.name
            );
        }
    }
}
