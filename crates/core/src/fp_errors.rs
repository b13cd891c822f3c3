//! Floating-point errors as NumPy defines them: division by zero, overflow, underflow, invalid value.
//!
//! By default nothing is checked. While a thread watches for errors, it waits for the results of each of its calls and compares them with the operands.
//! A NaN or an infinity that no operand had is an error; elementwise operators are compared element by element. This finds what the processor's flags
//! would report, whatever kernel or thread computed the result, and costs nothing for threads that do not watch. A result of finite elements only can
//! have an underflow at most, so its operands need not be read. Fast paths are tried first: their result is used if it has no error; otherwise the
//! general path makes the call again and checks it.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use mxnet_tensor::{DType, DeviceKind, Scalar};

use crate::builtins::builtins;
use crate::error::{Error, Result};
use crate::invoke::{Call, dispatch, invoke1};
use crate::mode::{self, Flags};
use crate::opdef::{Cpu, OpDef, Pole, Rng};
use crate::{Array, Attrs, Outputs, cpu};

/// What happens when an error is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// Nothing; the error is not searched for.
    #[default]
    Ignore,
    /// The installed reporter is called.
    Report,
    /// The call fails with [`Error::FloatingPoint`].
    Raise,
}

/// The reactions of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// An infinity from finite operands by division by zero, or at a pole.
    pub divide: Reaction,
    /// Any other infinity from finite operands.
    pub over: Reaction,
    /// A result too small for its dtype.
    pub under: Reaction,
    /// A NaN from operands that are not NaN.
    pub invalid: Reaction,
}

/// Callback that receives the message of an error, which names the operator. If it returns an error, the call fails with that.
pub type Report = fn(sentence: &str) -> Result<()>;

thread_local! {
    static REACTIONS: Cell<Reactions> = const { Cell::new(Reactions {
        divide: Reaction::Ignore,
        over: Reaction::Ignore,
        under: Reaction::Ignore,
        invalid: Reaction::Ignore,
    }) };
    /// Mask (`where=`) of the elements that are checked; `None` for all.
    static MASK: RefCell<Option<Array>> = const { RefCell::new(None) };
}
static REPORT: OnceLock<Report> = OnceLock::new();

/// Installs the reporter. If one is installed already, that one stays.
pub fn install(report: Report) {
    let _ = REPORT.set(report);
}

/// The thread's reactions.
pub fn reactions() -> Reactions {
    REACTIONS.get()
}

/// Sets the thread's reactions. Returns the previous ones.
pub fn set_reactions(reactions: Reactions) -> Reactions {
    mode::set_watching(reactions != Reactions::default());
    REACTIONS.replace(reactions)
}

/// Runs `body`, in which only results where `mask` is true are checked: the caller discards the others.
pub fn under_mask<R>(mask: Option<&Array>, body: impl FnOnce() -> R) -> R {
    struct Restore(Option<Array>);
    impl Drop for Restore {
        fn drop(&mut self) {
            MASK.set(self.0.take());
        }
    }
    let Some(mask) = mask.filter(|_| is_watching()) else {
        return body();
    };
    let _restore = Restore(MASK.replace(Some(mask.clone())));
    body()
}

/// Executes a call unwatched, then checks its results.
pub(crate) fn watched(call: &Call) -> Result<Outputs> {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            mode::set_watching(true);
        }
    }
    mode::set_watching(false);
    let _restore = Restore;
    // Copies of the operands that the call overwrites.
    let kept: Vec<Option<Array>> = call
        .inputs
        .iter()
        .map(|x| {
            x.map(|x| {
                if overwritten(call, x) {
                    x.copy()
                } else {
                    Ok(x.clone())
                }
            })
            .transpose()
        })
        .collect::<Result<_>>()?;
    let outputs = dispatch(call)?;
    let operands: Vec<&Array> = kept.iter().flatten().collect();
    let _scope = mode::Scope::enter(false, mode::is_training());
    for y in &outputs {
        check_result(call.op, &operands, y)?;
    }
    Ok(outputs)
}

