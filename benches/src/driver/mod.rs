//! The driver of `cargo xtask bench`: it runs workloads in processes of their own, peers in turns,
//! and reports the results.
//!
//! ```text
//! outputs              where it writes
//! plan                 what runs, in which order, and what else meanwhile
//! run, child, stop     runs it, within limits, until it is told to stop
//! calm, memory, loops  what the machine does before and during a run
//! programs             which program runs a peer
//! machine              what was measured on
//! lines                figures as JSON
//! baseline             compared with earlier ones
//! report, charts,      shown
//! readme
//! ```
//!
//! Its options are in a package of their own, `ganger_bench_options`.

mod baseline;
mod calm;
mod charts;
mod child;
#[cfg(test)]
mod fixture;
mod lines;
mod loops;
pub mod machine;
mod memory;
mod outputs;
mod plan;
mod programs;
mod readme;
mod report;
mod run;
mod stop;

use crate::whole::catalog::Peer;
use ganger_bench_options::options::Options;
use lines::Results;
use outputs::Outputs;
use report::View;
use std::process::ExitCode;
use stop::{INTERRUPTED, Stop};

/// Executes the options. Returns the exit code: of a failure if something of Ganger's failed, or is
/// worse than before, and another if the user stopped the run; then the results so far are written.
///
/// # Errors
/// An output that can't be written, a baseline that can't be read (both before anything runs), or a
/// later failure.
pub fn execute(options: &Options) -> Result<ExitCode, String> {
    if options.mimalloc && !cfg!(feature = "mimalloc") {
        return Err(
            "this program is built without the feature `mimalloc`: `cargo xtask bench \
                    --mimalloc` builds it with it"
                .to_owned(),
        );
    }
    let outputs = Outputs::prepare(options.out.as_deref(), options.json.as_deref())?;
    if options.readme {
        readme::check()?;
    }
    let baseline = options.baseline.as_deref().map(Results::load).transpose()?;
    if let (Some(baseline), None) = (&baseline, &options.from) {
        baseline::check_allocator(baseline, machine::allocator())?;
    }
    let results = match &options.from {
        Some(path) => Results::load(path)?,
        None => measured(options)?,
    };
    // Figures from a file need not be written again.
    let writes_json = options.from.is_none() || options.json.is_some();
    if writes_json {
        outputs.write_json(&results)?;
    }
    let view = View::of(&results);
    outputs::write(&outputs.markdown(), view.markdown())?;
    charts::write_charts(&view, &outputs.folder)?;
    print!("{}", view.standing());
    println!("report and charts: {}", outputs.markdown().display());
    if writes_json {
        println!("figures: {}", outputs.json.display());
    }
    if options.readme {
        readme::update(outputs::root(), &results)?;
        println!("README.md, docs/PERFORMANCE.md and docs/LIMITS.md have these figures now");
    }
    let mut is_worse = results.has_failed(Peer::Ganger);
    if is_worse {
        eprintln!(
            "ganger failed in a workload: the report says in which, under \"What is not here\""
        );
    }
    if let Some(baseline) = baseline {
        let (worse, text) = baseline::compare(&baseline, &results, options.threshold)?;
        print!("{text}");
        is_worse |= worse > 0;
    }
    Ok(match (is_worse, results.machine.interrupted) {
        (true, _) => ExitCode::FAILURE,
        (false, true) if options.from.is_none() => INTERRUPTED.into(),
        (false, _) => ExitCode::SUCCESS,
    })
}

/// Runs the plan.
fn measured(options: &Options) -> Result<Results, String> {
    let stop = Stop::on_ctrl_c()?;
    let plan = plan::plan(options);
    let mut programs = programs::Programs::find(&plan, options.limit(), &stop)?;
    let command = command_line();
    let mut machine = machine::machine(options.quick, command, programs.versions());
    let (figures, absences) = run::measure(&plan, &mut programs, &stop);
    machine.calm = programs.calm();
    machine.interrupted = stop.is_wanted();
    Ok(Results {
        machine,
        figures,
        absences,
    })
}

/// Returns the command as typed.
fn command_line() -> String {
    let args = std::env::args().skip(1);
    let words = args.map(|arg| match arg.contains(char::is_whitespace) {
        true => format!("'{arg}'"),
        false => arg,
    });
    ["cargo xtask bench".to_owned()]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}
