//! The operator that the user called, while its body, which calls other operators, runs on this thread. These may fail later, when the body has
//! returned: their errors name it ([`Error::called_by`](crate::Error::called_by)).

use std::cell::Cell;

use crate::opdef::OpDef;

thread_local! {
    static CALLER: Cell<Option<&'static OpDef>> = const { Cell::new(None) };
}

/// The outermost operator whose body runs on this thread.
#[inline]
pub fn current() -> Option<&'static OpDef> {
    CALLER.get()
}

/// Runs `body` as a part of `op`, unless it is a part of another operator already.
#[inline]
pub fn within<R>(op: Option<&'static OpDef>, body: impl FnOnce() -> R) -> R {
    replaced(current().or(op), body)
}

/// Runs code of the user that the body of an operator calls: its calls are not parts of the operator.
pub fn outside<R>(body: impl FnOnce() -> R) -> R {
    replaced(None, body)
}

#[inline]
fn replaced<R>(op: Option<&'static OpDef>, body: impl FnOnce() -> R) -> R {
    struct Restore(Option<&'static OpDef>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CALLER.set(self.0);
        }
    }
    let _restore = Restore(CALLER.replace(op));
    body()
}
