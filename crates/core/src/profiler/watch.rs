//! What the call path and the executor of graphs record.

use std::cell::Cell;

use mxnet_tensor::{Tensor, memory};

use crate::invoke::Call;
use crate::profiler::buffer::{
    BACKWARD, Kind, NESTED, QUEUED, Role, Words, head, label_of, now, push_array, push_operand,
    write,
};
use crate::profiler::names::{self, Label};
use crate::profiler::{RUNNING, active, settings::Profile};
use crate::{Array, call_site};

thread_local! {
    static SCOPE: Cell<Label> = const { Cell::new(Label(0)) };
    static IN_BACKWARD: Cell<bool> = const { Cell::new(false) };
    /// Number of muting scopes that are open.
    static NUM_MUTED: Cell<u32> = const { Cell::new(0) };
    /// Number of operators whose bodies are running.
    static NUM_BODIES: Cell<u32> = const { Cell::new(0) };
    static IS_IN_CALL: Cell<bool> = const { Cell::new(false) };
}

/// Restores a cell of the thread when dropped.
struct Restore<T: Copy + 'static>(&'static std::thread::LocalKey<Cell<T>>, T);

impl<T: Copy + 'static> Drop for Restore<T> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Label of the thread's scope.
pub fn current_scope() -> Label {
    SCOPE.get()
}

/// Sets the thread's scope. Returns the previous one.
pub fn set_scope(scope: Label) -> Label {
    SCOPE.replace(scope)
}

/// Opens a scope inside the thread's current one, and returns that. For callers that restore it by [`set_scope`].
pub fn enter_scope(name: &str) -> Label {
    let outer = SCOPE.get();
    let whole = format!("{}{name}:", outer.name());
    SCOPE.replace(names::label(&whole))
}

/// Events of the thread carry this scope until it is dropped.
#[must_use]
pub struct Scope {
    _restore: Restore<Label>,
}

impl Scope {
    /// Opens a scope inside the current one.
    pub fn enter(name: &str) -> Scope {
        Scope {
            _restore: Restore(&SCOPE, enter_scope(name)),
        }
    }
}

/// Operators of the thread belong to a backward pass until it is dropped.
#[must_use]
pub struct BackwardScope {
    _restore: Restore<bool>,
}

impl BackwardScope {
    /// Begins a backward pass.
    pub fn enter() -> BackwardScope {
        BackwardScope {
            _restore: Restore(&IN_BACKWARD, IN_BACKWARD.replace(true)),
        }
    }
}

/// Whether the thread is in a backward pass.
pub fn is_in_backward() -> bool {
    IN_BACKWARD.get()
}

/// Operators of the thread are not recorded until it is dropped: the caller records them as a whole.
#[must_use]
pub struct Mute {
    _restore: Restore<u32>,
}

impl Mute {
    /// Mutes the thread.
    pub fn enter() -> Mute {
        let outer = NUM_MUTED.get();
        NUM_MUTED.set(outer + 1);
        Mute {
            _restore: Restore(&NUM_MUTED, outer),
        }
    }
}

fn flags() -> u8 {
    let backward = if IN_BACKWARD.get() { BACKWARD } else { 0 };
    let nested = if NUM_BODIES.get() > 0 { NESTED } else { 0 };
    backward | nested
}

/// Fills in the memory, if the settings ask for that.
#[inline]
fn note_memory(words: &mut Words) {
    if active() & Profile::MEMORY != 0 {
        let (now, peak) = memory::reserved_bytes();
        words[6] = now as u64;
        words[7] = peak as u64;
    }
}

/// The words of a call, without times.
#[inline]
fn described(kind: Kind, call: &Call, outputs: &[Array], fresh: u32) -> Words {
    let mut words = head(kind, flags(), label_of(call.op));
    for x in call.inputs.iter().flatten() {
        push_array(&mut words, x, Role::Input);
    }
    let mut bytes = 0;
    for (i, y) in outputs.iter().enumerate() {
        push_array(&mut words, y, Role::Output);
        if i >= 32 || fresh >> i & 1 == 1 {
            bytes += (y.len() * y.dtype().size()) as u64;
        }
    }
    words[4] = bytes;
    words[5] = u64::from(SCOPE.get().0);
    if call_site::is_enabled()
        && let Some(line) = call_site::current()
    {
        words[5] |= u64::from(names::label(&line).0) << 32;
    }
    words
}