/// Runs a fast path, which must neither wait nor write anything that others see. While the thread watches, its result is used only if `is_clean` says
/// that it has no floating-point error. Returns `None` if the result cannot be used or the path does not apply: the caller then takes the general
/// path, which reports the error.
#[inline]
pub fn try_fast_path<R, E>(
    op: &'static OpDef,
    fast_path: impl FnOnce() -> Result<Option<R>, E>,
    is_clean: impl FnOnce(&R) -> Result<bool, E>,
) -> Result<Option<R>, E> {
    if !Flags::current().is_watching() {
        return fast_path();
    }
    if op.fp_errors.divides || op.fp_errors.converts || !matches!(op.rng, Rng::No) {
        return Ok(None);
    }
    match unwatched(fast_path)? {
        Some(made) if is_clean(&made)? => Ok(Some(made)),
        _ => Ok(None),
    }
}

/// Magnitude of a number; for a complex one the larger of its parts.
pub fn size_of_number(x: &Scalar) -> f64 {
    match x {
        Scalar::C128(x) => x.re.abs().max(x.im.abs()),
        other => other.as_f64().abs(),
    }
}

/// Smallest normal number of a dtype.
pub fn smallest_normal(dtype: DType) -> f64 {
    match dtype.real() {
        DType::F16 => 6.103_515_625e-5,
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Whether all elements are known to be finite. Arrays that are not in C order or not on the CPU are not read; the answer is false.
pub fn is_finite(y: &Array) -> Result<bool> {
    if exact(y) {
        return Ok(true);
    }
    if y.device().kind() != DeviceKind::Cpu || !y.layout().is_contiguous() {
        return Ok(false);
    }
    Ok(cpu::is_finite(y.read()?.tensor()))
}

/// Whether a finite result of `op` can have an underflow to which this thread reacts.
pub fn checks_underflow(op: &OpDef) -> bool {
    op.fp_errors.shrinks && reactions().under != Reaction::Ignore
}

/// Converts a value to the dtype of the array that it is assigned to by the operator `cast`, which checks for floating-point errors. `None` if this
/// thread does not watch for errors or the conversion can have none: then the assignment itself converts.
///
/// # Errors
/// [`Error::FloatingPoint`] if the thread's reaction to the error is [`Reaction::Raise`]; [`Error::Memory`].
pub fn checked_cast(value: &Array, dtype: DType) -> Result<Option<Array>> {
    let is_exact = !dtype.is_inexact() && (!value.dtype().is_inexact() || value.is_weak());
    let loses_part = value.dtype().is_complex() && !dtype.is_complex();
    if !Flags::current().is_watching()
        || value.dtype() == dtype && !value.is_weak()
        || dtype == DType::Bool
        || is_exact
        || loses_part
    {
        return Ok(None);
    }
    match value.number() {
        Some(number) => {
            // In the dtype of a Python number: float64 or complex128.
            let own = match number {
                Scalar::Bool(_) | Scalar::I64(_) => DType::I64,
                Scalar::U64(_) => DType::U64,
                Scalar::F64(_) | Scalar::Wide(_) => DType::F64,
                Scalar::C128(_) => DType::C128,
            };
            Array::scalar(number, own)?.astype(dtype).map(Some)
        }
        None => value.astype(dtype).map(Some),
    }
}

/// Checks elements that a function computed in place, each from its old value and one or several operands. An element that was combined with several
/// operands is compared with one of them: a NaN if there is one, otherwise an infinity, otherwise a zero.
pub fn check_in_place(
    op: &'static OpDef,
    before: &Array,
    targets: &[i64],
    value: Option<&Array>,
    after: &Array,
) -> Result<()> {
    let dtype = before.dtype();
    if dtype.is_complex() {
        return Ok(());
    }
    unwatched(|| {
        let mut operands = vec![before.clone()];
        if let Some(value) = value.filter(|value| !value.dtype().is_complex()) {
            let rank = |x: f64| match x {
                _ if x.is_nan() => 3,
                _ if x.is_infinite() => 2,
                _ => u8::from(x == 0.0),
            };
            let values: Vec<f64> = value.astype(DType::F64)?.to_vec()?;
            let mut met = vec![1.0; before.len()];
            for (i, &target) in targets.iter().enumerate() {
                let one = values[if values.len() == 1 { 0 } else { i }];
                let worst = &mut met[target as usize];
                if rank(one) >= rank(*worst) {
                    *worst = one;
                }
            }
            operands.push(Array::from_slice(&met, before.shape())?.astype(value.dtype())?);
        }
        let operands: Vec<&Array> = operands.iter().collect();
        check_result(op, &operands, after)
    })
}

/// Whether this thread watches for floating-point errors.
pub fn is_watching() -> bool {
    reactions() != Reactions::default()
}

/// Runs `body` without watching.
pub fn unwatched<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            mode::set_watching(self.0);
        }
    }
    let _restore = Restore(is_watching());
    mode::set_watching(false);
    body()
}

