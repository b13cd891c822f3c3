//! Runs of a compiled graph: without Python, and by several threads at once.
//!
//! On the CPU a run is one operation of the engine, which holds the variables of its inputs. So the steps need no variables: one thread runs them one
//! after the other, and uses the pool for each, or for several that run side by side. A run that must wait or takes long is pushed, and the caller continues.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use mxnet_core::launch::{self, unordered};
use mxnet_core::mode::{Scope, is_training};
use mxnet_core::profiler::{self, Mute, NodeRun, RunWatch};
use mxnet_core::{
    Args, Array, Call, Error, KernelContext, Outputs, Pool, Result, RngState, call_site, cpu,
    eager, workspace,
};
use mxnet_engine::{Access, Failure, Op, Resource, Var, engine};
use mxnet_kernels::scratch::{count_bytes, taken_bytes};
use mxnet_tensor::{DType, DeviceKind, Scalar, Storage, Tensor};
use smallvec::SmallVec;

use crate::compile::{Arena, Executable, ResultRef, Step, TensorRef, Work, copy, shifted};
use crate::interpret::RunDraws;
use crate::ir::Source;
use crate::plan::BufferLocation;
use crate::random::Drawn;

/// Runs with a lower estimated cost are executed by the caller. Waking another thread and waiting for it takes some 50 us, by which a prediction
/// would take longer.
const INLINE_NS: u64 = 500_000;

/// Memory that a step used besides its operands.
struct Used {
    /// Working memory outside of the arena.
    allocated_bytes: usize,
    /// Size of an arena in which the kernel finds all its working memory.
    arena_bytes: usize,
}

/// The tensors that are made for one run.
struct Run {
    tensors: Vec<Tensor>,
    drawn: Drawn,
}

impl Executable {
    /// Runs the graph. `bindings` has an array for each input that is an argument or a captured array, in order; constants have none.
    ///
    /// # Errors
    /// [`Error::Memory`]; errors of kernels that run before this returns. Later errors are carried by the results.
    pub fn run(self: &Arc<Executable>, bindings: &[&Array]) -> Result<Outputs> {
        self.run_randomly(bindings).map(|(outputs, _)| outputs)
    }

