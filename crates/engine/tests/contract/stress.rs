//! Many threads and operations, compared with a serial replay.
//!
//! Every variable carries a version that each write increments and a value. An operation records the versions it found
//! and computes what it writes from all values it found. If the engine kept its contract there is a serial order in which
//! every operation finds exactly the recorded versions; replaying in that order must give the same bits everywhere.

#![expect(
    clippy::needless_range_loop,
    reason = "an index stands for a variable, its version and its value"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mxnet_engine::{Access, Engine, Mode, Resource, Var};

use super::with_threads;

const VARS: usize = 100;

/// Relaxed loads and stores, so that a lack of exclusion shows as a wrong value.
#[derive(Default)]
struct Slot {
    var: Var,
    version: AtomicU64,
    value: AtomicU64,
}

impl Resource for Slot {
    fn var(&self) -> &Var {
        &self.var
    }
}

/// SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What an operation does: at most three reads and two writes of different variables.
#[derive(Clone, Copy)]
struct Plan {
    id: u64,
    vars: [u8; 5],
    reads: u8,
    writes: u8,
}

impl Plan {
    fn random(id: u64, random: &mut u64) -> Plan {
        let mut plan = Plan {
            id,
            vars: [0; 5],
            reads: 0,
            writes: 0,
        };
        plan.reads = (split_mix(random) % 4) as u8;
        plan.writes = 1 + (split_mix(random) % 2) as u8;
        for at in 0..plan.len() {
            plan.vars[at] = loop {
                // Squared, so that some variables are used much more than others.
                let x = split_mix(random) % VARS as u64;
                let y = split_mix(random) % VARS as u64;
                let var = (x * y / VARS as u64) as u8;
                if !plan.vars[..at].contains(&var) {
                    break var;
                }
            };
        }
        plan
    }

    fn len(&self) -> usize {
        usize::from(self.reads + self.writes)
    }

    fn is_write(&self, at: usize) -> bool {
        at >= usize::from(self.reads)
    }

    /// New value of the variable at `at`, from all values found.
    fn mix(&self, found: &[u64], at: usize) -> u64 {
        let mut hash = self.id ^ (at as u64) << 56;
        for value in found {
            hash = split_mix(&mut (hash.rotate_left(17) ^ value));
        }
        hash
    }

    /// Executes the plan. Returns the versions found.
    fn run(&self, slots: &[Arc<Slot>]) -> [u32; 5] {
        let (mut values, mut versions) = ([0; 5], [0; 5]);
        for at in 0..self.len() {
            let slot = &slots[usize::from(self.vars[at])];
            values[at] = slot.value.load(Ordering::Relaxed);
            versions[at] = slot.version.load(Ordering::Relaxed) as u32;
        }
        for at in usize::from(self.reads)..self.len() {
            let slot = &slots[usize::from(self.vars[at])];
            slot.value
                .store(self.mix(&values[..self.len()], at), Ordering::Relaxed);
            slot.version
                .store(u64::from(versions[at]) + 1, Ordering::Relaxed);
        }
        versions
    }
}

type Record = (Plan, [u32; 5]);

/// Runs a plan inline if possible, otherwise pushes it. In both cases it is added to `records`.
fn issue(
    engine: &Engine,
    plan: Plan,
    slots: &Arc<Vec<Arc<Slot>>>,
    records: &Arc<Mutex<Vec<Record>>>,
) {
    let var = |at: usize| &slots[usize::from(plan.vars[at])].var;
    let reads: Vec<_> = (0..plan.reads.into()).map(var).collect();
    let writes: Vec<_> = (plan.reads.into()..plan.len())
        .map(|at| (var(at), Access::Write))
        .collect();
    if let Some(_held) = engine.try_acquire(&reads, &writes, 0) {
        let versions = plan.run(slots);
        records
            .lock()
            .expect("no holder panics")
            .push((plan, versions));
        return;
    }
    let uses: Vec<_> = (0..plan.len())
        .map(|at| {
            let access = if plan.is_write(at) {
                Access::Write
            } else {
                Access::Read
            };
            (Arc::clone(&slots[usize::from(plan.vars[at])]), access)
        })
        .collect();
    let (slots, records) = (Arc::clone(slots), Arc::clone(records));
    let mut op = super::op(&[], move || {
        let versions = plan.run(&slots);
        records
            .lock()
            .expect("no holder panics")
            .push((plan, versions));
        Ok(())
    });
    op.uses = uses
        .into_iter()
        .map(|(slot, access)| (slot as Arc<dyn Resource>, access))
        .collect();
    op.bytes = 1;
    engine.push(op);
}

