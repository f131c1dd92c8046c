//! The time of day and chance, as the machine gives them. A simulation gives its own on its thread, so that what follows from
//! them can be repeated.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use jiff::Timestamp;
use uuid::Uuid;

/// What a simulation gives in place of the machine.
pub trait SimulatedMachine {
    /// The time of day.
    fn now(&self) -> Timestamp;

    /// A random number.
    fn random(&self) -> u64;

    /// How often work that would leave the async threads lets others go first.
    fn yields(&self) -> u32;
}

thread_local! {
    static SIMULATED: RefCell<Option<Rc<dyn SimulatedMachine>>> = const { RefCell::new(None) };
}

/// The simulated machine of this thread, until it is dropped.
pub struct Simulation {
    /// It belongs to its thread.
    _of_thread: PhantomData<Rc<()>>,
}

impl Simulation {
    /// Whatever asks on this thread is answered by this machine from now on. Nothing of it may be left when it ends.
    pub fn begin(machine: Rc<dyn SimulatedMachine>) -> Self {
        SIMULATED.with_borrow_mut(|simulated| *simulated = Some(machine));
        Self { _of_thread: PhantomData }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        SIMULATED.with_borrow_mut(Option::take);
    }
}

/// The simulated machine, if this thread has one.
pub fn simulated() -> Option<Rc<dyn SimulatedMachine>> {
    SIMULATED.with_borrow(Clone::clone)
}

/// The time of day.
pub fn now() -> Timestamp {
    simulated().map_or_else(Timestamp::now, |machine| machine.now())
}

/// What `draw` draws from the machine's own source, which differs by what it is for.
pub fn random(draw: impl FnOnce() -> u64) -> u64 {
    simulated().map_or_else(draw, |machine| machine.random())
}

/// A fresh id, unique without coordination.
pub(crate) fn fresh_id() -> Uuid {
    let drawn = |machine: Rc<dyn SimulatedMachine>| Uuid::from_u64_pair(machine.random(), machine.random());
    simulated().map_or_else(Uuid::now_v7, drawn)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Counting(Cell<u64>);

    impl SimulatedMachine for Counting {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn random(&self) -> u64 {
            self.0.replace(self.0.get() + 1)
        }

        fn yields(&self) -> u32 {
            0
        }
    }

    #[test]
    fn a_simulation_answers_on_its_thread_until_it_ends() {
        let simulation = Simulation::begin(Rc::new(Counting(Cell::new(7))));
        assert_eq!((now(), random(|| 0), random(|| 0)), (Timestamp::UNIX_EPOCH, 7, 8));
        assert_eq!(fresh_id(), Uuid::from_u64_pair(9, 10));
        let elsewhere = std::thread::spawn(|| (now() > Timestamp::UNIX_EPOCH, random(|| 3))).join().unwrap();
        assert_eq!(elsewhere, (true, 3));
        drop(simulation);
        assert_eq!((now() > Timestamp::UNIX_EPOCH, random(|| 3)), (true, 3));
        assert_ne!(fresh_id(), fresh_id());
    }
}
