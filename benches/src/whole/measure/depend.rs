//! S1 to S5: processes that depend on each other.

use super::{Contestant, Error, Id, Run, Sample, sum_below};
use std::time::Duration;

/// How long a job of a pool computes.
const SHORT_JOB: Duration = Duration::from_micros(1);

impl<C: Contestant> Run<'_, C> {
    pub(super) fn depend(&self) -> Result<Vec<Sample>, Error> {
        match self.job.id {
            Id::S1 | Id::A9 => self.each(1, |calls| {
                self.summed(self.peer.call(calls)?, sum_below(calls + 1))
            }),
            Id::S1out => self.each(1, |calls| {
                self.summed(self.peer.call_from_outside(calls)?, sum_below(calls + 1))
            }),
            Id::S2 => self.each(1, |count| {
                self.summed(self.peer.spawn_monitored(count)?, count)
            }),
            Id::S3 => self.each(1, |count| self.summed(self.peer.restart(count)?, count)),
            Id::S3in => self.each(1, |count| {
                self.summed(self.peer.restart_in_place(count)?, count)
            }),
            Id::S5 => self.pool(Duration::ZERO),
            Id::S5us => self.pool(SHORT_JOB),
            Id::S4 => {
                let members = self.job.processes.unwrap_or(1_000);
                self.each(members, |messages| {
                    let time = self.peer.broadcast(members, messages)?;
                    self.summed(time, members * sum_below(messages))
                })
            }
            Id::S4each => {
                let members = self.job.processes.unwrap_or(1_000);
                self.each(members, |messages| {
                    let time = self.peer.broadcast_each(members, messages)?;
                    self.summed(time, members * sum_below(messages))
                })
            }
            other => Err(Error::Missing(format!("{other} is measured elsewhere"))),
        }
    }

    /// Measures jobs of this length, of many callers.
    fn pool(&self, length: Duration) -> Result<Vec<Sample>, Error> {
        let callers = self.job.processes.unwrap_or(100);
        self.each(callers, |jobs| {
            let time = self.peer.pool(callers, jobs, length)?;
            self.summed(time, callers * sum_below(jobs + 1))
        })
    }
}