fn overwritten(call: &Call, x: &Array) -> bool {
    let storage = x.tensor().storage();
    let outs = call.outs.iter().flatten();
    outs.into_iter()
        .any(|out| std::ptr::eq(out.tensor().storage().var(), storage.var()))
        || !call.op.mutates.is_empty()
}

/// Whether the elements are integers or booleans. A Python integer beyond 64 bits is stored as a float.
fn exact(x: &Array) -> bool {
    !x.dtype().is_inexact() || matches!(x.number(), Some(Scalar::Wide(_)))
}

fn check_result(op: &'static OpDef, operands: &[&Array], y: &Array) -> Result<()> {
    let wanted = reactions();
    let name = match op.fp_errors.name {
        "" => op.name,
        name => name,
    };
    if y.is_empty() || y.is_abstract() || operands.iter().any(|x| x.is_abstract()) {
        return Ok(());
    }
    if exact(y) {
        check_integers(op, operands, y.dtype(), name)?;
        if op.fp_errors.converts && y.dtype().is_integer() && operands.iter().any(|x| !exact(x)) {
            let finite = operands[0].unary(builtins().isfinite)?;
            if any(&finite.unary(builtins().logical_not)?)? {
                return react(wanted.invalid, "invalid value", name);
            }
        }
        return Ok(());
    }
    // NumPy reports nothing for samplers and determinants.
    let silent = !matches!(op.rng, Rng::No) || op.fp_errors.silent;
    if silent || matches!(op.cpu, Cpu::View(_)) {
        return Ok(());
    }
    if !checks_underflow(op) && is_finite(y)? {
        return Ok(());
    }
    // Results of elementwise operators are compared element by element, other results with all elements of the operands.
    let elementwise = matches!(op.cpu, Cpu::Map(_));
    let meets = |flags: Array| -> Result<Array> {
        match elementwise {
            true => Ok(flags),
            false => only_one(&flags),
        }
    };
    let mut had_nan: Option<Array> = None;
    let mut finite: Option<Array> = None;
    for x in operands.iter().filter(|x| !exact(x)) {
        let nan = meets(x.unary(builtins().isnan)?)?;
        had_nan = Some(match had_nan {
            Some(so_far) => so_far.binary(builtins().logical_or, &nan)?,
            None => nan,
        });
        let infinite = meets(
            x.unary(builtins().isfinite)?
                .unary(builtins().logical_not)?,
        )?;
        let all = infinite.unary(builtins().logical_not)?;
        finite = Some(match finite {
            Some(so_far) => so_far.binary(builtins().logical_and, &all)?,
            None => all,
        });
    }
    let but = |flags: Array, mask: &Option<Array>, keep: bool| match mask {
        Some(mask) if keep => flags.binary(builtins().logical_and, mask),
        Some(mask) => flags.binary(builtins().logical_and, &mask.unary(builtins().logical_not)?),
        None => Ok(flags),
    };
    if wanted.invalid != Reaction::Ignore
        && any(&but(y.unary(builtins().isnan)?, &had_nan, false)?)?
    {
        react(wanted.invalid, "invalid value", name)?;
    }
    if (wanted.divide, wanted.over) != (Reaction::Ignore, Reaction::Ignore) {
        let infinite = but(y.unary(builtins().isinf)?, &finite, true)?;
        let pole = match op.fp_errors.pole {
            Pole::None => None,
            Pole::ZeroOf(i) => Some(is_zero(operands[i])?),
            Pole::Everywhere => Some(infinite.clone()),
        };
        let (at_pole, over) = match &pole {
            Some(pole) => {
                let here = infinite.binary(builtins().logical_and, pole)?;
                let elsewhere = pole.unary(builtins().logical_not)?;
                (
                    any(&here)?,
                    any(&infinite.binary(builtins().logical_and, &elsewhere)?)?,
                )
            }
            None => (false, any(&infinite)?),
        };
        if at_pole {
            react(wanted.divide, "divide by zero", name)?;
        }
        if over {
            react(wanted.over, "overflow", name)?;
        }
    }
    if checks_underflow(op) && any(&vanished(op, operands, y)?)? {
        react(wanted.under, "underflow", name)?;
    }
    Ok(())
}