fn finish(words: &mut Words, begin: u64) {
    let end = now();
    words[1] = begin;
    words[2] = end - begin;
    note_memory(words);
    write(words);
}

/// A kernel that is about to run, or to be pushed.
#[derive(Clone, Copy)]
pub struct Watch {
    since: u64,
}

/// Whether operators are recorded.
#[inline]
pub fn records_operators() -> bool {
    active() & Profile::OPERATORS != 0
}

/// Begins to time a kernel; `None` if operators are not recorded.
#[inline]
pub fn watch() -> Option<Watch> {
    match active() & Profile::OPERATORS {
        0 => None,
        _ => begin_watch(),
    }
}

#[inline(never)]
fn begin_watch() -> Option<Watch> {
    (NUM_MUTED.get() == 0).then(|| Watch { since: now() })
}

/// Whether a call copies between devices.
fn kind_of(call: &Call, outputs: &[Array]) -> Kind {
    let to = outputs.first().map(Array::device);
    for x in call.inputs.iter().flatten() {
        if to.is_some_and(|to| x.device() != to) && !x.is_weak() {
            return Kind::Copy;
        }
    }
    Kind::Operator
}

impl Watch {
    /// Records a kernel that has run on this thread. Bit `i` of `fresh` says that output `i` was allocated for it.
    #[inline(never)]
    pub fn ran(self, call: &Call, outputs: &[Array], fresh: u32) {
        let end = now();
        let mut words = described(kind_of(call, outputs), call, outputs, fresh);
        words[1] = self.since;
        words[2] = end - self.since;
        note_memory(&mut words);
        write(&words);
    }

    /// The record of a kernel that is pushed.
    #[inline(never)]
    pub fn pending(self, call: &Call, outputs: &[Array], fresh: u32) -> Pending {
        let mut words = described(kind_of(call, outputs), call, outputs, fresh);
        words[0] |= u64::from(QUEUED) << 40;
        Pending {
            words,
            since: self.since,
        }
    }
}

/// A kernel in the engine's queue.
pub struct Pending {
    words: Words,
    since: u64,
}

impl Pending {
    /// Runs the kernel, and records how long it waited and ran.
    pub fn run<R>(pending: Option<Pending>, body: impl FnOnce() -> R) -> R {
        let Some(mut pending) = pending else {
            return body();
        };
        let begin = now();
        let result = body();
        pending.words[3] = begin - pending.since;
        finish(&mut pending.words, begin);
        result
    }
}

/// The body of an operator without a kernel.
pub struct BodyWatch {
    kind: Kind,
    since: u64,
    flags: u8,
    _restore: Option<Restore<u32>>,
}

/// Begins to time the body of an operator; `None` if operators are not recorded.
#[inline]
pub fn watch_body(call: &Call) -> Option<BodyWatch> {
    match active() & Profile::OPERATORS {
        0 => None,
        _ => begin_body(call),
    }
}

#[inline(never)]
fn begin_body(call: &Call) -> Option<BodyWatch> {
    use crate::opdef::Cpu;
    let kind = match call.op.cpu {
        _ if NUM_MUTED.get() > 0 => return None,
        Cpu::View(_) => Kind::View,
        Cpu::Composite(_) => Kind::Composite,
        Cpu::Eager(..) => Kind::Operator,
        // `launch` records these.
        Cpu::Map(_) | Cpu::Kernel(_) | Cpu::AnyDevice(_) => return None,
    };
    let (flags, outer) = (flags(), NUM_BODIES.get());
    let restore = (kind == Kind::Operator).then(|| {
        NUM_BODIES.set(outer + 1);
        Restore(&NUM_BODIES, outer)
    });
    Some(BodyWatch {
        kind,
        since: now(),
        flags,
        _restore: restore,
    })
}

impl BodyWatch {
    /// Records the body.
    #[inline(never)]
    pub fn ran(self, call: &Call, outputs: &[Array]) {
        let end = now();
        let fresh = match self.kind {
            // What a composite allocates is recorded with the operators that it calls.
            Kind::Operator if call.outs.is_empty() => u32::MAX,
            _ => 0,
        };
        let mut words = described(self.kind, call, outputs, fresh);
        words[0] = words[0] & !(0xFF << 40) | u64::from(self.flags) << 40;
        words[1] = self.since;
        words[2] = end - self.since;
        note_memory(&mut words);
        write(&words);
    }
}

