//! Calls with language-neutral arguments, [`Given`].

use std::collections::HashMap;

use parking_lot::RwLock;
use smallvec::SmallVec;

use super::{Arguments, Given, NeutralReader, Signature, bind};
use crate::error::Result;
use crate::invoke::{Call, dispatch};
use crate::opdef::OpDef;
use crate::{Array, Outputs};

/// Signatures, built at the first call of an operator and cached.
static SIGNATURES: RwLock<Option<HashMap<&'static str, &'static Signature>>> = RwLock::new(None);

/// The signature of an operator under its own name.
pub fn signature_of(op: &'static OpDef) -> &'static Signature {
    if let Some(known) = SIGNATURES.read().as_ref().and_then(|all| all.get(op.name)) {
        return known;
    }
    let mut signatures = SIGNATURES.write();
    let all = signatures.get_or_insert_default();
    all.entry(op.name)
        .or_insert_with(|| Box::leak(Box::new(Signature::new(op, op.name))))
}

/// Calls `op` with positional arguments and keyword arguments.
///
/// # Errors
/// Arguments that do not belong to the call, are missing, or have the wrong type; what the operator reports.
pub fn call<'a>(
    op: &'static OpDef,
    positional: &[Given<'a>],
    named: &[(&str, Given<'a>)],
) -> Result<Outputs> {
    let signature = signature_of(op);
    let reader = NeutralReader { op: op.name };
    let mut bound = Arguments::new(signature);
    let by_name = named.iter().map(|&(name, value)| {
        let found = signature.find(name).ok_or_else(|| name.to_owned());
        (found, value)
    });
    let op = bind(&&reader, signature, positional, by_name, &mut bound)?;
    let inputs: SmallVec<[Option<&Array>; 8]> = bound.inputs.iter().map(Option::as_ref).collect();
    let outs: SmallVec<[Option<&Array>; 1]> = bound.outs.iter().map(Option::as_ref).collect();
    dispatch(&Call {
        op,
        inputs: &inputs,
        attrs: bound.attrs(),
        outs: &outs,
        dtype: bound.dtype,
    })
}
