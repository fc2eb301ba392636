//! Senders in a wait for room.

use super::life::Life;
use super::{Broken, Spec};
use crate::notes::{Number, Seen, Sent};
use ganger_proc_api::Pid;

impl Spec {
    /// Sends a message, which waits if the mailbox is full.
    pub(crate) fn wait_for_room(&mut self, to: Pid, number: Number) -> Result<Sent, Broken> {
        let sent = self.send(to, Seen::Message(number))?;
        if sent != Sent::Full {
            return Ok(sent);
        }
        if self.may_have_halted() {
            return Ok(Sent::Stopping);
        }
        let &nth = (self.visible.get(&to)).ok_or_else(|| format!("{to} is not there"))?;
        self.lives[nth].waiting.push_back(number);
        self.waits.insert(number, nth);
        Ok(Sent::Waits)
    }

    /// Returns the fate of a waiting message; its sender takes it back if the wait is over.
    pub(crate) fn became(&mut self, number: Number) -> Sent {
        let is_stopping = self.may_have_halted();
        let nth = self.waits.get(&number).copied();
        let life = nth.map(|nth| &mut self.lives[nth]);
        let Some(life) = life.filter(|life| life.waiting.contains(&number)) else {
            return Sent::Accepted;
        };
        if !life.is_open() {
            return Sent::Closed;
        }
        if !is_stopping {
            return Sent::Waits;
        }
        life.waiting.retain(|&it| it != number);
        Sent::Stopping
    }

    /// Gives up the wait of a sender.
    pub(crate) fn give_up(&mut self, number: Number) -> Result<(), Broken> {
        if let Some(&nth) = self.waits.get(&number) {
            self.lives[nth].waiting.retain(|&it| it != number);
        }
        Ok(())
    }
}

impl Life {
    /// Accepts the longest waiting messages, while there is room. A scheduler does so at once only
    /// with limits below four, as in plans.
    pub(super) fn serve(&mut self, limit: Option<usize>) {
        while limit.is_some_and(|limit| self.places[0] < limit)
            && let Some(number) = self.waiting.pop_front()
        {
            self.places[0] += 1;
            self.put(Seen::Message(number));
        }
    }
}
