//! The entries of all operators. A file of its own: other tests add operators to the registry of their process.

use std::collections::HashSet;

use mxnet_core::registry::all;

use mxnet_core::opdef::{Cpu, Grad};
use mxnet_core::types::Types;
use mxnet_ops as _;

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
