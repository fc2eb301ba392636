//! Questions to processes, in every order of moves.

use ganger_proc_api::{
    Actor, CommandError, Completion, Context, ExitCause, Reply, StepOutput, StepResult,
};
use ganger_sched::Address;
use ganger_sim::{Rt, Sim};

enum Fork {
    Take(Reply<()>),
    PutBack,
}

/// Serves a single philosopher at a time; the others wait.
#[derive(Default)]
struct OneFork {
    is_taken: bool,
    waiting: Vec<Reply<()>>,
}

impl Actor for OneFork {
    type Message = Fork;

    fn receive(&mut self, _: &Context, message: Fork, _: &mut StepOutput) -> StepResult {
        match message {
            Fork::Take(reply) => self.waiting.push(reply),
            Fork::PutBack => self.is_taken = false,
        }
        if !self.is_taken && !self.waiting.is_empty() {
            self.is_taken = true;
            self.waiting.remove(0).complete(());
        }
        Ok(())
    }
}

/// Eats once it has both forks.
struct Philosopher {
    forks: [Address<Fork>; 2],
}

impl Actor for Philosopher {
    type Message = ();

    fn receive(&mut self, _: &Context, (): (), out: &mut StepOutput) -> StepResult {
        out.ask(self.forks[0].call(Fork::Take), 0);
        Ok(())
    }

    fn completed(&mut self, _: &Context, answer: Completion, out: &mut StepOutput) -> StepResult {
        answer.result?;
        if answer.tag == 0 {
            out.ask(self.forks[1].call(Fork::Take), 1);
        } else {
            self.forks
                .iter()
                .try_for_each(|it| it.send(Fork::PutBack))?;
            out.done(());
        }
        Ok(())
    }
}

/// Lets three philosophers eat. Each takes the fork with the lower number first, or all but the
/// last do.
fn dinner(rt: &Rt<'_>, in_order: bool) {
    let forks = [(); 3].map(|()| rt.spawn(OneFork::default()).unwrap());
    let eaters = [(0, 1), (1, 2), if in_order { (0, 2) } else { (2, 0) }];
    let eaters = eaters.map(|(first, second)| {
        let forks = [first, second].map(|it: usize| forks[it].address().clone());
        rt.spawn(Philosopher { forks }).unwrap()
    });
    for eater in &eaters {
        eater.send(()).unwrap();
    }
    for eater in eaters {
        assert!(rt.wait(eater).is_done());
    }
}

#[test]
fn philosophers_that_take_their_forks_in_one_order_all_eat() {
    Sim::check(200, |rt| dinner(rt, true));
}

/// Finds a deadlock between calls, as the test of a user does.
#[test]
#[should_panic(expected = "has not ended, and nothing moves any more")]
fn a_circle_of_calls_is_found() {
    Sim::check(200, |rt| dinner(rt, false));
}

#[test]
fn a_test_asks_and_gets_the_answer_or_the_error() {
    Sim::check(100, |rt| {
        let fork = rt.spawn(OneFork::default()).unwrap();
        rt.answer(fork.call(Fork::Take)).unwrap();
        let second = fork.call(Fork::Take).begin();
        rt.terminate(fork.pid()).unwrap();
        rt.wait(fork);
        let error = second.wait().unwrap_err();
        assert!(matches!(error, CommandError::Ended(ExitCause::Terminated)));
    });
}
