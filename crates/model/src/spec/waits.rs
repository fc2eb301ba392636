//! Who waits for room, and several who send at once.

use super::life::Life;
use super::{Broken, Spec};
use crate::notes::{Number, Seen, Sent};
use ganger_proc_api::Pid;

impl Spec {
    /// A message is sent that waits where there is no room for it.
    pub(crate) fn wait_for_room(&mut self, to: Pid, number: Number) -> Result<Sent, Broken> {
        let sent = self.send(to, Seen::Message(number))?;
        if sent != Sent::Full {
            return Ok(sent);
        }
        let &nth = (self.visible.get(&to)).ok_or_else(|| format!("{to} is not there"))?;
        self.lives[nth].waiting.push_back(number);
        self.waits.insert(number, nth);
        Ok(Sent::Waits)
    }

    /// What has become of a message that had to wait.
    pub(crate) fn became(&self, number: Number) -> Sent {
        let life = self.waits.get(&number).map(|&nth| &self.lives[nth]);
        match life.filter(|life| life.waiting.contains(&number)) {
            None => Sent::Accepted,
            Some(life) if life.is_open() => Sent::Waits,
            Some(_) => Sent::Closed,
        }
    }

    /// Whoever waited waits no more.
    pub(crate) fn give_up(&mut self, number: Number) -> Result<(), Broken> {
        if let Some(&nth) = self.waits.get(&number) {
            self.lives[nth].waiting.retain(|&it| it != number);
        }
        Ok(())
    }

    /// Several begin to send to a process, each these messages in this order, and there is no order between them;
    /// to whom, if it is there.
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
        let stream = |numbers: &Vec<Number>| numbers.iter().copied().map(Seen::Message).collect();
        life.streams = streams.iter().map(stream).collect();
        Ok(Some(nth))
    }

    /// All is settled after that, and of each of them so many were accepted before the first that was not; each had
    /// as many as `each`.
    pub(crate) fn volley_over(
        &mut self,
        nth: usize,
        accepted: &[usize],
        each: usize,
    ) -> Result<(), Broken> {
        let life = &mut self.lives[nth];
        let has_ended = !life.is_open();
        for (stream, &accepted) in std::mem::take(&mut life.streams).iter().zip(accepted) {
            let shown = each - stream.len();
            if shown > accepted || !has_ended && accepted < each {
                let pid = life.pid;
                return Err(format!(
                    "{pid}: {shown} were shown, and {accepted} of {each} accepted (R2)"
                ));
            }
            self.counts.undelivered += (accepted - shown) as u64;
        }
        Ok(())
    }
}

impl Life {
    /// There is room for so many: those who have waited longest are accepted.
    pub(super) fn serve(&mut self, limit: Option<usize>) {
        while limit.is_some_and(|limit| self.places[0] < limit)
            && let Some(number) = self.waiting.pop_front()
        {
            self.places[0] += 1;
            self.put(Seen::Message(number));
        }
    }

    /// Takes it out of the stream that it is the first of (P4, R4).
    pub(super) fn take_from_a_stream(&mut self, seen: Seen) -> bool {
        let mut streams = self.streams.iter_mut();
        let stream = streams.find(|stream| stream.front() == Some(&seen));
        stream.and_then(|stream| stream.pop_front()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ganger_proc_api::HostName;

    fn messages(numbers: &[Number]) -> Vec<Seen> {
        numbers.iter().copied().map(Seen::Message).collect()
    }

    /// Whether a process may be shown these, to which three have sent at once.
    fn is_right(shown: &[Number]) -> bool {
        let mut life = Life::new(Pid::new(HostName::new("main").unwrap(), 1), 1);
        life.streams = [&[1, 2, 3][..], &[4, 5], &[6]]
            .map(|stream| messages(stream).into())
            .into();
        let is_shown = life.show(&messages(shown), 256).is_ok();
        life.must_step = false;
        is_shown && life.waiting_for_a_step().is_none()
    }

    // pins: R4
    #[test]
    fn what_several_send_may_be_mixed_and_what_one_sends_is_in_order() {
        assert!(is_right(&[1, 2, 3, 4, 5, 6]) && is_right(&[6, 4, 1, 5, 2, 3]));
        assert!(!is_right(&[6, 5, 1, 4, 2, 3]), "out of order");
        assert!(!is_right(&[6, 4, 1, 5, 2]), "one is lost");
        assert!(!is_right(&[6, 4, 1, 1, 5, 2, 3]), "one comes twice");
    }
}