/// Checks divisions of integers: division by zero, and quotients that the dtype cannot hold.
pub fn check_integers(
    op: &OpDef,
    operands: &[&Array],
    dtype: DType,
    name: &'static str,
) -> Result<()> {
    let wanted = reactions();
    if !op.fp_errors.divides || !dtype.is_integer() || operands.len() != 2 {
        return Ok(());
    }
    if any(&is_zero(operands[1])?)? {
        return react(wanted.divide, "divide by zero", name);
    }
    // The only integer quotient that overflows: the smallest integer divided by -1.
    let quotient = op.fp_errors.quotient && dtype.is_signed();
    if quotient && any(&overflows(dtype, operands)?)? {
        return react(wanted.over, "overflow", name);
    }
    Ok(())
}

/// Mask of the results that are subnormal or zero although no operand is zero or infinite.
fn vanished(op: &OpDef, operands: &[&Array], y: &Array) -> Result<Array> {
    let mut is_subnormal = y
        .abs()?
        .with_scalar(builtins().less, smallest_normal(y.dtype()))?;
    for x in operands {
        if !exact(x) {
            is_subnormal =
                is_subnormal.binary(builtins().logical_and, &x.unary(builtins().isfinite)?)?;
        }
        if !op.fp_errors.counts_zeros {
            let counts = is_zero(x)?.unary(builtins().logical_not)?;
            is_subnormal = is_subnormal.binary(builtins().logical_and, &counts)?;
        }
    }
    Ok(is_subnormal)
}

/// Mask of the quotients of the smallest integer of a dtype and -1.
fn overflows(dtype: DType, operands: &[&Array]) -> Result<Array> {
    let lowest = match dtype {
        DType::I8 => i64::from(i8::MIN),
        DType::I16 => i64::from(i16::MIN),
        DType::I32 => i64::from(i32::MIN),
        _ => i64::MIN,
    };
    let is = |x: &Array, value: i64| {
        let x = x.astype(dtype)?;
        x.binary(builtins().equal, &Array::weak_scalar(Scalar::I64(value))?)
    };
    is(operands[0], lowest)?.binary(builtins().logical_and, &is(operands[1], -1)?)
}

fn is_zero(x: &Array) -> Result<Array> {
    if let Some(number) = x.number() {
        return Array::scalar(Scalar::Bool(number.as_f64() == 0.0), DType::Bool);
    }
    invoke1(
        builtins().equal,
        &[x, &Array::weak_scalar(Scalar::I64(0))?],
        &Attrs::none(),
    )
}

/// Whether exactly one element is true, as a 0-d array.
fn only_one(flags: &Array) -> Result<Array> {
    flags
        .astype(DType::I64)?
        .sum(None, false)?
        .astype(DType::Bool)
}

fn any(flags: &Array) -> Result<bool> {
    if let Some(mask) = MASK.with_borrow(Option::clone) {
        let counted = flags.binary(builtins().logical_and, &mask)?;
        return Ok(only_one(&counted)?.to_vec::<bool>()?.first() == Some(&true));
    }
    Ok(only_one(flags)?.to_vec::<bool>()?.first() == Some(&true))
}

fn react(reaction: Reaction, what: &str, name: &'static str) -> Result<()> {
    let sentence = format!("{what} encountered in {name}");
    match (reaction, REPORT.get()) {
        (Reaction::Ignore, _) | (Reaction::Report, None) => Ok(()),
        (Reaction::Report, Some(report)) => report(&sentence),
        (Reaction::Raise, _) => Err(Error::floating_point("", sentence)),
    }
}
