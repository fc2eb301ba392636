//! Several senders to a single process at once: the messages of each are in order, and between the
//! senders there is no order.
//!
//! The accepted messages are left open until the senders report. Until then a step may be shown any
//! message of a sender that is behind the last shown message. The messages passed over must have
//! been refused.

use super::life::{Life, Phase, Stream};
use super::{Broken, Spec};
use crate::notes::Number;
use ganger_proc_api::Pid;

impl Spec {
    /// Lets several senders begin to send to a process, each these messages in this order. Returns
    /// the receiver's life, if it is there.
    pub(crate) fn volley(
        &mut self,
        to: Pid,
        streams: &[Vec<Number>],
    ) -> Result<Option<usize>, Broken> {
        self.end_dispatch()?;
        let Some(&nth) = self.visible.get(&to) else {
            return Ok(None);
        };
        let life = &mut self.lives[nth];
        life.places[0] += streams.iter().map(Vec::len).sum::<usize>();
        let stream = |numbers: &Vec<Number>| Stream {
            all: numbers.len(),
            offered: numbers.iter().copied().collect(),
            shown: Vec::new(),
        };
        life.streams = streams.iter().map(stream).collect();
        Ok(Some(nth))
    }

    /// Notes the end of all sends. `accepted` has the accepted messages of each.
    pub(crate) fn volley_sent(
        &mut self,
        nth: usize,
        accepted: &[Vec<Number>],
    ) -> Result<(), Broken> {
        let life = &mut self.lives[nth];
        for (stream, accepted) in life.streams.iter_mut().zip(accepted) {
            let shown = &stream.shown;
            let Some(rest) = accepted.strip_prefix(&**shown) else {
                let pid = life.pid;
                return Err(format!(
                    "{pid}: {shown:?} were shown, and {accepted:?} accepted (R2)"
                ));
            };
            stream.offered = rest.iter().copied().collect();
            life.places[0] -= stream.all - accepted.len();
        }
        Ok(())
    }

    /// Checks the settled state after a volley; `is_said_to_be_gone` says whether a sender was told
    /// of the process's end.
    pub(crate) fn volley_over(
        &mut self,
        nth: usize,
        is_said_to_be_gone: bool,
    ) -> Result<(), Broken> {
        let life = &mut self.lives[nth];
        if is_said_to_be_gone && life.is_open() {
            return Err(format!(
                "{} is there, and is said to be gone (R2)",
                life.pid
            ));
        }
        let streams = std::mem::take(&mut life.streams);
        let unseen: usize = streams.iter().map(|stream| stream.offered.len()).sum();
        self.counts.undelivered += unseen as u64;
        Ok(())
    }

    /// Returns the number of messages that a waiting process has been shown and has not taken.
    pub(crate) fn leaves(&self, pid: Pid) -> usize {
        let life = self.visible.get(&pid).map(|&nth| &self.lives[nth]);
        let waits = life.filter(|life| life.phase == Phase::Waits);
        waits.map_or(0, Life::messages_left)
    }

    /// Returns, for each sender, the next message that no step has been shown.
    pub(crate) fn next_of_each(&self, nth: usize) -> Vec<Number> {
        let streams = self.lives[nth].streams.iter();
        streams
            .filter_map(|stream| stream.offered.front().copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notes::Seen;
    use crate::spec::Limits;
    use ganger_proc_api::HostName;

    /// Lets three senders send 1 to 3, 4 and 5, and 6 to a process at once. Returns whether the
    /// process may be shown `shown` while `refused` are refused.
    fn is_right(shown: &[Number], refused: &[Number]) -> bool {
        let pid = Pid::new(HostName::new("main").unwrap(), 1);
        let mut spec = Spec::new(Limits {
            batch: 256,
            mailbox: Some(6),
            processes: None,
        });
        spec.lives.push(Life::new(pid, 1));
        spec.visible.insert(pid, 0);
        let streams = [&[1, 2, 3][..], &[4, 5], &[6]].map(Vec::from);
        assert_eq!(spec.volley(pid, &streams), Ok(Some(0)));
        let messages: Vec<_> = shown.iter().copied().map(Seen::Message).collect();
        let is_shown = spec.lives[0].show(&messages, 256).is_ok();
        spec.lives[0].must_step = false;
        let is_accepted = |number: &Number| !refused.contains(number);
        let accepted = streams.map(|it| it.into_iter().filter(is_accepted).collect());
        is_shown
            && spec.volley_sent(0, &accepted).is_ok()
            && spec.lives[0].waiting_for_a_step().is_none()
            && spec.lives[0].places[0] == shown.len()
    }

    // pins: R2, R4
    #[test]
    fn what_several_send_may_be_mixed_and_what_one_sends_is_in_order() {
        assert!(is_right(&[1, 2, 3, 4, 5, 6], &[]) && is_right(&[6, 4, 1, 5, 2, 3], &[]));
        assert!(!is_right(&[6, 5, 1, 4, 2, 3], &[]), "out of order");
        assert!(!is_right(&[6, 4, 1, 5, 2], &[]), "one is lost");
        assert!(!is_right(&[6, 4, 1, 1, 5, 2, 3], &[]), "one comes twice");
        assert!(is_right(&[6, 5, 1, 3], &[2, 4]), "some are refused");
        assert!(!is_right(&[6, 5, 1, 3], &[2]), "one is passed over");
        assert!(
            !is_right(&[6, 4, 5, 1, 2, 3], &[5]),
            "one is refused, and comes"
        );
    }
}
