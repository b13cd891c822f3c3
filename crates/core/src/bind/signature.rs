//! Signatures: what the binder derives from an operator once, before calls.

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::opdef::{Form, OpDef};

/// The parameters of an operator as calls are bound to them. It lives as long as the program.
pub struct Signature {
    /// The operator.
    pub op: &'static OpDef,
    /// The operator with the documented parameters: the full signature if there is one, otherwise `op`.
    pub public: &'static OpDef,
    /// The function's name, for messages.
    pub name: &'static str,
    /// Names of the parameters, then of the keywords that the form adds (see [`extra_keywords`]).
    pub keywords: Vec<&'static str>,
    /// Largest number of positional arguments.
    pub positional: usize,
    /// The parameter whose integers may be given as separate arguments.
    pub variadic: Option<usize>,
    /// Whether a choice of the full signature is missing in `op`.
    pub has_more_choices: bool,
    /// Whether a parameter requires another one ([`crate::Param`]'s `requires`).
    pub has_requirements: bool,
    /// The parameter that changes places with the next one if an integer is given for it by position.
    pub swaps: Option<usize>,
    /// Number of array arguments of a call that gives nothing else; `None` if such a call is not possible.
    pub operands: Option<usize>,
    /// Number of optional array parameters that such a call leaves out.
    pub absent: usize,
    /// The attributes of such a call.
    pub defaults: Attrs,
    /// Position of `subok` among the attributes, if the operator has it.
    pub subok: Option<usize>,
}

impl Signature {
    /// The signature of `op`, which errors call `name`.
    pub fn new(op: &'static OpDef, name: &'static str) -> Signature {
        let public = op.full_signature.unwrap_or(op);
        let extra = extra_keywords(public);
        // `out` follows the parameters and can be given by position, unless a parameter before it is keyword-only.
        let open = public.params.iter().filter(|p| !p.keyword_only).count();
        let trailing_out = !extra.is_empty() && open == public.params.len();
        let is_operand = |p: &&Param| p.kind == ParamKind::Array && is_required(p);
        let operands = op.params.iter().take_while(is_operand).count();
        let rest = &op.params[operands..];
        let may_be_left_out = |p: &Param| p.kind != ParamKind::Arrays && !is_required(p);
        let mut attributes = op.params.iter().filter(|p| p.is_attribute());
        Signature {
            op,
            public,
            name,
            keywords: (public.params.iter().map(|p| p.name))
                .chain(extra.iter().copied())
                .collect(),
            positional: open + usize::from(trailing_out),
            variadic: public.params.iter().position(|p| p.variadic),
            has_more_choices: (op.params.iter().zip(public.params)).any(
                |(basic, full_signature)| {
                    matches!(basic.kind, ParamKind::Choice(_)) && basic.kind != full_signature.kind
                },
            ),
            has_requirements: public.params.iter().any(|p| p.requires.is_some()),
            swaps: public.params.iter().position(|p| p.swaps_if_integer),
            operands: rest.iter().all(may_be_left_out).then_some(operands),
            absent: rest.iter().filter(|p| p.is_array()).count(),
            defaults: (rest.iter().filter(|p| p.is_attribute()))
                .map(|p| Value::from(p.default))
                .collect(),
            subok: attributes.position(|p| p.name == "subok"),
        }
    }

    /// Position of the parameter or extra keyword of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.keywords.iter().position(|known| *known == name)
    }
}

fn is_required(param: &Param) -> bool {
    matches!(param.default, Default::Required)
}

/// Keywords that a form adds to the parameters.
pub fn extra_keywords(op: &OpDef) -> &'static [&'static str] {
    match op.form {
        Form::ParamsOnly => &[],
        Form::Out if op.params.iter().any(|p| p.kind == ParamKind::Out) => &[],
        Form::Out => &["out"],
        Form::Ufunc => &[
            "out",
            "where",
            "casting",
            "order",
            "dtype",
            "subok",
            "signature",
        ],
    }
}
