//! Chains of elementwise operators over arrays of one shape, run block by block. The block that one operator writes is still in the cache when the
//! next one reads it, and an intermediate result needs only one block of memory.
//!
//! Each operator uses the same inner loops as in a single call, so results have the same bits.
#![allow(unsafe_code)]

use mxnet_kernels::map::{InnerLoops, Loops, Operand};
use mxnet_kernels::{Elem, Serial, Threads};
use mxnet_tensor::{DType, Device, Layout, Storage, Strides, Tensor};
use smallvec::SmallVec;

use crate::error::Result;
use crate::launch::{Pool, elem};

mod reduced;

pub use reduced::{ReducedTiles, Reduction, converts_first, result_strides};

/// An operand or result of an operator in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Array number `i`.
    Array(usize),
    /// Intermediate block number `i`, of this dtype.
    Block(usize, DType),
}

/// One operator of a chain.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its inner loops.
    pub rows: &'static InnerLoops,
    /// The dtype that it computes in.
    pub compute: Elem,
    /// Its numeric attributes.
    pub params: SmallVec<[f64; 4]>,
    /// Its results.
    pub outputs: SmallVec<[Slot; 2]>,
    /// Its operands.
    pub inputs: SmallVec<[Slot; 4]>,
}

/// An array that a chain reads or writes.
#[derive(Clone, Debug)]
pub struct ArrayForm {
    /// Its layout, which broadcasts to the shape of the chain.
    pub layout: Layout,
    /// Its dtype.
    pub dtype: DType,
    /// Identity of its elements: arrays with equal numbers have the same elements in the same memory.
    pub address: usize,
}

/// An axis of the chain's shape.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Number of positions.
    pub len: usize,
    /// Byte strides, one for each array.
    pub strides: SmallVec<[isize; 8]>,
}

/// A chain of operators, prepared for arrays of known layouts and dtypes.
#[derive(Clone, Debug)]
pub struct Tiles {
    links: Vec<Link>,
    /// Loops of each link: over a whole block, and over the last, shorter block along the axis that is split.
    loops: [Vec<Loops>; 2],
    /// Axes that are iterated element by element, then the axis that is split into blocks.
    outer: SmallVec<[Axis; 4]>,
    /// Length of a block along the last of `outer`.
    block_len: usize,
    /// Number of blocks.
    num_blocks: usize,
    /// Byte offset of each intermediate block in the scratch memory of a task.
    block_starts: SmallVec<[usize; 8]>,
    scratch_bytes: usize,
    /// Work of all elements, in float32 additions.
    work: usize,
    num_arrays: usize,
}

/// Elements of a block: 8 KiB of float32, so that several blocks fit into the L1 cache.
const BLOCK_LEN: usize = 2048;

/// Up to this work, in float32 additions, the chain runs on the calling thread.
const SERIAL_WORK: usize = 50_000;

/// Addresses of the arrays, shared by the tasks.
struct Addresses<'a>(&'a [*mut u8]);

// SAFETY: tasks write disjoint blocks of the arrays, which the caller keeps alive until all tasks have returned.
unsafe impl Sync for Addresses<'_> {}

