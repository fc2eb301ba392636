//! Folded stacks: a line for each stack, outermost first, and its number of samples. Flame graphs,
//! speedscope and Perfetto read them.

use super::{Profile, Sample};
use std::collections::BTreeMap;
use std::fmt::Write as _;

impl Profile {
    /// Returns the samples as folded stacks: type, method and label of the process, if it has one,
    /// then the functions, the outermost first, between semicolons; then a space, and the number of
    /// samples. The lines are in the order of their texts. A semicolon in a name is written as a
    /// comma.
    ///
    /// ```text
    /// shop::Orders;new;tenant-7;shop::Orders::step;shop::price 42
    /// ```
    #[must_use]
    pub fn folded(&self) -> String {
        let mut lines = BTreeMap::<String, u64>::new();
        for sample in &self.samples {
            *lines.entry(self.line(sample)).or_default() += sample.count;
        }
        let mut text = String::new();
        for (line, count) in lines {
            // A string takes all.
            let _ = writeln!(text, "{line} {count}");
        }
        text
    }

    fn line(&self, sample: &Sample) -> String {
        let who = &sample.who;
        let mut line = String::new();
        add(&mut line, who.type_name);
        if let Some(method) = who.method {
            add(&mut line, &method.to_string());
        }
        if let Some(label) = &who.label {
            add(&mut line, label);
        }
        for &frame in sample.frames.iter().rev() {
            for function in self.frames[frame as usize].functions.iter().rev() {
                add(&mut line, &function.name);
            }
        }
        line
    }
}

fn add(line: &mut String, name: &str) {
    if !line.is_empty() {
        line.push(';');
    }
    line.extend(name.chars().map(|it| match it {
        ';' => ',',
        it if it.is_control() => ' ',
        it => it,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    // pins: V14
    #[test]
    fn names_can_not_break_lines_and_stacks() {
        let mut line = String::new();
        add(&mut line, "<[u8; 4] as T>::f");
        add(&mut line, "tenant\n7");
        assert_eq!(line, "<[u8, 4] as T>::f;tenant 7");
    }
}
