//! The names in a trace, as a new user reads them in the report of a failed run.

use ganger_proc_api::{Actor, BoxError, Context, Reply, StepOutput, StepResult, TypedCommand};
use ganger_sched::Address;
use ganger_sim::{Rt, Sim};
use ganger_task::{Cx, TaskExt};

struct Price(u64);

impl TypedCommand for Price {
    type Answer = u64;
}

#[derive(Debug)]
enum Till {
    Pay { price: u64 },
    Total(Reply<u64>),
}

struct Total(u64);

impl Actor for Total {
    type Message = Till;

    fn receive(&mut self, _: &Context, message: Till, _: &mut StepOutput) -> StepResult {
        match message {
            Till::Pay { price } => self.0 += price,
            Till::Total(reply) => reply.complete(self.0),
        }
        Ok(())
    }
}

/// Looks prices up, and pays them.
async fn buys(cx: Cx, till: Address<Till>, times: u64) -> Result<(), BoxError> {
    for article in 0..times {
        let price = cx.command(Price(article)).await?;
        till.send(Till::Pay { price })?;
    }
    Ok(())
}

fn shop(rt: &Rt<'_>) {
    rt.register_for(|Price(article), reply| {
        reply.complete(article + 1);
        Ok(())
    })
    .unwrap();
    let till = rt.spawn(Total(0)).unwrap();
    let address = till.address().clone();
    let buyer = rt.spawn(move |cx: Cx| buys(cx, address, 3)).unwrap();
    assert!(rt.wait(buyer).is_done());
    assert_eq!(rt.answer(till.call(Till::Total)).unwrap(), 6);
}

fn trace(test: impl Fn(&Rt<'_>)) -> String {
    Sim::new(1).workers(1).run(test).trace.to_string()
}

#[track_caller]
fn has(trace: &str, lines: &[&str]) {
    for line in lines {
        assert!(trace.contains(line), "{line}\nis not in\n{trace}");
    }
}

#[test]
fn a_process_has_the_name_of_its_function_and_a_command_that_of_its_type() {
    let trace = trace(shop);
    has(
        &trace,
        &[
            " 2 messages: Till, Till\n",
            "(task, buys)\n  yields Price (tag 1)\n",
            "1 answer: 1\n  yields Price (tag 2)\n",
            "1 answer: 2\n  yields Price (tag 3)\n",
        ],
    );
    assert!(!trace.contains("{{closure}}"), "{trace}");
}

#[test]
fn a_message_is_shown_by_its_variant_if_the_test_says_so() {
    let trace = trace(|rt| {
        rt.show::<Till>();
        shop(rt);
    });
    has(&trace, &[" 1 message: Pay\n", " 2 messages: Pay, Total\n"]);
    // The next run on this thread has no such names.
    let trace = self::trace(shop);
    assert!(!trace.contains("Pay"), "{trace}");
}

#[test]
fn a_closure_has_the_name_of_the_function_that_it_is_in() {
    let trace = trace(|rt| {
        let waits = rt
            .spawn(async |cx: Cx<u8>| Ok(u64::from(cx.recv().await.is_some())))
            .unwrap();
        waits.send(1).unwrap();
        rt.settle();
    });
    let own = "(task, a_closure_has_the_name_of_the_function_that_it_is_in), 1 message: u8\n";
    has(&trace, &[own]);
}

#[test]
fn what_answers_a_question_or_a_command_has_the_name_of_its_function() {
    async fn doubles(_: Cx, Price(number): Price) -> Result<u64, BoxError> {
        Ok(2 * number)
    }
    async fn child(cx: Cx) -> Result<u64, BoxError> {
        Ok(cx.command(Price(4)).await?)
    }
    async fn parent(cx: Cx) -> Result<u64, BoxError> {
        let both = cx.scope(async |scope| Ok(scope.spawn(child)?.await?));
        both.await
    }
    let trace = trace(|rt| {
        rt.handle().register_task(doubles).unwrap();
        assert_eq!(rt.answer(rt.call_task(parent)).unwrap(), 8);
    });
    has(
        &trace,
        &["(task, doubles)", "(task, child)", "(task, parent)"],
    );
}

/// Prints a single line for a worker that finds a process and runs it.
#[test]
fn a_report_has_one_line_for_each_turn() {
    let failed = Sim::new(0).workers(1).try_seeds(1, |rt| {
        shop(rt);
        panic!("on purpose");
    });
    let report = failed.unwrap_err().to_string();
    has(&report, &["(task, buys)\n  yields Price (tag 1)\n"]);
    assert!(!report.contains(": finds "), "{report}");
    assert!(!report.contains(": takes "), "{report}");
}
