//! The filter, as endpoints apply it.

use ganger_observe::api::{Field, Filter, Process, Term};

pub(super) fn passes(filter: &Filter, process: &Process) -> bool {
    let holds = |term: &Term| has(process, term) != term.is_not;
    filter.terms().iter().all(holds)
}

fn has(process: &Process, term: &Term) -> bool {
    let contains = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains(&term.text.to_ascii_lowercase())
    };
    let name = || process.names.iter().any(|it| contains(it));
    let label = || process.label.as_deref().is_some_and(contains);
    match term.field {
        Some(Field::State) => process.state.name() == term.text,
        Some(Field::Type) => contains(&process.type_name),
        Some(Field::Method) => contains(&process.method),
        Some(Field::Name) => name(),
        Some(Field::Pid) => contains(&process.pid),
        Some(Field::Parent) => process.parent.as_deref().is_some_and(contains),
        Some(Field::Label) => label(),
        _ => {
            let texts = [&process.type_name, &process.method, &process.pid];
            name() || label() || texts.into_iter().any(|it| contains(it))
        }
    }
}