fn slots() -> Arc<Vec<Arc<Slot>>> {
    Arc::new((0..VARS).map(|_| Arc::default()).collect())
}

/// Versions and values after the run.
fn finals(slots: &[Arc<Slot>]) -> Vec<(u64, u64)> {
    slots
        .iter()
        .map(|slot| {
            (
                slot.version.load(Ordering::Relaxed),
                slot.value.load(Ordering::Relaxed),
            )
        })
        .collect()
}

/// Replays `records` in an order in which every operation finds the versions it recorded, and compares the final states.
fn replay(records: &[Record], finals: &[(u64, u64)]) {
    // For each variable and version: the operation that overwrites it, and the number of reads that must come before that.
    let mut writer = vec![Vec::new(); VARS];
    let mut readers = vec![Vec::<Vec<usize>>::new(); VARS];
    for (var, &(versions, _)) in finals.iter().enumerate() {
        writer[var] = vec![usize::MAX; versions as usize];
        readers[var] = vec![Vec::new(); versions as usize + 1];
    }
    for (index, (plan, versions)) in records.iter().enumerate() {
        for at in 0..plan.len() {
            let (var, version) = (usize::from(plan.vars[at]), versions[at] as usize);
            if plan.is_write(at) {
                assert_eq!(
                    writer[var][version],
                    usize::MAX,
                    "two operations wrote version {version} of variable {var}"
                );
                writer[var][version] = index;
            } else {
                readers[var][version].push(index);
            }
        }
    }
    // Number of things each operation waits for: each version it uses, and for writes the readers of that version.
    let mut missing: Vec<usize> = vec![0; records.len()];
    for (index, (plan, versions)) in records.iter().enumerate() {
        for at in 0..plan.len() {
            let (var, version) = (usize::from(plan.vars[at]), versions[at] as usize);
            missing[index] += usize::from(version > 0);
            missing[index] += if plan.is_write(at) {
                readers[var][version].len()
            } else {
                0
            };
        }
    }
    let mut state = vec![(0_u64, 0_u64); VARS];
    let mut ready: Vec<usize> = (0..records.len())
        .filter(|index| missing[*index] == 0)
        .collect();
    let mut done = 0;
    while let Some(index) = ready.pop() {
        done += 1;
        let (plan, versions) = &records[index];
        let mut values = [0; 5];
        for at in 0..plan.len() {
            let (version, value) = state[usize::from(plan.vars[at])];
            assert_eq!(version, u64::from(versions[at]), "replay keeps versions");
            values[at] = value;
        }
        let mut release = |other: usize| {
            missing[other] -= 1;
            if missing[other] == 0 {
                ready.push(other);
            }
        };
        for at in 0..plan.len() {
            let (var, version) = (usize::from(plan.vars[at]), versions[at] as usize);
            if plan.is_write(at) {
                state[var] = (version as u64 + 1, plan.mix(&values[..plan.len()], at));
                readers[var][version + 1]
                    .iter()
                    .copied()
                    .for_each(&mut release);
                writer[var]
                    .get(version + 1)
                    .copied()
                    .into_iter()
                    .for_each(&mut release);
            } else {
                writer[var]
                    .get(version)
                    .copied()
                    .into_iter()
                    .for_each(&mut release);
            }
        }
    }
    assert_eq!(
        done,
        records.len(),
        "no serial order gives what the operations found"
    );
    assert_eq!(state, finals, "bits differ from the serial replay");
}

