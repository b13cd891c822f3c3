//! Errors of operators: one variant per kind a caller may react to, with the facts.

use std::fmt;

use mxnet_engine::{Failure, WaitError};
use mxnet_kernels::UnsupportedElem;
use mxnet_tensor::{DType, Device, TensorError};

use crate::opdef::OpDef;
use crate::registry;

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One operand, as error messages show it.
#[derive(Clone, Debug, PartialEq)]
pub struct OperandFacts {
    /// Parameter name.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Data type.
    pub dtype: DType,
    /// Device.
    pub device: Device,
}

/// The facts of an error: the operator, the problem, the operands and a hint.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Operator the user called.
    pub op: &'static str,
    /// What was found and what is required, numbers included.
    pub problem: String,
    /// Operands, in order.
    pub operands: Vec<OperandFacts>,
    /// The operator that has these operands, if it is another one: `op` called it, and it failed when `op` had returned.
    pub part: Option<&'static str>,
    /// A hint that was checked to work.
    pub hint: Option<String>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.op.is_empty() {
            f.write_str(&self.problem)?;
        } else {
            write!(f, "{}: {}", self.op, self.problem)?;
        }
        if let Some(part) = self.part {
            write!(f, "\n  operands of its part {part}:")?;
        }
        let width = self
            .operands
            .iter()
            .map(|o| o.name.len())
            .max()
            .unwrap_or(0);
        for o in &self.operands {
            write!(
                f,
                "\n  {:<width$}: shape {}  {}  {}",
                o.name,
                Tuple(&o.shape),
                o.dtype.name(),
                o.device
            )?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Shows numbers as a Python tuple.
pub struct Tuple<'a, T>(pub &'a [T]);

impl<T: fmt::Display> fmt::Display for Tuple<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, x) in self.0.iter().enumerate() {
            write!(f, "{}{x}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str(if self.0.len() == 1 { ",)" } else { ")" })
    }
}

/// Everything an operator can report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// Shapes do not fit the operator or one another.
    Shape(Box<Fault>),
    /// A data type the operator does not take.
    DType(Box<Fault>),
    /// An axis out of range or repeated.
    Axis(Box<Fault>),
    /// An index out of range.
    Index(Box<Fault>),
    /// A value that a parameter does not take.
    Value(Box<Fault>),
    /// A matrix without the factorisation that was asked for: singular, not positive definite, not square.
    LinAlg(Box<Fault>),
    /// A Python number that the data type cannot hold.
    Overflow(Box<Fault>),
    /// A step or a number of parts of zero.
    ZeroDivision(Box<Fault>),
    /// Operands on different devices, or a device that is not there.
    Device(Box<Fault>),
    /// No memory.
    Memory(Box<Fault>),
    /// Not available for these arguments; the text names the alternative.
    Unsupported(Box<Fault>),
    /// Reading or writing files.
    Io(Box<Fault>),
    /// A gradient was asked for that does not exist.
    Autograd(Box<Fault>),
    /// A floating-point error that the thread asked to be raised.
    FloatingPoint(Box<Fault>),
    /// The values of an abstract array were asked for: it has a shape and a dtype, but no values.
    Abstract(Box<Fault>),
    /// A queued operation failed earlier; its own error is inside.
    Failed(Failure),
    /// The wait was interrupted by a signal.
    Interrupted,
    /// A broken invariant: please report it.
    Internal(Box<Fault>),
}

/// Constructors of [`Error`] from the operator's name and a problem, and access to the facts.
macro_rules! constructors {
    ($($name:ident => $variant:ident),*) => { impl Error {
        $(
            #[doc = concat!("An [`Error::", stringify!($variant), "`] of operator `op`.")]
            #[cold]
            pub fn $name(op: &'static str, problem: impl Into<String>) -> Error {
                Error::$variant(Box::new(Fault { op, problem: problem.into(), operands: Vec::new(), part: None, hint: None }))
            }
        )*

        /// The facts, for kinds that have them; of a failed operation those of its own error.
        pub fn fault(&self) -> Option<&Fault> {
            match self {
                $(Error::$variant(fault))|* => Some(fault),
                Error::Failed(failure) => failure.error().downcast_ref::<Error>()?.fault(),
                Error::Interrupted => None,
            }
        }

        /// The facts, for kinds that have them. A failed operation is shared, so its facts cannot be changed.
        pub fn fault_mut(&mut self) -> Option<&mut Fault> {
            match self {
                $(Error::$variant(fault))|* => Some(fault),
                Error::Failed(_) | Error::Interrupted => None,
            }
        }
    } };
}
constructors!(shape => Shape, dtype => DType, axis => Axis, index => Index, value => Value, linalg => LinAlg, overflow => Overflow, zero_division => ZeroDivision, device => Device,
    memory => Memory, unsupported => Unsupported, io => Io, autograd => Autograd, floating_point => FloatingPoint, without_values => Abstract, internal => Internal);

