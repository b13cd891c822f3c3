//! Operators whose body runs at the call.

use std::sync::Arc;
use std::time::Duration;

use mxnet_engine::{Access, Op, Resource, engine};

use mxnet_core::eager::run;
use mxnet_core::opdef::Known;
use mxnet_core::{Array, Attrs, Call, Cpu, OpDef, Param, Result};

/// 1 if the body sees memory that code outside the library can write to.
static SEES_SHARED: OpDef = OpDef {
    name: "sees_shared",
    params: &[Param::array("at")],
    cpu: Cpu::Eager(
        |context| {
            let is_shared = context.input(0).tensor().storage().is_shared();
            context.done(Array::from_slice(&[i64::from(is_shared)], &[1])?)
        },
        Known::FromValues,
    ),
    positions: &[0],
    ..OpDef::DEFAULT
};

#[test]
fn positions_exported_while_a_body_waits_for_them_are_copied() -> Result<()> {
    let at = Array::from_slice(&[0_i64; 4], &[4])?;
    let storage = at.tensor().storage().clone();
    let uses: [(Arc<dyn Resource>, Access); 1] = [(storage.clone(), Access::Write)];
    // A write that is still running when the call begins, and an export right after it.
    engine().push(Op {
        name: "export",
        run: Box::new(move || {
            std::thread::sleep(Duration::from_millis(100));
            storage.mark_shared();
            Ok(())
        }),
        uses: uses.into_iter().collect(),
        priority: 0,
        cost_ns: u64::MAX,
        bytes: 0,
        origin: None,
    });
    let found = run(&Call {
        op: &SEES_SHARED,
        inputs: &[Some(&at)],
        attrs: &Attrs::none(),
        outs: &[],
        dtype: None,
    })?;
    assert_eq!(found[0].to_vec::<i64>()?, [0]);
    assert!(at.tensor().storage().is_shared());
    Ok(())
}