impl Tiles {
    /// Prepares a chain over arrays of `shape`.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] if an array does not broadcast to `shape`.
    pub fn new(shape: &[usize], arrays: &[ArrayForm], links: Vec<Link>) -> Result<Tiles> {
        let mut strides: SmallVec<[Strides; 8]> = SmallVec::new();
        for array in arrays {
            let size = array.dtype.size() as isize;
            let layout = array.layout.broadcast_to(shape)?;
            strides.push(layout.strides().iter().map(|s| s * size).collect());
        }
        let axes = merged(shape, &strides);
        // The innermost axes that fit into a block stay whole; the next one is split.
        let mut inner_len = 1;
        let mut cut = axes.len();
        while cut > 0 && inner_len * axes[cut - 1].len <= BLOCK_LEN {
            cut -= 1;
            inner_len *= axes[cut].len;
        }
        let inner = &axes[cut..];
        let mut outer: SmallVec<[Axis; 4]> = axes[..cut].iter().cloned().collect();
        let one = Axis {
            len: 1,
            strides: SmallVec::from_elem(0, arrays.len()),
        };
        if outer.is_empty() {
            outer.push(one);
        }
        let last = &outer[outer.len() - 1];
        let block_len = (BLOCK_LEN / inner_len.max(1)).clamp(1, last.len.max(1));
        let tail_len = last.len % block_len;
        let len: usize = shape.iter().product();
        let num_blocks = match len {
            0 => 0,
            _ => {
                let walked: usize = outer[..outer.len() - 1]
                    .iter()
                    .map(|axis| axis.len)
                    .product();
                walked * last.len.div_ceil(block_len)
            }
        };
        let mut widths: SmallVec<[usize; 8]> = SmallVec::new();
        for slot in links
            .iter()
            .flat_map(|link| link.outputs.iter().chain(&link.inputs))
        {
            if let Slot::Block(i, dtype) = *slot {
                if widths.len() <= i {
                    widths.resize(i + 1, 0);
                }
                widths[i] = widths[i].max(dtype.size());
            }
        }
        let mut scratch_bytes = 0;
        let block_starts = widths.iter().map(|width| {
            let start = scratch_bytes;
            scratch_bytes += (block_len * inner_len * width).next_multiple_of(64);
            start
        });
        let block_starts = block_starts.collect();
        let mut tiles = Tiles {
            loops: [Vec::new(), Vec::new()],
            block_len,
            num_blocks,
            block_starts,
            scratch_bytes,
            work: len
                * links
                    .iter()
                    .map(|link| link.rows.cost as usize)
                    .sum::<usize>(),
            num_arrays: arrays.len(),
            outer,
            links,
        };
        for (which, along) in [block_len, tail_len].into_iter().enumerate() {
            if along == 0 {
                continue;
            }
            let last = &tiles.outer[tiles.outer.len() - 1];
            let block: SmallVec<[Axis; 4]> = std::iter::once(Axis {
                len: along,
                strides: last.strides.clone(),
            })
            .chain(inner.iter().cloned())
            .collect();
            let loops = tiles
                .links
                .iter()
                .map(|link| loops_of(link, &block, arrays));
            tiles.loops[which] = loops.collect();
        }
        Ok(tiles)
    }

    /// Runs the chain over tensors with the layouts and dtypes it was prepared for. The caller must have access to them.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] if the intermediate blocks cannot be allocated.
    ///
    /// # Panics
    /// If the number of tensors is not the number of arrays.
    pub fn run(&self, tensors: &[&Tensor]) -> Result<()> {
        assert_eq!(tensors.len(), self.num_arrays, "arrays of a chain");
        if self.num_blocks == 0 {
            return Ok(());
        }
        let ptrs: SmallVec<[*mut u8; 8]> = tensors.iter().map(|x| x.data_ptr()).collect();
        let threads = match self.work {
            0..SERIAL_WORK => 1,
            _ => Pool.count().min(self.num_blocks),
        };
        // Several tasks per thread, for load balance.
        let num_tasks = match threads {
            1 => 1,
            _ => (4 * threads).min(self.num_blocks),
        };
        mxnet_kernels::scratch::count_bytes(num_tasks * self.scratch_bytes);
        let scratch: SmallVec<[std::sync::Arc<Storage>; 8]> = (0..num_tasks)
            .map(|_| Storage::allocate(self.scratch_bytes, Device::cpu(0)))
            .collect::<std::result::Result<_, _>>()?;
        let addresses = Addresses(&ptrs);
        let task = |t: usize| {
            let (from, to) = (
                t * self.num_blocks / num_tasks,
                (t + 1) * self.num_blocks / num_tasks,
            );
            let addresses = &addresses;
            for block in from..to {
                // SAFETY: 1. the tensors have the forms that the loops were prepared for, and the caller may access them. 2. blocks are
                // disjoint. 3. the intermediate blocks lie in memory of this task.
                unsafe { self.run_block(block, addresses.0, scratch[t].ptr()) };
            }
        };
        match num_tasks {
            1 => task(0),
            _ => Pool.run(num_tasks, &task),
        }
        Ok(())
    }

