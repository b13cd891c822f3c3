//! What the binder knows of an operator before it is called.

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::opdef::{Form, OpDef};

/// The parameters of an operator in the form that calls are bound in. It lives as long as the program.
pub struct Signature {
    /// The operator.
    pub op: &'static OpDef,
    /// The operator whose parameters are shown: the extended form, if there is one.
    pub public: &'static OpDef,
    /// The function's name, for messages.
    pub name: &'static str,
    /// Names of the parameters, then of what the form adds.
    pub keywords: Vec<&'static str>,
    /// How many arguments may be given by position.
    pub positional: usize,
    /// The parameter whose integers may be given as separate arguments.
    pub variadic: Option<usize>,
    /// Whether the extended form knows words that the plain one does not.
    pub has_more_words: bool,
    /// Whether a parameter asks for another one beside it.
    pub has_beside: bool,
    /// How many arrays a call gives that gives nothing else; `None` if it cannot.
    pub operands: Option<usize>,
    /// How many array parameters such a call leaves out.
    pub absent: usize,
    /// The attributes of such a call.
    pub defaults: Attrs,
    /// Where `subok` is among the attributes, if the operator has it.
    pub subok: Option<usize>,
}

impl Signature {
    /// The signature of `op`, called by `name`.
    pub fn new(op: &'static OpDef, name: &'static str) -> Signature {
        let public = op.extended.unwrap_or(op);
        let extra = extra_keywords(public);
        // `out` behind the parameters can be given by position unless a parameter before it cannot.
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
            has_more_words: (op.params.iter().zip(public.params)).any(|(plain, extended)| {
                matches!(plain.kind, ParamKind::Choice(_)) && plain.kind != extended.kind
            }),
            has_beside: public.params.iter().any(|p| p.beside.is_some()),
            operands: rest.iter().all(may_be_left_out).then_some(operands),
            absent: rest.iter().filter(|p| p.is_array()).count(),
            defaults: (rest.iter().filter(|p| p.is_attribute()))
                .map(|p| Value::from(p.default))
                .collect(),
            subok: attributes.position(|p| p.name == "subok"),
        }
    }

    /// The position of the parameter, or of what the form adds, that has this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.keywords.iter().position(|known| *known == name)
    }
}

fn is_required(param: &Param) -> bool {
    matches!(param.default, Default::Required)
}

/// Keywords that a form adds behind the parameters.
pub fn extra_keywords(op: &OpDef) -> &'static [&'static str] {
    match op.form {
        Form::Plain => &[],
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
