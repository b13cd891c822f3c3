//! Interpreters see every call made while they are on the stack.

use std::cell::RefCell;
use std::rc::Rc;

use mxnet_tensor::Scalar;

use mxnet_core::mode::*;
use mxnet_core::{Array, Call, Outputs, Result, autograd, dispatch};

/// Records the calls it sees and passes them on.
struct Witness(RefCell<Vec<&'static str>>);

impl Interpreter for Witness {
    fn call(&self, call: &Call) -> Result<Outputs> {
        self.0.borrow_mut().push(call.op.name);
        dispatch(call)
    }
}

#[test]
fn a_pushed_interpreter_sees_calls_and_recording_goes_on_below_it() -> Result<()> {
    let mut x = Array::from_slice(&[1.0_f64, 2.0], &[2])?;
    autograd::attach_grad(&mut x, autograd::GradReq::Write)?;
    let witness = Rc::new(Witness(RefCell::default()));
    let y = {
        let _scope = Scope::enter(true, true);
        with_interpreter(witness.clone(), || x.mul(&x)?.sum(None, false))?
    };
    autograd::backward(&[&y], &[None], autograd::Retain::No, true)?;
    assert_eq!(*witness.0.borrow(), ["multiply", "sum"]);
    let gradient = autograd::gradient_of(&x).map(|leaf| leaf.gradient().to_vec::<f64>());
    assert_eq!(gradient.transpose()?, Some(vec![2.0, 4.0]));
    Ok(())
}

#[test]
fn an_interpreter_is_gone_after_its_scope_even_after_a_panic() -> Result<()> {
    let witness = Rc::new(Witness(RefCell::default()));
    let inside =
        std::panic::AssertUnwindSafe(|| with_interpreter(witness.clone(), || panic!("in scope")));
    assert!(std::panic::catch_unwind(inside).is_err());
    assert!(!Flags::current().is_stacked());
    Array::scalar(Scalar::F64(1.0), mxnet_tensor::DType::F64)?.shift(1.0)?;
    assert!(witness.0.borrow().is_empty());
    Ok(())
}

/// Records the calls it sees, including those inside composites.
struct Expanding(RefCell<Vec<&'static str>>, std::rc::Weak<Expanding>);

impl Interpreter for Expanding {
    fn call(&self, call: &Call) -> Result<Outputs> {
        self.0.borrow_mut().push(call.op.name);
        match self.1.upgrade() {
            Some(this) => expand(this, call),
            None => dispatch(call),
        }
    }
}

#[test]
fn an_expanding_interpreter_sees_the_calls_of_composites() -> Result<()> {
    let x = Array::from_slice(&[1.0_f64, 2.0], &[2])?;
    let witness = Rc::new_cyclic(|this| Expanding(RefCell::default(), this.clone()));
    let attrs = mxnet_core::Attrs::none();
    with_interpreter(witness.clone(), || {
        mxnet_core::invoke(&mxnet_ops::elementwise::parts::ISREAL, &[&x], &attrs)
    })?;
    assert_eq!(witness.0.borrow()[0], "isreal");
    assert!(witness.0.borrow().len() > 1);
    assert!(!Flags::current().is_stacked());
    Ok(())
}