impl Error {
    /// Adds a hint. Only give one that was checked to work.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        if let Some(fault) = self.fault_mut() {
            fault.hint = Some(hint.into());
        }
        self
    }

    /// Sets the operator's name if there is none yet.
    #[must_use]
    pub fn in_op(mut self, op: &'static str) -> Error {
        if let Some(fault) = self.fault_mut()
            && fault.op.is_empty()
        {
            fault.op = op;
        }
        self
    }

    /// Replaces the name and the operands of another operator by those that the caller knows.
    #[must_use]
    pub fn for_op(
        mut self,
        op: &'static str,
        operands: impl FnOnce() -> Vec<OperandFacts>,
    ) -> Error {
        if let Some(fault) = self.fault_mut() {
            fault.op = op;
            fault.operands = operands();
            fault.part = None;
        }
        self
    }

    /// The error of an operator that the body of `caller` called, as the user of `caller` sees it.
    #[must_use]
    pub fn called_by(mut self, caller: Option<&'static OpDef>) -> Error {
        // The message of a floating-point error is NumPy's, which names the operator at its end.
        if let Error::FloatingPoint(_) = self {
            return self;
        }
        let Some(caller) = caller else {
            return self;
        };
        if let Some(fault) = self.fault_mut() {
            let name = registry::base_form(caller).name;
            if fault.op != name {
                if !fault.operands.is_empty() {
                    fault.part = fault.part.or(Some(fault.op));
                }
                fault.op = name;
            }
        }
        self.reported_as(caller)
    }

    /// The error of `op` under the name that users know ([`OpDef::reports_as`]). Without a name it shows no operands: users have not given them.
    #[must_use]
    pub fn reported_as(mut self, op: &'static OpDef) -> Error {
        if let (Some(name), Some(fault)) = (op.reports_as, self.fault_mut())
            && fault.op == op.name
        {
            fault.op = name;
            if name.is_empty() {
                fault.operands.clear();
                fault.part = None;
            }
        }
        self
    }

    /// Adds the operands if there are none yet.
    #[must_use]
    pub fn with_operands(mut self, operands: impl FnOnce() -> Vec<OperandFacts>) -> Error {
        if let Some(fault) = self.fault_mut()
            && fault.operands.is_empty()
        {
            fault.operands = operands();
        }
        self
    }
}

impl Error {
    /// The error that a kernel raised, which it does by a panic with the allocator's error or with the dtype that it does not take.
    ///
    /// # Errors
    /// The panic itself, if it is another one.
    #[cold]
    pub(crate) fn of_kernel(
        op: &'static str,
        panic: Box<dyn std::any::Any + Send>,
    ) -> Result<Error, Box<dyn std::any::Any + Send>> {
        if panic.is::<std::collections::TryReserveError>() {
            let problem = "not enough memory for the scratch space of the operation";
            return Ok(Error::memory(op, problem));
        }
        let UnsupportedElem(elem) = *panic.downcast::<UnsupportedElem>()?;
        let name = DType::ALL[elem as usize].name();
        let problem = format!("takes real floating-point operands, found {name}");
        Ok(Error::dtype(op, problem))
    }

    /// Converts a panic inside of `op` to an error.
    #[cold]
    pub fn from_panic(op: &'static str, panic: Box<dyn std::any::Any + Send>) -> Error {
        let panic = match Error::of_kernel(op, panic) {
            Ok(error) => return error,
            Err(panic) => panic,
        };
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&'static str>().copied());
        Error::internal(op, text.unwrap_or("panic whose payload is not text"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape(x)
            | Error::DType(x)
            | Error::Axis(x)
            | Error::Index(x)
            | Error::Value(x)
            | Error::LinAlg(x)
            | Error::Overflow(x)
            | Error::ZeroDivision(x) => x.fmt(f),
            Error::Device(x)
            | Error::Memory(x)
            | Error::Unsupported(x)
            | Error::Io(x)
            | Error::Autograd(x)
            | Error::FloatingPoint(x)
            | Error::Abstract(x) => x.fmt(f),
            Error::Internal(x) => write!(f, "{x}\n  this is a defect of mxnet, please report it"),
            Error::Failed(failure) => {
                write!(f, "{}", failure.error())?;
                if failure.origin().is_empty() {
                    Ok(())
                } else {
                    write!(f, "\n  issued by: {}", failure.origin())
                }
            }
            Error::Interrupted => f.write_str("interrupted while waiting"),
        }
    }
}

impl std::error::Error for Error {}

impl From<TensorError> for Error {
    #[cold]
    fn from(error: TensorError) -> Error {
        let problem = error.to_string();
        match error {
            TensorError::Shape { .. } => Error::shape("", problem),
            TensorError::Axis { .. } => Error::axis("", problem),
            TensorError::Index { .. } => Error::index("", problem),
            TensorError::DType { .. } => Error::dtype("", problem),
            TensorError::Device { .. } => Error::device("", problem),
            TensorError::Memory { .. } => Error::memory("", problem),
            _ => Error::unsupported("", problem),
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        Error::Failed(failure)
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Error {
        match error {
            WaitError::Failed(failure) => Error::Failed(failure),
            WaitError::Interrupted => Error::Interrupted,
        }
    }
}
