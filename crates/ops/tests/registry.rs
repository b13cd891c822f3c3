//! Operators and kernels that are added at run time.

use std::sync::atomic::{AtomicU64, Ordering};

use mxnet_core::{
    Array, Attrs, Cpu, Error, KernelContext, OpDef, Param, Result, device_kernels, invoke1, one_of,
    registry,
};
use mxnet_ops::elementwise::arithmetic::SUBTRACT;
use mxnet_tensor::{DType, DeviceKind};

/// The elements of a dense float64 tensor.
fn elements(tensor: &mxnet_tensor::Tensor) -> *mut f64 {
    assert!(tensor.dtype() == DType::F64 && tensor.layout().is_contiguous());
    tensor.data_ptr().cast()
}

fn fill(context: &KernelContext, value: f64) -> Result<()> {
    let out = context.output(0);
    for i in 0..out.len() {
        // SAFETY: dense float64, granted to this call.
        unsafe { *elements(out).add(i) = value };
    }
    Ok(())
}

#[test]
fn operators_with_state_can_be_added() -> Result<()> {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    const PARAMS: &[Param] = &[Param::array("x")];
    let op = registry::add(OpDef {
        name: "count_calls",
        params: PARAMS,
        doc: "How often it was called, in the shape of `x`.",
        infer: |context| one_of(mxnet_tensor::Dims::from_slice(context.shape(0)), DType::F64),
        cpu: Cpu::Kernel(|context| {
            let state = context
                .op
                .state
                .and_then(|state| state.downcast_ref::<AtomicU64>());
            let calls = state.ok_or_else(|| Error::internal(context.op.name, "it has no state"))?;
            fill(context, 1.0 + calls.fetch_add(1, Ordering::Relaxed) as f64)
        }),
        state: Some(&CALLS),
        ..OpDef::DEFAULT
    })?;
    let found = registry::find("count_calls").map(|found| std::ptr::eq(found, op));
    assert_eq!(found, Some(true));
    assert!(registry::all().any(|known| known.name == "count_calls"));
    let x = Array::from_slice(&[0.0_f64; 3], &[3])?;
    for turn in 1..4 {
        let y = invoke1(op, &[&x], &Attrs::none())?;
        assert_eq!(y.to_vec::<f64>()?, [f64::from(turn); 3]);
    }
    for name in ["add", "count_calls", ""] {
        let again = registry::add(OpDef {
            name,
            ..OpDef::DEFAULT
        });
        assert!(matches!(again, Err(Error::Value(_))), "{name}");
    }
    Ok(())
}

#[test]
fn the_kernel_of_highest_priority_runs() -> Result<()> {
    let (x, y) = (
        Array::from_slice(&[5.0_f64, 7.0], &[2])?,
        Array::from_slice(&[1.0_f64, 2.0], &[2])?,
    );
    let difference = || x.sub(&y)?.to_vec::<f64>();
    let cpu = DeviceKind::Cpu;
    assert_eq!(difference()?, [4.0, 5.0]);
    device_kernels::register("subtract", cpu, 2, |context| fill(context, 2.0))?;
    device_kernels::register("subtract", cpu, 1, |context| fill(context, 1.0))?;
    assert_eq!(difference()?, [2.0, 2.0]);
    // Another thread uses it as well, and the kernel receives the dtype that the operator computes in.
    device_kernels::register("subtract", cpu, 3, |context| {
        assert_eq!(context.compute, Some(DType::F64));
        fill(context, 3.0)
    })?;
    let there = std::thread::scope(|scope| scope.spawn(difference).join());
    assert!(matches!(there, Ok(Ok(values)) if values == [3.0, 3.0]));
    device_kernels::remove("subtract", cpu, 3)?;
    device_kernels::remove("subtract", cpu, 2)?;
    assert_eq!(difference()?, [1.0, 1.0]);
    // The entry's own kernel has priority 0.
    device_kernels::remove("subtract", cpu, 1)?;
    device_kernels::register("subtract", cpu, -1, |context| fill(context, -1.0))?;
    assert_eq!(difference()?, [4.0, 5.0]);
    assert_eq!(SUBTRACT.name, "subtract");
    Ok(())
}