/// A call that [`dispatch`](crate::invoke::dispatch) executes.
pub(crate) struct CallWatch {
    since: u64,
    _restore: Restore<bool>,
}

/// Begins to time a call; `None` inside another call.
pub(crate) fn watch_call() -> Option<CallWatch> {
    let is_recorded = active() & Profile::CALLS != 0 && !IS_IN_CALL.get();
    is_recorded.then(|| CallWatch {
        since: now(),
        _restore: Restore(&IS_IN_CALL, IS_IN_CALL.replace(true)),
    })
}

impl CallWatch {
    /// Records the call.
    pub fn ended(self, call: &Call) {
        let mut words = head(Kind::Call, flags() & BACKWARD, label_of(call.op));
        words[5] = u64::from(SCOPE.get().0);
        words[1] = self.since;
        words[2] = now() - self.since;
        write(&words);
    }
}

/// Begin of a wait for an array.
#[derive(Clone, Copy)]
pub(crate) struct Waited(u64);

/// Begins to time a wait; `None` if calls are not recorded.
#[inline]
pub(crate) fn wait_began() -> Option<Waited> {
    match active() & Profile::CALLS {
        0 => None,
        _ => Some(Waited(now())),
    }
}

/// Records a wait.
#[cold]
pub(crate) fn wait_ended(waited: Waited, name: &str) {
    let mut words = head(Kind::Call, 0, names::label(name));
    words[5] = u64::from(SCOPE.get().0);
    finish(&mut words, waited.0);
}

/// A run of a compiled graph.
pub struct RunWatch {
    name: Label,
    flags: u8,
    scope: Label,
    since: u64,
}

/// Begins to time a run of a graph; `None` if graphs are not recorded. `name` is called only if they are.
#[inline]
pub fn watch_run(name: impl FnOnce() -> Label) -> Option<RunWatch> {
    match active() & Profile::GRAPHS {
        0 => None,
        _ => Some(RunWatch {
            name: name(),
            flags: flags(),
            scope: SCOPE.get(),
            since: now(),
        }),
    }
}

/// A node of a graph that has run.
pub struct NodeRun<'a> {
    /// Names of its operators.
    pub name: Label,
    /// The line that called it.
    pub line: Label,
    /// The scope in which it was traced.
    pub scope: Label,
    /// Whether it belongs to a backward pass.
    pub is_backward: bool,
    /// Its operands.
    pub inputs: &'a [Option<&'a Tensor>],
    /// Its results.
    pub outputs: &'a [&'a Tensor],
}

impl RunWatch {
    /// Runs the graph on this thread and records it. `bytes` were allocated for its results.
    pub fn run<R>(
        watch: Option<&RunWatch>,
        is_queued: bool,
        bytes: usize,
        body: impl FnOnce() -> R,
    ) -> R {
        let Some(watch) = watch else {
            return body();
        };
        let begin = if is_queued { now() } else { watch.since };
        let result = body();
        let queued = if is_queued { QUEUED } else { 0 };
        let mut words = head(Kind::Graph, watch.flags | queued, watch.name);
        words[3] = begin - watch.since;
        words[4] = bytes as u64;
        words[5] = u64::from(watch.scope.0);
        finish(&mut words, begin);
        result
    }

    /// The time before a node.
    pub fn node_begins(&self) -> u64 {
        now()
    }

    /// Records a node that began at `begin`.
    pub fn node_ran(&self, begin: u64, node: &NodeRun) {
        let end = now();
        let backward = if node.is_backward { BACKWARD } else { 0 };
        let mut words = head(Kind::Node, self.flags & BACKWARD | backward, node.name);
        for x in node.inputs.iter().flatten() {
            push_operand(&mut words, x.dtype() as u8, x.shape(), Role::Input);
        }
        for y in node.outputs {
            push_operand(&mut words, y.dtype() as u8, y.shape(), Role::Output);
        }
        let scope = if node.scope == Label::default() {
            self.scope
        } else {
            node.scope
        };
        words[5] = u64::from(scope.0) | u64::from(node.line.0) << 32;
        words[1] = begin;
        words[2] = end - begin;
        note_memory(&mut words);
        write(&words);
    }
}

/// Whether user's events are recorded.
pub(super) fn records_user() -> bool {
    active() & RUNNING != 0
}