/// Checks that the operations of one thread on one variable ran in the order it issued them. Ids of a thread increase.
fn program_order(records: &[Record], threads: u64) {
    let mut in_order: Vec<&Record> = records.iter().collect();
    in_order.sort_by_key(|(plan, _)| plan.id);
    let mut last = vec![(0, false); VARS * threads as usize];
    for (plan, versions) in in_order {
        let thread = plan.id % threads;
        for at in 0..plan.len() {
            let last = &mut last[usize::from(plan.vars[at]) * threads as usize + thread as usize];
            // A read of a version comes before the write that replaces it and after the write that made it.
            let now = (versions[at], plan.is_write(at));
            assert!(
                last.0 <= now.0 && (!last.1 || last.0 < now.0),
                "operation {} overtook {last:?}",
                plan.id
            );
            *last = now;
        }
    }
}

#[test]
fn a_million_operations_of_sixteen_threads_are_a_serial_execution() {
    const THREADS: u64 = 16;
    const EACH: u64 = 62_500;
    let engine = with_threads(4);
    let slots = slots();
    let records = Arc::new(Mutex::new(Vec::with_capacity((THREADS * EACH) as usize)));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (engine, slots, records) = (&engine, &slots, &records);
            scope.spawn(move || {
                let mut random = 0x5eed + thread;
                for i in 0..EACH {
                    let plan = Plan::random(i * THREADS + thread, &mut random);
                    issue(engine, plan, slots, records);
                    match split_mix(&mut random) % 4096 {
                        0 => engine
                            .wait_for(&slots[0].var, Access::Read, &mut || false)
                            .expect("nothing fails"),
                        1 => engine.wait_all(&mut || false).expect("nothing fails"),
                        2 => engine.set_mode(Mode::Async),
                        3 | 4 => engine.set_mode(Mode::Adaptive),
                        5 if i % 7 == 0 => engine.set_mode(Mode::Sync),
                        _ => {}
                    }
                }
            });
        }
    });
    engine.wait_all(&mut || false).expect("nothing fails");
    let stats = engine.stats();
    let records = std::mem::take(&mut *records.lock().expect("no holder panics"));
    assert_eq!(records.len() as u64, THREADS * EACH);
    assert_eq!(stats.pushed + stats.inline, THREADS * EACH);
    assert!(
        stats.queued > 1000 && stats.inline > 1000,
        "both ways are tried: {stats:?}"
    );
    replay(&records, &finals(&slots));
    program_order(&records, THREADS);
}

#[test]
fn the_push_order_is_the_order_of_execution() {
    const THREADS: usize = 8;
    const OPS: u64 = 100_000;
    let engine = with_threads(3);
    let slots = slots();
    let records = Arc::new(Mutex::new(Vec::with_capacity(OPS as usize)));
    // The lock gives all pushes one order across threads; their execution overlaps.
    let next = Mutex::new((0_u64, 0x5eed_u64));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let mut next = next.lock().expect("no holder panics");
                    if next.0 == OPS {
                        return;
                    }
                    let plan = Plan::random(next.0, &mut next.1);
                    next.0 += 1;
                    issue(&engine, plan, &slots, &records);
                }
            });
        }
    });
    engine.wait_all(&mut || false).expect("nothing fails");
    let mut serial: Vec<_> = std::mem::take(&mut *records.lock().expect("no holder panics"));
    serial.sort_by_key(|(plan, _)| plan.id);
    assert_eq!(serial.len() as u64, OPS);
    let replayed = self::slots();
    for (plan, versions) in &serial {
        assert_eq!(
            plan.run(&replayed),
            *versions,
            "operation {} ran out of order",
            plan.id
        );
    }
    assert_eq!(finals(&replayed), finals(&slots));
}
