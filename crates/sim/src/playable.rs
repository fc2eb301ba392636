//! Tests, as a run plays them.

use crate::moves::Core;
use crate::rt::Rt;
use crate::world::World;
use std::cell::Cell;
use std::rc::Rc;

/// How a run begins.
#[derive(Clone, Copy)]
pub(crate) enum Machines {
    /// A run with a single machine.
    One,
    /// Without a machine.
    Several,
}

/// Plays a run.
pub(crate) type Run<'a> = dyn Fn(&Rc<Core<'_>>) + 'a;

/// A test for any number of runs. Without its own type, all tests of a program share the code
/// around their runs.
pub(crate) struct Test<'a> {
    pub(crate) machines: Machines,
    pub(crate) run: Box<Run<'a>>,
}

pub(crate) fn of_one<'a>(test: impl Fn(&Rt<'_>) + 'a) -> Test<'a> {
    let run = move |core: &Rc<Core<'_>>| {
        for seat in core.seats() {
            test(&Rt::new(Rc::clone(core), seat));
        }
    };
    Test {
        machines: Machines::One,
        run: Box::new(run),
    }
}

pub(crate) fn of_several<'a>(test: impl Fn(&World<'_>) + 'a) -> Test<'a> {
    Test {
        machines: Machines::Several,
        run: Box::new(move |core: &Rc<Core<'_>>| test(&World::new(Rc::clone(core)))),
    }
}

/// Turns a test for a single run into a test for code without knowledge of its type.
pub(crate) fn once(test: impl FnOnce(&Rt<'_>)) -> impl Fn(&Rt<'_>) {
    let test = Cell::new(Some(test));
    move |rt: &Rt<'_>| {
        if let Some(test) = test.take() {
            test(rt);
        }
    }
}