    /// Runs the chain over one block.
    ///
    /// # Safety
    /// `ptrs` are the addresses of arrays with the layouts and dtypes that the chain was prepared for; `scratch` has `scratch_bytes` bytes. Nobody
    /// else accesses the elements of the block meanwhile.
    unsafe fn run_block(&self, block: usize, ptrs: &[*mut u8], scratch: *mut u8) {
        let last = &self.outer[self.outer.len() - 1];
        let per_row = last.len.div_ceil(self.block_len);
        let (mut row, along) = (block / per_row, block % per_row * self.block_len);
        let mut bases: SmallVec<[*mut u8; 8]> = SmallVec::from_slice(ptrs);
        let mut step = |axis: &Axis, index: usize| {
            for (base, stride) in bases.iter_mut().zip(&axis.strides) {
                *base = base.wrapping_offset(index as isize * stride);
            }
        };
        step(last, along);
        for axis in self.outer[..self.outer.len() - 1].iter().rev() {
            step(axis, row % axis.len);
            row /= axis.len;
        }
        let which = usize::from(last.len - along < self.block_len);
        for (link, loops) in self.links.iter().zip(&self.loops[which]) {
            let mut at = [std::ptr::null_mut(); Loops::MAX_OPERANDS];
            for (ptr, slot) in at.iter_mut().zip(link.outputs.iter().chain(&link.inputs)) {
                *ptr = match *slot {
                    Slot::Array(i) => bases[i],
                    Slot::Block(i, _) => scratch.wrapping_add(self.block_starts[i]),
                };
            }
            // SAFETY: the caller's promise; outputs overlap inputs only where the loops were prepared for it.
            unsafe { loops.run(&Serial, at, &link.params) };
        }
    }
}

/// The loops of one link over a block.
fn loops_of(link: &Link, block: &[Axis], arrays: &[ArrayForm]) -> Loops {
    let shape: SmallVec<[usize; 4]> = block.iter().map(|axis| axis.len).collect();
    // Intermediate blocks are dense.
    let dense = |size: usize| -> SmallVec<[isize; 4]> {
        let mut strides = SmallVec::from_elem(0, shape.len());
        let mut stride = size as isize;
        for (axis, &n) in shape.iter().enumerate().rev() {
            strides[axis] = stride;
            stride *= n as isize;
        }
        strides
    };
    let slots = || link.outputs.iter().chain(&link.inputs);
    let strides: SmallVec<[SmallVec<[isize; 4]>; 4]> = slots()
        .map(|slot| match *slot {
            Slot::Array(i) => block.iter().map(|axis| axis.strides[i]).collect(),
            Slot::Block(_, dtype) => dense(dtype.size()),
        })
        .collect();
    let operands: SmallVec<[Operand; 4]> = slots()
        .zip(&strides)
        .map(|(slot, strides)| match *slot {
            Slot::Array(i) => Operand {
                ptr: std::ptr::without_provenance_mut(2 * (arrays[i].address + 1)),
                elem: elem(arrays[i].dtype),
                strides,
            },
            Slot::Block(i, dtype) => Operand {
                ptr: std::ptr::without_provenance_mut(2 * i + 1),
                elem: elem(dtype),
                strides,
            },
        })
        .collect();
    let (outs, ins) = operands.split_at(link.outputs.len());
    Loops::new(link.rows, link.compute, &shape, outs, ins)
}

/// The axes of a shape without those of length 1. Neighbouring axes that are contiguous in all arrays are merged.
pub fn merged(shape: &[usize], strides: &[Strides]) -> SmallVec<[Axis; 4]> {
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    for (axis, &len) in shape.iter().enumerate() {
        if len == 1 {
            continue;
        }
        let own: SmallVec<[isize; 8]> = strides.iter().map(|s| s[axis]).collect();
        if let Some(previous) = axes.last_mut()
            && (previous.strides.iter().zip(&own))
                .all(|(&outer, &inner)| outer == inner * len as isize)
        {
            previous.len *= len;
            previous.strides = own;
            continue;
        }
        axes.push(Axis { len, strides: own });
    }
    axes
}