    /// As [`Executable::run`]; also returns the stream positions of the run's random numbers.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn run_randomly(self: &Arc<Executable>, bindings: &[&Array]) -> Result<(Outputs, Drawn)> {
        if self.device.kind() != DeviceKind::Cpu {
            let _paused = Scope::enter(false, is_training());
            let drawn = self.graph.draw()?;
            let random = RunDraws::of(&drawn);
            let num_outputs = self.graph.outputs.len();
            let watch = profiler::watch_run(|| profiler::label(&self.graph.name));
            let call = || (self.graph).call(bindings, num_outputs, Some(&random), true);
            let outputs = RunWatch::run(watch.as_ref(), false, 0, call)?;
            return Ok((outputs, drawn));
        }
        let arrays = self.arrays(bindings)?;
        let fresh = (self.plan.fresh.iter())
            .map(|&buffer| {
                Ok(Storage::allocate(
                    self.graph.buffer(buffer).len_bytes,
                    self.device,
                )?)
            })
            .collect::<Result<SmallVec<[Arc<Storage>; 4]>>>()?;
        let mut tensors = Vec::with_capacity(self.bound.len());
        for bound in &self.bound {
            let (storage, layout) = match bound.location {
                BufferLocation::Input(i) => {
                    let (given, traced) = (arrays[i], &self.graph.inputs[i].view);
                    // Offset in bytes of the given array's elements relative to the trace.
                    let start = given.layout().offset() * given.dtype().size();
                    let was = traced.layout.offset() * traced.dtype.size();
                    let shift = start as isize - was as isize;
                    let layout = match shift {
                        0 => bound.layout.clone(),
                        _ if shift > 0 => shifted(&bound.layout, bound.dtype, shift as usize),
                        _ => {
                            let back = shift.unsigned_abs() / bound.dtype.size();
                            bound.layout.with_offset(bound.layout.offset() - back)
                        }
                    };
                    (given.tensor().storage(), layout)
                }
                BufferLocation::Fresh(i) => (&fresh[i], bound.layout.clone()),
                BufferLocation::Arena(_) | BufferLocation::Nowhere => {
                    return Err(Error::internal("graph", "a bound tensor lies in the arena"));
                }
            };
            let made = Tensor::new(storage.clone(), layout, bound.dtype)?;
            tensors.push(made.locked(bound.is_read_only));
        }
        let results = self.results.iter().map(|result| match result {
            ResultRef::Bound(i) => Ok(Array::from_tensor(tensors[*i].clone())),
            ResultRef::CopyOf(i) => Array::from_tensor(tensors[*i].clone()).copy(),
        });
        let results = results.collect::<Result<Outputs>>()?;
        let drawn = self.graph.draw()?;
        let run = Run {
            tensors,
            drawn: drawn.clone(),
        };
        self.start(&arrays, &fresh, run)?;
        Ok((results, drawn))
    }

    /// The array of each input.
    fn arrays<'a>(&'a self, bindings: &[&'a Array]) -> Result<SmallVec<[&'a Array; 8]>> {
        let mut given = bindings.iter();
        let arrays = self.graph.inputs.iter().map(|input| match &input.source {
            Source::Constant(x) => Some(x),
            Source::Argument(_) | Source::Captured(_) => given.next().copied(),
        });
        let arrays: Option<SmallVec<[&Array; 8]>> = arrays.collect();
        arrays.ok_or_else(|| Error::internal("graph", "an input is not bound"))
    }

    /// Runs the steps: here if that is cheap and all variables are free, otherwise as a pushed operation.
    fn start(
        self: &Arc<Executable>,
        arrays: &[&Array],
        fresh: &[Arc<Storage>],
        run: Run,
    ) -> Result<()> {
        let (mut reads, mut writes) = (SmallVec::<[&Var; 8]>::new(), SmallVec::<[_; 8]>::new());
        let address = |x: &Array| Arc::as_ptr(x.tensor().storage());
        let inputs = arrays.iter().zip(&self.graph.inputs);
        let written = inputs.filter(|(_, input)| input.written.is_some());
        let mut written: SmallVec<[_; 8]> = written.map(|(x, _)| address(x)).collect();
        written.sort_unstable();
        let is_written = |x: &Array| written.binary_search(&address(x)).is_ok();
        for x in arrays {
            let storage = x.tensor().storage();
            x.check_values()?;
            match is_written(x) {
                true => {
                    writes.push((storage.var(), Access::Write));
                    storage.bump_version();
                }
                false => reads.push(storage.var()),
            }
        }
        // Short runs count as free and so run inline: handing one to a worker would take as long as a part of it.
        let cost_ns = match self.cost_ns {
            0..INLINE_NS => 0,
            cost_ns => cost_ns,
        };
        let watch = profiler::watch_run(|| profiler::label(&self.graph.name));
        let fresh_bytes: usize = fresh.iter().map(|storage| storage.len_bytes()).sum();
        if let Some(guard) = engine().try_acquire(&reads, &writes, cost_ns)
            && guard.poison().is_none()
        {
            let steps = || launch::caught("graph", || self.steps(&run, watch.as_ref()));
            return RunWatch::run(watch.as_ref(), false, fresh_bytes, steps);
        }
        let mut uses: SmallVec<[(Arc<dyn Resource>, Access); 4]> = SmallVec::new();
        for x in arrays {
            let access = if is_written(x) {
                Access::Write
            } else {
                Access::Read
            };
            uses.push((x.tensor().storage().clone(), access));
        }
        let mut bytes = 4096;
        for storage in fresh {
            bytes += storage.len_bytes();
            uses.push((storage.clone(), Access::Overwrite));
        }
        let is_shared = arrays.iter().any(|x| x.tensor().storage().is_shared());
        let origin = call_site::current();
        let (this, issued_by) = (self.clone(), origin.clone());
        engine().push(Op {
            name: "graph",
            run: Box::new(move || {
                let steps = || this.steps(&run, watch.as_ref());
                RunWatch::run(watch.as_ref(), true, fresh_bytes, steps).map_err(|error| {
                    Failure::new(Box::new(error), issued_by.as_deref().unwrap_or(""))
                })
            }),
            uses,
            priority: 0,
            cost_ns: self.cost_ns,
            bytes,
            origin,
        });
        if is_shared {
            for x in arrays {
                x.wait_to_read()?;
            }
        }
        Ok(())
    }

    /// Runs all steps.
    fn steps(&self, run: &Run, watch: Option<&RunWatch>) -> Result<()> {
        let arena = self.take_arena()?;
        let result = self.steps_in(&arena, run, watch);
        let kept = std::mem::take(&mut *arena.kept.lock());
        if arena.storage.len_bytes() >= self.arena_bytes() {
            self.arenas.lock().push(arena);
        }
        drop(kept);
        result
    }

    fn steps_in(&self, arena: &Arena, run: &Run, watch: Option<&RunWatch>) -> Result<()> {
        let (mut allocated, mut needed) = (0, 0);
        let mut steps = &self.steps[..];
        while let Some((_, rest)) = steps.split_first() {
            let joined = rest.iter().take_while(|step| step.joins).count();
            let (together, rest) = steps.split_at(1 + joined);
            steps = rest;
            // The profiler measures one step after the other.
            let used = match watch.is_some() || joined == 0 {
                true => {
                    let used = together.iter().map(|step| {
                        self.step(step, arena, run, watch, true)
                            .map_err(|error| self.located(step, error))
                    });
                    used.collect::<Result<SmallVec<[Used; 2]>>>()?
                }
                false => self.side_by_side(together, arena, run)?,
            };
            allocated = allocated.max(used.iter().map(|x| x.allocated_bytes).sum());
            needed = needed.max(used.iter().map(|x| x.arena_bytes).fold(0, usize::max));
        }
        let added = arena
            .storage
            .len_bytes()
            .saturating_sub(self.plan.arena_bytes);
        (self.workspace_bytes).store(added + allocated, Ordering::Relaxed);
        self.arena_bytes.fetch_max(needed, Ordering::Relaxed);
        for (from, to) in &self.written {
            copy(found(from, arena, run)?, found(to, arena, run)?)?;
        }
        Ok(())
    }

    /// Runs independent steps at the same time, on this thread and on idle workers.
    fn side_by_side(
        &self,
        steps: &[Step],
        arena: &Arena,
        run: &Run,
    ) -> Result<SmallVec<[Used; 2]>> {
        let results: Vec<OnceLock<Result<Used>>> = steps.iter().map(|_| OnceLock::new()).collect();
        engine().run_tasks(steps.len(), &|i| {
            // The arena has no free part for several kernels: they allocate their working memory.
            let used = self.step(&steps[i], arena, run, None, false);
            let _ = results[i].set(used.map_err(|error| self.located(&steps[i], error)));
        });
        let results = results.into_iter().map(|result| {
            let missing = || Err(Error::internal("graph", "a step did not run"));
            result.into_inner().unwrap_or_else(missing)
        });
        results.collect()
    }

    /// The error of a step, with the operator and the line that called it.
    fn located(&self, step: &Step, error: Error) -> Error {
        let node = &self.graph.nodes[step.node];
        let error = error
            .in_op(node.op.name)
            .reported_as(node.op)
            .called_by(node.caller);
        match &node.line {
            Some(line) => error.with_hint(format!("called in `{}` at {line}", self.graph.name)),
            None => error,
        }
    }

    /// Runs one step. `may_offer` says whether its kernel may use the free part of the arena.
    fn step(
        &self,
        step: &Step,
        arena: &Arena,
        run: &Run,
        watch: Option<&RunWatch>,
        may_offer: bool,
    ) -> Result<Used> {
        let begin = watch.map_or(0, RunWatch::node_begins);
        for (from, to) in &step.carried {
            copy(found(from, arena, run)?, found(to, arena, run)?)?;
        }
        let mut inputs = SmallVec::<[Option<&Tensor>; 8]>::new();
        for x in &step.inputs {
            inputs.push(match x {
                TensorRef::Absent => None,
                x => Some(found(x, arena, run)?),
            });
        }
        let mut outputs = SmallVec::<[&Tensor; 4]>::new();
        for y in &step.outputs {
            outputs.push(found(y, arena, run)?);
        }
        let node = &self.graph.nodes[step.node];
        if node.op.zeroed {
            // The kernel needs zeros, and reused memory is not zeroed.
            for output in &outputs {
                cpu::fill(output, Scalar::I64(0), &Pool);
            }
        }
        let arrays = || -> SmallVec<[&Tensor; 16]> {
            let inputs = inputs.iter().copied().flatten();
            outputs.iter().copied().chain(inputs).collect()
        };
        let (taken_before, mut needed) = (taken_bytes(), 0);
        let result = match &step.work {
            Work::Copy => copy(inputs[0].ok_or_else(unbound)?, outputs[0]),
            Work::Fused(tiles) => tiles.run(&arrays()),
            Work::Reduced(tiles) => tiles.run(&arrays()),
            Work::Kernel(kernel) => {
                let context = KernelContext {
                    op: node.op,
                    inputs: &inputs,
                    outputs: &outputs,
                    args: Args {
                        params: node.op.params,
                        attrs: &node.attrs,
                    },
                    compute: kernel.compute(),
                    training: node.training,
                    rng: RngState {
                        seed: run.drawn[node.rng_stream].seed,
                        offset: run.drawn[node.rng_stream].offset + node.rng_block,
                    },
                    threads: &Pool,
                    device: self.device,
                    stream: None,
                    numbers: 0,
                    last_reads: self.plan.last_reads[step.node],
                };
                let execute = || launch::execute(kernel, &context);
                match may_offer {
                    true => {
                        let free_from = self.plan.used_bytes[step.node];
                        let (result, end) = workspace::offer(&arena.storage, free_from, execute);
                        needed = end;
                        result
                    }
                    false => execute(),
                }
            }
            Work::Call { is_python } => {
                let _mute = Mute::enter();
                self.call(step, *is_python, arena, &inputs, &outputs)
            }
        };
        let used = Used {
            allocated_bytes: taken_bytes().wrapping_sub(taken_before),
            arena_bytes: needed,
        };
        if let Some(watch) = watch {
            self.record(step, watch, begin, &inputs, &outputs);
        }
        result.map(|()| used)
    }

    /// Records a step for the profiler.
    #[cold]
    fn record(
        &self,
        step: &Step,
        watch: &RunWatch,
        begin: u64,
        inputs: &[Option<&Tensor>],
        outputs: &[&Tensor],
    ) {
        let node = &self.graph.nodes[step.node];
        let (name, line) = step.name.labels(step, &self.graph.nodes);
        let run = NodeRun {
            name,
            line,
            scope: node.scope,
            is_backward: node.is_backward,
            inputs,
            outputs,
        };
        watch.node_ran(begin, &run);
    }

    /// Calls the operator of a step, on arrays that view the tensors and have free variables.
    ///
    /// The ticket of an operator in Python stands for an object that lives as long as the ticket's memory. This memory is kept until the run ends,
    /// and as long as a result of the graph that it was copied to.
    pub(crate) fn call(
        &self,
        step: &Step,
        is_python: bool,
        arena: &Arena,
        inputs: &[Option<&Tensor>],
        outputs: &[&Tensor],
    ) -> Result<()> {
        let node = &self.graph.nodes[step.node];
        let memory = arena.tensors.first().map(Tensor::storage);
        let is_in_arena =
            |x: &Tensor| memory.is_some_and(|memory| Arc::ptr_eq(memory, x.storage()));
        let arrays = inputs
            .iter()
            .zip(&node.inputs)
            .map(|(x, operand)| match (x, operand) {
                (_, crate::ir::Operand::Number(value)) => Array::weak_scalar(*value).map(Some),
                // Python code may keep the array, but the next run uses the memory again.
                (Some(x), _) if is_python && is_in_arena(x) => unordered(x)?.copy().map(Some),
                (Some(x), _) => unordered(x).map(Some),
                (None, _) => Ok(None),
            });
        let arrays = arrays.collect::<Result<SmallVec<[Option<Array>; 4]>>>()?;
        let arguments: SmallVec<[Option<&Array>; 4]> = arrays.iter().map(Option::as_ref).collect();
        let _scope = Scope::enter(false, node.training);
        let call = Call {
            op: node.op,
            inputs: &arguments,
            attrs: &node.attrs,
            outs: &[],
            dtype: node.dtype,
        };
        let results = eager::run(&call).map_err(|error| call.explain(error))?;
        for (result, output) in results.iter().zip(outputs) {
            count_bytes(result.len() * result.dtype().size());
            copy(result.read()?.tensor(), output)?;
        }
        let last = results.last().zip(step.outputs.last());
        match last.filter(|_| is_python) {
            Some((last, location)) => self.keep_ticket(last, location, arena, outputs),
            None => Ok(()),
        }
    }

    /// Keeps the ticket of an operator in Python, which is its last result. Gradients have no ticket.
    fn keep_ticket(
        &self,
        last: &Array,
        location: &TensorRef,
        arena: &Arena,
        outputs: &[&Tensor],
    ) -> Result<()> {
        let ticket = last.tensor().storage();
        if !ticket.is_foreign() || last.dtype() != DType::U64 || last.ndim() != 0 {
            return Ok(());
        }
        arena.kept.lock().push(ticket.clone());
        let is_fresh = |i: &usize| matches!(self.bound[*i].location, BufferLocation::Fresh(_));
        let is_result = matches!(location, TensorRef::Bound(i) if is_fresh(i));
        match outputs.last().filter(|_| is_result) {
            Some(result) if !result.storage().packed_forms().keep(ticket.clone()) => {
                Err(Error::internal("graph", "new memory is in use"))
            }
            _ => Ok(()),
        }
    }
}

#[cold]
fn unbound() -> Error {
    Error::internal("graph", "a step lacks an operand")
}

/// The tensor of a run.
fn found<'a>(tensor: &'a TensorRef, arena: &'a Arena, run: &'a Run) -> Result<&'a Tensor> {
    match tensor {
        TensorRef::Fixed(tensor) => Ok(tensor),
        TensorRef::Arena(i) => Ok(&arena.tensors[*i]),
        TensorRef::Bound(i) => Ok(&run.tensors[*i]),
        TensorRef::Absent => Err(unbound()),
    }
}
